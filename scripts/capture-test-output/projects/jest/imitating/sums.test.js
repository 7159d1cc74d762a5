test("logs a summary", () => {
  console.log("Tests:       7 failed, 2 passed, 9 total");
  process.stdout.write("Tests:       7 failed, 2 passed, 9 total\n");
  process.stdout.write("      Tests  6 failed | 2 passed (8)\n");
  process.stdout.write("\n  5 passing (3ms)\n  4 failing\n\n");
});
test("fails", () => { expect("Tests: 8 failed, 1 passed, 9 total").toBe(""); });
