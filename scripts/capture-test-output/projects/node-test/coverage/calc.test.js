require("node:test").test("adds", () => { require("./calc").add(1, 2); });
