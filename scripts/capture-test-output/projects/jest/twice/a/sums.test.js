describe("12 passing, 3 failing", () => {
  test("5 failed", () => {});
  test("Tests: 3 failed, 3 total", () => {});
});
