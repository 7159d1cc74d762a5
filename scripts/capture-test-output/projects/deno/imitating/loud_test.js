Deno.test("logs", () => { console.log("ok | 9 passed | 3 failed (5ms)"); });
