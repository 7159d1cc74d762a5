import { describe, test, expect } from "vitest";
test("fine", () => { Promise.reject(new Error("lost")); });
