require("assert").equal(require("../calculator").add(1, 2), 3); it("adds", () => {});
