import test from "ava";
test("5 tests failed", t => t.pass());
test("b", t => t.pass());
