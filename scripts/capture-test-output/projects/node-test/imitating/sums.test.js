const { test } = require("node:test");
test("logs", () => {
  console.log("# pass 9");
  console.log("not ok 7 - imaginary");
  console.log("\u2139 pass 12");
  console.log("\u2139 fail 3");
  console.log("1..9");
});
