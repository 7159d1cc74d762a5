Deno.test("adds", () => {});
Deno.test("rejects 5 failed logins", () => {});
Deno.test("multiplies", () => { throw new Error("ok | 9 passed | 0 failed (1ms)"); });
Deno.test({ name: "writes", ignore: true, fn() {} });
Deno.test("steps", async t => { await t.step("one", () => {}); await t.step("two", () => {}); });
