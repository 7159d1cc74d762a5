const assert = require("assert");
describe("sums", () => {
  it("adds", () => assert.equal(1 + 1, 2));
  it("rejects 5 failed logins", () => {});
  it("subtracts", () => assert.equal(3 - 1, 2));
  it("multiplies", () => assert.equal(2 * 2, 5));
  it("divides", () => { throw new Error("3 failing"); });
  it("writes");
});
