describe("sums", () => {
  it("adds", () => { expect(1 + 1).toBe(2); });
  it("rejects 5 failed logins", () => {});
  it("subtracts", () => { expect(3 - 1).toBe(2); });
  it("multiplies", () => { expect(2 * 2).toBe(5); });
  it("divides", () => { throw new Error("Tests: 9 failed, 9 total"); });
  xit("writes", () => {});
});
