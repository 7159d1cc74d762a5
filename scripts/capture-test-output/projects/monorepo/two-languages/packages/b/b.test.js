const { test } = require("node:test");
test("# fail 5", () => {});
test("not ok 3", () => {});
