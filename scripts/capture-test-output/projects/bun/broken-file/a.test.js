const x = require("./nowhere");
test("never runs", () => {});
