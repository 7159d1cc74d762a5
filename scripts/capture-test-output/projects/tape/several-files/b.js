const test = require("tape");
test("sums", t => { t.equal(1 + 1, 2, "adds"); t.ok(true, "rejects 5 failed logins"); t.end(); });
test("products", t => { t.equal(2 * 2, 5, "multiplies"); t.end(); });
test.skip("writes", t => t.end());
