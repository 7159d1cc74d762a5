const { describe, it, test } = require("node:test");
const assert = require("node:assert");
describe("sums", () => {
  it("adds", () => assert.equal(1 + 1, 2));
  it("rejects 5 failed logins", () => {});
  it("multiplies", () => assert.equal(2 * 2, 5));
  it("divides", () => { throw new Error("# pass 9"); });
});
test("top level", () => {});
test("writes", { skip: true }, () => {});
test("reads", { todo: true }, () => {});
