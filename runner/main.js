// What GitHub's runner starts for `uses: zelda-ci/zelda-ci/runner`: prepare the machine, then `zelda ci`.
//
// An action in JavaScript, because the runner gives the token of its artifact service to actions and not to `run` steps, those of a
// composite action included. So the token is in the environment of this process and of Zelda's, and in no file that another step reads.
"use strict";

const { spawn } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
// What the preparation is told: where things lie, and the way to the package index. No input, key or token.
const PASSED_ON =
  /^(HOME|LANG|LC_ALL|TMPDIR|RUNNER_(TEMP|TOOL_CACHE|ENVIRONMENT)|GITHUB_(OUTPUT|STEP_SUMMARY)|(HTTPS?|NO|ALL)_PROXY|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|PIP_(INDEX_URL|EXTRA_INDEX_URL|NO_INDEX|FIND_LINKS|TRUSTED_HOST|CERT|PROXY|CONFIG_FILE|CACHE_DIR|DEFAULT_TIMEOUT|RETRIES))$/i;

let child = null;
let cancelled = false;
// The runner signals this process alone: SIGINT, after 7.5 s SIGTERM, and after 2.5 s more it kills.
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    cancelled = true;
    if (child) child.kill(signal);
  });
}

// The exit code of a program, and what it printed where that is not for the log.
function run(program, args, options) {
  return new Promise((resolve, reject) => {
    let printed = "";
    child = spawn(program, args, options);
    if (child.stdout) child.stdout.on("data", (part) => (printed += part));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      child = null;
      resolve({ code: signal ? 2 : code, printed: printed.trim() });
    });
  });
}

function prepare() {
  const passed = Object.entries(process.env).filter(([name]) => PASSED_ON.test(name));
  // Not a python3 that an earlier step, or what it built, has put first in PATH.
  const env = { ...Object.fromEntries(passed), PATH: SYSTEM_PATH, SEARCHED: process.env.PATH || "" };
  const system = ["/usr/bin/python3", "/usr/local/bin/python3"].find((file) => fs.existsSync(file));
  const script = path.join(__dirname, "prepare.py");
  const stdio = ["ignore", "pipe", "inherit"];
  return run(system || "python3", ["-I", script], { env: system ? env : { ...env, PATH: env.SEARCHED }, stdio });
}

function giveUp(problem, verdict = "broken") {
  console.log(`::error title=Zelda could not do its work::${problem}`);
  if (process.env.GITHUB_OUTPUT) fs.appendFileSync(process.env.GITHUB_OUTPUT, `verdict=${verdict}\n`);
  return verdict === "cancelled" ? 130 : 2;
}

async function main() {
  if (process.platform !== "linux") return giveUp(`This action needs a Linux runner, and this one is ${process.platform}.`);
  let prepared;
  try {
    prepared = await prepare();
  } catch (error) {
    return giveUp(`There is no Python 3 on this runner (${error.code}). Put actions/setup-python before this step.`);
  }
  if (prepared.code !== 0) return prepared.code;
  if (cancelled) return giveUp("The run was cancelled before it began.", "cancelled");
  // Isolated: PYTHONPATH and the working folder may lead into the code under test.
  const { code } = await run(prepared.printed, ["-I", "-u", "-m", "zelda_ci", "ci"], { stdio: ["ignore", "inherit", "inherit"] });
  return code;
}

main().then((code) => {
  process.exitCode = code;
});
