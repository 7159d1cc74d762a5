const { test, expect } = require("@playwright/test");
test("adds", () => {});
test("rejects 5 failed logins", () => {});
test("multiplies", () => { expect(2 * 2).toBe(5); });
test.skip("writes", () => {});
test("second time lucky", async ({}, info) => { expect(info.retry).toBe(1); });
