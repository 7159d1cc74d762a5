import { describe, test, expect } from "vitest";
let tries = 0;
test("steady", () => {});
test("second time lucky", { retry: 2 }, () => { tries += 1; expect(tries).toBe(2); });
test("never", { retry: 1 }, () => { expect(1).toBe(2); });
