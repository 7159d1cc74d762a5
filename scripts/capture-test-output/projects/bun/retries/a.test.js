import { test, expect } from "bun:test";
let n = 0;
test("lucky", () => { n += 1; expect(n).toBe(2); }, { retry: 2 });
test("b", () => {});
