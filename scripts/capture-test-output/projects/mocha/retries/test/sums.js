describe("flaky", function () {
  this.retries(2);
  let tries = 0;
  it("second time lucky", () => { tries += 1; if (tries < 2) throw new Error("first try"); });
  it("never", () => { throw new Error("always"); });
  it("steady", () => {});
});
