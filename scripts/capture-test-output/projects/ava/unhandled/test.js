import test from "ava";
test("fine", async t => { t.pass(); Promise.reject(new Error("lost")); });
