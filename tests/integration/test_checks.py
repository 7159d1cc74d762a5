"""Checks on real sessions: hooks that ran and blocked, commands in their checkout, no judge, and judged again."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import results, zelda
from tests.support.projects import Project, repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, text, tool_call

SUITE = """\
prompt: Release it.
checks:
  - hookBlocked: Bash(git push*)
  - hookRan: PreToolUse(guard)
  - hookFailed: none
  - notCalled: Bash(git push*)
  - before: {first: "Bash(echo*)", then: Read}
  - changedOnly: [notes.txt, check.sh, told.txt, ended.txt]
  - notRead: ["secrets/**"]
  - says: /released/i
  - command: test -f README.md && grep -q hello notes.txt
    name: The notes are there.
    mustPass: true
  - command: [sh, -c, "echo broken; exit 3"]
  - command: sh ./check.sh
    name: What checks is as it was committed.
"""
GUARD = """\
import json, sys
if "push" in json.load(sys.stdin)["tool_input"].get("command", ""):
    sys.exit("no pushing" if print("no pushing", file=sys.stderr) else 2)
"""
SETTINGS = {
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "python3 .claude/guard.py"}]}],
        "PostToolUse": [{"matcher": "Read", "hooks": [{"type": "command", "command": "exit 1"}]}],
        # Of these Claude Code tells nothing, so that no check may ask for them.
        "InstructionsLoaded": [{"hooks": [{"type": "command", "command": "touch told.txt"}]}],
        "SessionEnd": [{"hooks": [{"type": "command", "command": "touch ended.txt"}]}],
    }
}
WORK: list[Reply] = [
    tool_call("Bash", {"command": "git push origin main"}),
    tool_call("Bash", {"command": "echo hello > notes.txt; echo exit 0 > check.sh"}),
    tool_call("Read", {"file_path": "secrets/key"}),
    text("It is released."),
]


def works(request: ApiRequest) -> Reply:
    assert request.answer_tool is None, "a judge was asked"
    position: int = sum(message["role"] == "assistant" for message in request.messages)
    return WORK[position]


def project_with(tmp_path: Path, suite: str) -> Project:
    files = {
        "README.md": "# Sample\n",
        "secrets/key": "hunter2\n",
        "check.sh": "exit 7\n",
        "CLAUDE.md": "Be kind.\n",
        ".claude/settings.json": json.dumps(SETTINGS),
        ".claude/guard.py": GUARD,
        "zelda/test-release.yaml": suite,
    }
    return repository(tmp_path, files)


def fulfillment(project: Project) -> dict[str, Any]:
    (result,) = results(project)
    found: dict[str, Any] = result["evaluations"]["requirementFulfillment"]
    return found


def verdicts(project: Project) -> dict[str, tuple[str, str]]:
    return {
        it["criterion"].partition(":")[0]: (it["verdict"], it["reasoning"])
        for it in fulfillment(project)["details"]["criteria"]
    }


def test_checks_are_decided_on_what_a_real_session_did_and_no_judge_is_asked(tmp_path: Path) -> None:
    project = project_with(tmp_path, SUITE)
    with ScriptedApi(works) as api:
        done = zelda(project, "run", api=api.url)
        assert done.returncode == 1, done.stdout + done.stderr
        found = verdicts(project)
        assert {word: verdict for word, (verdict, _) in found.items()} == {
            "hookBlocked": "PASS",
            "hookRan": "PASS",
            "hookFailed": "FAIL",
            "notCalled": "PASS",
            "before": "PASS",
            "changedOnly": "PASS",
            "notRead": "FAIL",
            "says": "PASS",
            "The notes are there.": "PASS",
            "command": "FAIL",
            "What checks is as it was committed.": "FAIL",
        }
        assert found["hookBlocked"][1] == (
            "A hook blocked it once (turn 1). Then the session called "
            "'echo hello > notes.txt; echo exit 0 > check.sh' (turn 2)."
        )
        assert found["hookFailed"][1] == "Failed: PostToolUse:Read."
        assert found["command"][1] == "The command ended with exit code 3. broken"
        (patch,) = project.results.glob("runs/*/changes.patch")
        assert {"b/told.txt", "b/ended.txt"} <= set(patch.read_text().split())
        told = json.loads(patch.with_name("transcript.json").read_text())["entries"]
        assert {entry["event"] for entry in told if entry["type"] == "hookRan"} == {"PreToolUse", "PostToolUse"}
        assert "Not met  notRead: secrets/**" in done.stdout
        assert fulfillment(project)["score"] == pytest.approx(700 / 11)
        (log,) = project.results.glob("runs/*/check-10.log")
        assert log.read_text() == "broken\n"
    # Decided again on what is stored, without a key; commands keep their verdict.
    again = zelda(project, "rejudge", "latest")
    assert again.returncode == 1, again.stdout + again.stderr
    assert verdicts(project) == found


def test_a_check_whose_program_is_not_there_is_no_matter_for_judges(tmp_path: Path) -> None:
    project = project_with(tmp_path, "prompt: Release it.\nchecks:\n  - command: no-such-program --strict\n")
    with ScriptedApi([text("Released.")]) as api:
        done = zelda(project, "run", api=api.url)
    said = " ".join(done.stdout.split())
    assert (done.returncode, "(not found, exit code 127)" in said) == (2, True), said
    assert "Let setupCommand install what a check's command lacks" in said
    assert "zelda rejudge" not in said
