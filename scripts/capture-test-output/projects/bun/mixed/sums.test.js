import { describe, test, expect } from "bun:test";
describe("sums", () => {
  test("adds", () => { expect(1 + 1).toBe(2); });
  test("rejects 5 failed logins", () => {});
  test("subtracts", () => { expect(3 - 1).toBe(2); });
  test("multiplies", () => { expect(2 * 2).toBe(5); });
  test("divides", () => { throw new Error("Tests: 9 failed, 9 total"); });
  test.skip("writes", () => {});
});
