const t = require("tap");
t.test("sums", t => { t.equal(1 + 1, 2); t.ok(true, "rejects 5 failed logins"); t.end(); });
t.test("products", t => { t.equal(2 * 2, 5, "multiplies"); t.end(); });
t.test("writes", { skip: true }, t => t.end());
t.test("reads", { todo: true }, t => t.end());
