describe("12 passing, 3 failing", () => {
  it("5 failed", () => {});
  it("Tests: 3 failed, 3 total", () => {});
});
