// Run by Claude Code's own runtime before anything of Claude Code: no other process of a session may look into it.
// The kernel then refuses its memory, descriptors and environment to everybody without CAP_SYS_PTRACE, so to all that
// Claude Code starts, in whatever way: shells, hooks, servers, helpers.
import { dlopen } from "bun:ffi";
import { closeSync, readFileSync, writeSync } from "node:fs";

const PR_GET_DUMPABLE = 3, PR_SET_DUMPABLE = 4;
// As the supervisor has it.
const READY = 3, SECRET = 4;
const LIBRARIES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];
const PRCTL = { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" };

let prctl;
for (const name of LIBRARIES) {
  try {
    prctl ??= dlopen(name, { prctl: PRCTL }).symbols.prctl;
  } catch {}
}
prctl?.(PR_SET_DUMPABLE, 0, 0, 0, 0);
const isClosed = prctl?.(PR_GET_DUMPABLE, 0, 0, 0, 0) === 0;
const isConfined = process.env.ZELDA_CONFINED === "1";
// Not for what Claude Code starts.
delete process.env.BUN_OPTIONS;
delete process.env.ZELDA_CONFINED;
if (isConfined) {
  if (!isClosed) {
    console.error("the program was not started, because other processes could look into it");
    process.exit(125);
  }
  // It was in no environment, which others could have read before this line.
  const [name, ...value] = readFileSync(SECRET, "utf8").split("=");
  process.env[name] = value.join("=");
  closeSync(SECRET);
  // Only now does the supervisor call the session begun.
  writeSync(READY, "R");
  closeSync(READY);
}
