import { describe, test, expect } from "vitest";
import { add } from "./calc.js";
test("adds", () => { expect(add(1, 2)).toBe(3); });
