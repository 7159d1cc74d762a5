jest.retryTimes(2);
let tries = 0;
test("steady", () => {});
test("second time lucky", () => { tries += 1; expect(tries).toBe(2); });
test("never", () => { expect(1).toBe(2); });
