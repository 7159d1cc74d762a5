import { test } from "bun:test";
test("logs", () => { console.log(" 9 pass\n 3 fail\nRan 12 tests across 1 files."); });
