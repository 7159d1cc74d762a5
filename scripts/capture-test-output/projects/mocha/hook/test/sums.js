describe("hooked", () => {
  it("runs", () => {});
  describe("inner", () => {
    before(() => { throw new Error("no database"); });
    it("never runs", () => {});
  });
});
