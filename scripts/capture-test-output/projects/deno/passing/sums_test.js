Deno.test("3 failed", () => {});
