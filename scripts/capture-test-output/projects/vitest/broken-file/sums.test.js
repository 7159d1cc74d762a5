import { describe, test, expect } from "vitest";
import x from "./nowhere";
test("never runs", () => {});
