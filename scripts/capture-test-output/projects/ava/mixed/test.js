import test from "ava";
test("adds", t => t.is(1 + 1, 2));
test("rejects 5 failed logins", t => t.pass());
test("multiplies", t => t.is(2 * 2, 5));
test("divides", () => { throw new Error("4 tests passed"); });
test.skip("writes", t => t.pass());
test.todo("reads");
test.failing("known bug", t => t.fail());
