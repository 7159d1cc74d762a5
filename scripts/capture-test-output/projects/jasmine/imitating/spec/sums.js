it("logs", () => { console.log("9 specs, 4 failures"); });
