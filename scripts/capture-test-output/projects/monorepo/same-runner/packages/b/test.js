describe("sums", () => { it("3 failing", () => {}); it("9 passing (2ms)", () => {}); });
