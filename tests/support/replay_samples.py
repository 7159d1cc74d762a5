"""Sessions whose requests hold what time and load change: recorded once, then replayed on a slower machine.

Everything slow in them takes `PAUSE` seconds longer, a variable that is another one in each replay.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.support.command import zelda
from tests.support.judges import use, uses
from tests.support.projects import Project, repository
from tests.support.scripted_api import ApiRequest, Message, Reply, ScriptedApi, text, tool_call, tool_calls

SERVER = Path(__file__).with_name("stdio_mcp_server.py").read_text()

SLOW = """\
import os, random, sys, time
began = time.monotonic()
time.sleep(float(sys.argv[1]) + float(os.environ.get("PAUSE", "0")) * random.uniform(0.5, 1))
took = time.monotonic() - began
print(f"slept as process {os.getpid()} for {took:.6f} seconds")
"""

TIMINGS = """\
import os, random, tempfile, time
share = random.random() * 10 ** random.randint(-2, 3)
print(f"==== 3 passed, 1 skipped in {share:.2f}s ====")
print(f"# duration_ms {share:.6f}")
print(f"ok 1 - adds numbers\\n  ---\\n  duration_ms: {share:.6f}\\n  ...")
print(f"Tests:       2 passed, 2 total\\nTime:        {share:.3f} s, estimated {int(share) + 1} s")
print(f"Test Files  1 passed (1)\\n   Duration  {share * 100:.0f}ms (transform {share:.0f}ms, setup 0ms)")
print(f"ok  \\texample.org/shop\\t{share:.3f}s\\n--- PASS: TestAdds ({share:.2f}s)")
print(f"Ran 6 tests in {share:.3f}s\\n\\nOK")
print(f"test result: ok. 4 passed; 0 failed; finished in {share:.2f}s")
print(f"[INFO] Total time:  {share:.3f} s\\n[INFO] Tests run: 3, Failures: 0, Time elapsed: {share:.3f} s")
minutes = f"{int(share) // 60}m " if share > 60 else ""
print(f"BUILD SUCCESSFUL in {minutes}{int(share) % 60}s")
print(f"Finished in {share:.2f} seconds (files took {share / 3:.2f} seconds to load)")
print(f"Done in {share:.0f}ms\\nreal\\t0m{share % 60:.3f}s\\nuser\\t0m{share % 60 / 2:.3f}s")
print(f'{{"duration": {share}, "elapsed_ms": {int(share * 1000)}, "time": {share:.4f}, "passed": 3}}')
print(f"{time.strftime('%a %b %d %H:%M:%S %Z %Y')} {time.strftime('%Y-%m-%dT%H:%M:%SZ')}")
print(f"started {int(time.time() * 1000)}")
print(f"pid {os.getpid()}, {tempfile.mkdtemp()}, listening on port {random.randint(32768, 60999)}")
print(f"listening on http://localhost:{random.randint(32768, 60999)}/ at {id(object()):#x}")
"""

HOOK = """\
import json, os, random, sys, time
time.sleep(float(os.environ.get("PAUSE", "0")) / 4 * random.random())
event = json.load(sys.stdin)["hook_event_name"]
said = f"checked in {random.random() * 9:.2f}s at {time.strftime('%H:%M:%S')} by pid {os.getpid()}"
print(json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": said}}))
"""


@dataclass(frozen=True)
class Sample:
    """One session: what the model says in it."""

    turns: Sequence[Message]
    files: Mapping[str, str] = field(default_factory=dict)


def bash(command: str, **options: Any) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": command, **options}


def slow(seconds: float) -> tuple[str, dict[str, Any]]:
    return bash(f"python3 slow.py {seconds}")


def _mcp(seconds: str) -> str:
    server = {"command": sys.executable, "args": ["server.py", seconds]}
    return json.dumps({"mcpServers": {"greeter": server}})


def _hooks() -> str:
    ours = [{"hooks": [{"type": "command", "command": 'python3 "$CLAUDE_PROJECT_DIR/hook.py"'}]}]
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse")
    return json.dumps({"hooks": dict.fromkeys(events, ours)})


SAMPLES = {
    "commands": Sample(
        [
            tool_calls([bash("python3 timings.py"), slow(2.5)]),
            tool_call(*slow(4.5)),
            tool_call("Bash", {"command": "time python3 timings.py; git log -1; ls -la; ps | head -n 1"}),
            text("All is tested."),
        ]
    ),
    "parallel": Sample(
        [
            tool_calls(
                [slow(0.4), slow(0.1), bash("cat README.md"), ("Write", {"file_path": "CWD/a.txt", "content": "a\n"})]
            ),
            tool_calls([bash("python3 slow.py 0.2; exit 3"), slow(0.3), ("Read", {"file_path": "CWD/a.txt"})]),
            text("All is done."),
        ]
    ),
    "hooks": Sample(
        [
            tool_call("mcp__greeter__greet", {"name": "Ada"}),
            tool_calls([slow(0.2), slow(0.1)]),
            tool_call("Bash", {"command": "cat README.md"}),
            text("Done."),
        ],
        files={".claude/settings.json": _hooks(), "hook.py": HOOK, ".mcp.json": _mcp("3"), "server.py": SERVER},
    ),
}

SUITE = """\
prompt: Do the sample called {name}.
acceptanceCriteria: [The session did something.]
metrics: {{functionalCorrectness: false}}
execution: {{env: [PAUSE]}}
"""

BEGINNING = {"type": "text", "text": "I begin with the sample."}
EVIDENCE = [{"where": "README.md:1", "quote": "# Sample"}]
FULFILLMENT = {"criteria": [{"number": 1, "reasoning": "It did.", "verdict": "PASS", "evidence": EVIDENCE}]}
TOOL_USAGE: dict[str, dict[str, Any] | None] = {
    "CLAUDE.md": use("FOLLOWED", ("said:turn 1", BEGINNING["text"])),
    # Called in one of the samples, so that it cannot be said not to apply.
    "mcp__greeter": use("MISUSED", ("turn 1 call 1", "name: Ada")),
}


def project(folder: Path, *names: str) -> Project:
    """A repository with one suite for each of the samples, and the files of all."""
    files = {"CLAUDE.md": "Test what you do.\n", "slow.py": SLOW, "timings.py": TIMINGS, "README.md": "# Sample\n"}
    for name in names:
        files |= {f"zelda/test-{name}.yaml": SUITE.format(name=name), **SAMPLES[name].files}
    return repository(folder, files)


def record(sample: Project, cassettes: Path, *, jobs: int = 1) -> "Led":
    """Record the project's sessions, the judge's words included."""
    with ScriptedApi(_script) as api:
        led = _lead(sample, "--record", cassettes, jobs, api=api.url)
    assert led.code == 0, led.output
    return led


def replay(sample: Project, cassettes: Path, *, pause: float = 0.0, jobs: int = 1) -> "Led":
    """Replay all suites of a project."""
    return _lead(sample, "--replay", cassettes, jobs, PAUSE=str(pause))


def _lead(sample: Project, how: str, cassettes: Path, jobs: int, **options: Any) -> "Led":
    known = _runs(sample)
    done = zelda(sample, "run", how, str(cassettes), "--jobs", str(jobs), **options)
    outcomes = dict(outcome(run) for run in _runs(sample) - known)
    return Led(done.returncode, done.stdout + done.stderr, outcomes)


def _runs(sample: Project) -> set[Path]:
    return {file.parent for file in sample.results.glob("runs/*/result.json")}


@dataclass(frozen=True)
class Led:
    """A command that led one session or several."""

    code: int
    output: str
    outcomes: dict[str, Any]
    """What must be the same each time, by run."""

    @property
    def divergences(self) -> list[str]:
        return [line for line in self.output.splitlines() if "not exactly what was recorded" in line]


def outcome(run: Path) -> tuple[str, Any]:
    """A run's name, and what its result and transcript say, without what may differ between two runs of a session."""
    result = json.loads((run / "result.json").read_bytes())
    transcript = json.loads((run / "transcript.json").read_bytes())
    evaluations = {
        name: (one.get("score"), one.get("reasoning"), _plain(one.get("details")))
        for name, one in result["evaluations"].items()
        if name != "efficiency"
    }
    return f"{result['suite']}, trial {result['trial']}", {
        "status": result["status"],
        "failure": _plain(result.get("failure")),
        "evaluations": evaluations,
        "entries": [_shape(entry) for entry in transcript["entries"]],
    }


def _shape(entry: dict[str, Any]) -> Any:
    """An entry of a transcript without times, and without the output of commands, which is another one each time."""
    calls = [(call["name"], call["input"], call.get("isError")) for call in entry.get("toolCalls", ())]
    facts = ("type", "index", "text", "kind", "name", "event", "parentToolCallId", "usage")
    return _plain({**{name: entry.get(name) for name in facts}, "calls": calls})


_VARIES = re.compile(
    r"[0-9a-f-]{36}|\b[ab][0-9a-z]{8,16}\b|/[^\s\"']*|\b\d+(?:\.\d+)?(?= ?(?:s|ms)\b)|\b\d+:\d+:\d+\b|pid \d+"
    r'|(?<="seconds": )[0-9.]+'
)


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(_VARIES.sub("~", json.dumps(value))))


def _of_tools(request: ApiRequest) -> dict[str, Any]:
    is_called = "mcp__greeter__greet]" in request.last_user_text
    others = {} if is_called else {"mcp__greeter": use("NOT_APPLICABLE")}
    return uses(request.last_user_text, {**TOOL_USAGE, **others})


def _script(request: ApiRequest) -> Reply:
    if request.answer_tool:
        tools = "how well a coding session used" in json.dumps(request.body)
        return tool_call(request.answer_tool, _of_tools(request) if tools else FULFILLMENT)
    name = re.findall(r"Do the sample called (\w+)\.", json.dumps(request.messages))[0]
    return _at_home(SAMPLES[name].turns[_position(request)], request)


def _position(request: ApiRequest) -> int:
    return sum(message["role"] == "assistant" for message in request.messages)


def _at_home(message: Message, request: ApiRequest) -> Message:
    found = re.search(r"[Ww]orking directory: (\S+?)(?:\\n|\s|$)", json.dumps(request.body))
    assert found
    content = json.loads(json.dumps(message.content).replace("CWD/", json.dumps(found[1])[1:-1] + "/"))
    return replace(message, content=tuple(content if _position(request) else [BEGINNING, *content]))
