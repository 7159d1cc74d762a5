describe("loud", () => {
  it("logs", () => { console.log("\n  9 passing (3ms)\n  4 failing\n"); });
  it("fails", () => { console.log("  8 passing (1ms)"); throw new Error("no"); });
});
