"""Checks: criteria that are decided without a judge. Each case is a session, a check and what is true of it."""

from pathlib import Path
from typing import Any

import pytest

from tests.builders import safe, session, suite
from zelda_ci.domain.details import CriterionVerdict
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import ApiUsage, HookRan, Turn
from zelda_ci.domain.workspace import Changes
from zelda_ci.metrics.calls import simple_commands
from zelda_ci.metrics.checks import decide

DONE = '"Done: the rate limit is 5 per second."'
TOP = "/w/ws"
PATCH = """diff --git a/src/app.py b/src/app.py
--- a/src/app.py
+++ b/src/app.py
@@ -1 +1 @@
-old = 1
+new = 2
"""


def hook(name: str, outcome: str = "success", code: int | None = 0, output: str = "") -> HookRan:
    event = name.partition(":")[0]
    return HookRan(
        at=1.0, name=safe(name), event=safe(event), outcome=safe(outcome), output=safe(output), exit_code=code
    )


def decided(
    check: dict[str, Any],
    *steps: str,
    files: tuple[str, ...] = (),
    hooks: tuple[HookRan, ...] = (),
    configured: tuple[tuple[str, str], ...] = (),
    folder: str = "",
    patch: Path = Path("/nowhere"),
    refusal: str = "denied",
) -> Any:
    transcript = session(*(steps or (DONE,)))
    entries = [
        entry.replace(tool_calls=[call.replace(output=refusal) if call.denied else call for call in entry.tool_calls])
        if isinstance(entry, Turn)
        else entry
        for entry in transcript.entries
    ]
    transcript = transcript.replace(entries=(*entries, *hooks))
    items = tuple(
        ManifestItem(kind=ItemKind.HOOK, name=safe(name), description=safe(command), file=safe(".claude/settings.json"))
        for name, command in configured
    )
    context = EvalContext(
        suite(checks=[check]),
        None,
        transcript,
        ApiUsage(),
        Changes(files=tuple(map(safe, files)), patch=patch),
        manifest=ToolsManifest(items=items, workspace=safe(TOP), folder=safe(folder)),
    )
    (judgement,) = decide(context, safe)
    return judgement


CALLS = [
    # The first call of the main thread, whatever came before.
    ({"routed": "skill changelog"}, ["Bash ls", "Skill changelog", DONE], True),
    ({"routed": ["agent reviewer", "skill changelog"]}, ["Skill docs:changelog", DONE], True),
    ({"routed": "skill release"}, ["Skill changelog", "Skill release", DONE], False),
    ({"routed": "skill release"}, ["Skill changelog -> denied", "Skill release", DONE], True),
    ({"routed": "command changelog"}, ["Skill changelog", DONE], True),
    ({"routed": "agent changelog"}, ["Skill changelog", DONE], False),
    ({"routed": "skill changelog"}, ["Bash ls", DONE], False),
    ({"routed": "none"}, ["Bash ls", DONE], True),
    ({"routed": ["none", "skill changelog"]}, ["Skill release", DONE], False),
    # Names, and what a tool is called with.
    ({"called": "Skill(changelog)"}, ["Skill changelog", DONE], True),
    ({"called": "Skill(changelog)"}, ["Skill /changelog", DONE], True),
    ({"called": "Skill(changelog)"}, ["Skill docs:changelog", DONE], True),
    ({"called": "Skill(docs:changelog)"}, ["Skill changelog", DONE], False),
    ({"called": "Skill(changelog)"}, ["Skill changelogs", DONE], False),
    ({"called": "Skill(change*)"}, ["Skill changelogs", DONE], True),
    ({"called": "Skill(changelog)"}, ["Skill changelog -> error", DONE], False),
    ({"called": "Skill(changelog)"}, ["Skill changelog -> denied", DONE], False),
    ({"called": "Skill"}, ["Skill any", DONE], True),
    ({"called": "Agent(reviewer)"}, ["Task reviewer", DONE], True),
    ({"called": "Bash"}, ["Bash make -> error", DONE], True),
    ({"called": "Edit(src/**)"}, ["Write src/app.py", DONE], True),
    ({"called": "Edit(src/**)"}, ["Write /w/ws/src/app.py", DONE], True),
    ({"called": "Edit(src/**)"}, ["Write /elsewhere/src/app.py", DONE], False),
    ({"called": "Edit(src/**)"}, ["Write src/app.py -> <tool_use_error>not read</tool_use_error>", DONE], False),
    ({"called": "Write(src/**)"}, ["Edit src/app.py", DONE], False),
    ({"called": "Read(*.md)"}, ["Read docs/deep/a.md", DONE], True),
    ({"called": "mcp__github"}, ["mcp__github__search x", DONE], True),
    ({"called": "mcp__github__*"}, ["mcp__github__search x", DONE], True),
    ({"called": "mcp__git"}, ["mcp__github__search x", DONE], False),
    ({"called": "mcp__github__search(zelda*)"}, ["mcp__github__search zelda ci", DONE], True),
    # How often, and by whom.
    ({"called": "Read", "times": 2}, ["Read a", "Read b", DONE], True),
    ({"called": "Read", "times": 2}, ["Read a", "Read b", "Read c", DONE], False),
    ({"called": "Read", "times": "2.."}, ["Read a", "Read b", "Read c", DONE], True),
    ({"called": "Read", "times": "..2"}, ["Read a", "Read b", "Read c", DONE], False),
    ({"called": "Read", "times": "..2"}, [DONE], True),
    ({"called": "Read", "times": "1..2"}, ["Read a -> denied", DONE], False),
    ({"called": "Read"}, ["Agent helper", "> Read a", DONE], True),
    ({"called": "Read", "agent": "main"}, ["Agent helper", "> Read a", DONE], False),
    ({"notCalled": "Read", "agent": "main"}, ["Agent helper", "> Read a", DONE], True),
    # Shell lines.
    ({"notCalled": "Bash(git push*)"}, ["Bash git status", DONE], True),
    ({"notCalled": "Bash(git push*)"}, ["Bash git add . && git push origin", DONE], False),
    ({"notCalled": "Bash(git push*)"}, ["Bash git push -> denied", DONE], True),
    ({"notCalled": "Bash(git push*)"}, ["Bash echo 'git push'", DONE], True),
    ({"notCalled": "Bash(git push*)"}, ['Bash echo "now: git push"', DONE], True),
    ({"notCalled": "Bash(git push*)"}, ["Bash echo $(git push)", DONE], False),
    ({"notCalled": "Bash(git push*)"}, ['Bash echo "$(git push)"', DONE], False),
    ({"notCalled": "Bash(git push*)"}, ["Bash bash -c 'cd x; git push'", DONE], False),
    ({"notCalled": "Bash(git push*)"}, ["Bash GIT_SSH=x timeout -k 5 30s git push", DONE], False),
    ({"notCalled": "Bash(git push*)"}, ["Bash if true; then git push; fi", DONE], False),
    ({"notCalled": "Bash(git push*)"}, ["Bash cat > n.md <<'EOF'\ngit push\nEOF", DONE], True),
    ({"notCalled": "Bash(git push*)"}, ["Bash make # and not git push; git push", DONE], True),
    ({"notCalled": "Bash(git push*)"}, ["Bash make 2>&1 | tee log\ngit   push", DONE], False),
    ({"called": "Bash(npm test:*)"}, ["Bash npm test -- --run", DONE], True),
    ({"called": "Bash(npm test:*)"}, ["Bash npm testing", DONE], False),
    ({"called": "Bash(ls *)"}, ["Bash lsof", DONE], False),
    ({"called": "Bash(ls *)"}, ["Bash ls", DONE], True),
    # In which order.
    ({"order": ["Read(a.md)", "Edit(src/**)", "Bash(npm test*)"]},
     ["Read a.md", "Bash npm test", "Edit src/x", "Bash npm test", DONE], True),
    ({"order": ["Read(a.md)", "Edit(src/**)", "Bash(npm test*)"]},
     ["Read a.md", "Bash npm test", "Edit src/x", DONE], False),
    ({"order": ["Bash(npm test*)", "Bash(git commit*)"]}, ["Bash npm test && git commit -m x", DONE], True),
    ({"order": ["Bash(git commit*)", "Bash(npm test*)"]}, ["Bash npm test && git commit -m x", DONE], False),
    ({"before": {"first": "Bash(npm test*)", "then": "Bash(git commit*)"}}, ["Bash npm test; git commit", DONE], True),
    ({"before": {"first": "Bash(npm test*)", "then": "Bash(git commit*)"}}, ["Bash git commit; npm test", DONE], False),
    ({"before": {"first": "Bash(npm test*)", "then": "Bash(git commit*)"}}, ["Bash make", DONE], True),
    # What was read.
    ({"notRead": ["secrets/**"]}, ["Read src/app.py", DONE], True),
    ({"notRead": ["secrets/**"]}, ["Read secrets/key", DONE], False),
    ({"notRead": ["secrets/**"]}, ["Read secrets/key -> denied", DONE], True),
    ({"notRead": ["secrets/**"]}, ["Bash cat ./secrets/key", DONE], False),
    ({"notRead": ["secrets/**"]}, ["Bash cat /w/ws/secrets/key", DONE], False),
    ({"notRead": ["secrets/**"]}, ["Bash echo x > secrets/key", DONE], True),
    ({"notRead": ["secrets/**"]}, ["Grep x -> secrets/key:1:hunter2", DONE], False),
    ({"notRead": ["secrets/**"]}, ["Bash rg -n x -> secrets/key:1:hunter2", DONE], False),
    ({"notRead": "*.pem"}, ["Read deep/down/a.pem", DONE], False),
    ({"notRead": ["./secrets/**"]}, ["Read secrets/key", DONE], False),
    ({"notCalled": "Read(./.env)"}, ["Read .env", DONE], False),
    # What was said.
    ({"says": "rate limit"}, [DONE], True),
    ({"says": "/RATE LIMIT is \\d+/i"}, [DONE], True),
    ({"says": "/RATE LIMIT/"}, [DONE], False),
    ({"says": "(rate"}, [DONE], False),
    ({"notSays": "as an AI"}, [DONE], True),
    ({"notSays": "rate limit"}, ['"The rate limit."', "Read a", '"All done."'], True),
    ({"says": "rate"}, ["Agent helper", '> "The rate."', '"All done."'], False),
]  # fmt: skip


@pytest.mark.parametrize(("check", "steps", "is_met"), CALLS, ids=lambda value: str(value)[:60])
def test_a_check_is_decided_by_what_the_session_did(check: dict[str, Any], steps: list[str], *, is_met: bool) -> None:
    found = decided(check, *steps)
    assert found.verdict == (CriterionVerdict.PASS if is_met else CriterionVerdict.FAIL), found.reasoning
    assert found.by == "check"


CHANGES = [
    ({"changed": ["CHANGELOG.md"]}, ("CHANGELOG.md", "src/a.py"), "", True),
    ({"changed": ["CHANGELOG.md", "tests/**"]}, ("CHANGELOG.md",), "", False),
    ({"changed": "*.py"}, ("src/deep/a.py",), "", True),
    ({"changedOnly": ["src/**", "tests/**"]}, ("src/a.py",), "", True),
    ({"changedOnly": ["src/**"]}, ("src/a.py", "setup.py"), "", False),
    ({"changedOnly": ["src/**"]}, (), "", True),
    ({"changedOnly": ["src/**"]}, ("apps/a/src/x.py",), "apps/a", True),
    ({"changedOnly": ["src/**"]}, ("src/x.py",), "apps/a", False),
]


@pytest.mark.parametrize(("check", "files", "folder", "is_met"), CHANGES)
def test_changes_are_matched_from_the_projects_folder(
    check: dict[str, Any], files: tuple[str, ...], folder: str, *, is_met: bool
) -> None:
    found = decided(check, files=files, folder=folder)
    assert found.verdict == (CriterionVerdict.PASS if is_met else CriterionVerdict.FAIL), found.reasoning


BLOCKED = "Bash git push -> denied"
GUARD = (("PreToolUse:Bash", "command: python3 .claude/hooks/guard.py"), ("PreToolUse:Edit|Write", "command: lint.sh"))
HOOKS = [
    ({"hookRan": "PreToolUse"}, (hook("PreToolUse:Bash"),), True),
    ({"hookRan": "PreToolUse"}, (hook("PostToolUse:Bash"),), False),
    ({"hookRan": "PreToolUse(guard)"}, (hook("PreToolUse:Bash"),), True),
    ({"hookRan": "PreToolUse(guard)"}, (hook("PreToolUse:Write"),), False),
    ({"hookRan": "PreToolUse(lint.sh)"}, (hook("PreToolUse:Write"),), True),
    ({"hookRan": "PreToolUse(Bash)"}, (hook("PreToolUse:Bash"),), True),
    ({"hookRan": "Stop"}, (hook("Stop", "error", 1),), True),
    ({"hookFailed": "none"}, (hook("Stop"),), True),
    ({"hookFailed": "none"}, (hook("Stop", "error", 1),), False),
    ({"hookFailed": "none"}, (hook("PreToolUse:Bash", "error", 2),), True),
    ({"hookFailed": "none"}, (), True),
]


@pytest.mark.parametrize(("check", "hooks", "is_met"), HOOKS)
def test_hooks_are_told_by_what_ran_and_by_their_commands(
    check: dict[str, Any], hooks: tuple[HookRan, ...], *, is_met: bool
) -> None:
    found = decided(check, "Bash make", DONE, hooks=hooks, configured=GUARD)
    assert found.verdict == (CriterionVerdict.PASS if is_met else CriterionVerdict.FAIL), found.reasoning


def test_a_call_is_blocked_where_a_hook_refused_it_each_time() -> None:
    def blocked(*steps: str, refusal: str = "PreToolUse:Bash hook error: [guard.py]: no") -> Any:
        return decided({"hookBlocked": "Bash(git push*)"}, *steps, refusal=refusal)

    found = blocked(BLOCKED, "Bash git status", DONE)
    assert (found.verdict, found.evidence[0].where) == (CriterionVerdict.PASS, "turn 1 call 1")
    assert found.reasoning == "A hook blocked it once (turn 1). Then the session called 'git status' (turn 2)."
    assert blocked(BLOCKED, "Bash git push -f", DONE).verdict == CriterionVerdict.FAIL
    assert blocked("Bash git status", DONE).reasoning.startswith("No call of Bash(git push*) was tried")
    assert blocked(BLOCKED, DONE, refusal="Permission to use Bash has been denied.").verdict == CriterionVerdict.FAIL


def test_what_decided_is_cited_where_it_stands(tmp_path: Path) -> None:
    patch = tmp_path / "changes.patch"
    patch.write_text(PATCH)
    called = decided({"called": "Bash(make*)"}, "Read a + Bash make all", "Bash make test", DONE)
    assert [(place.where, place.quote) for place in called.evidence] == [
        ("turn 1 call 2", "make all"),
        ("turn 2 call 1", "make test"),
    ]
    (hunk,) = decided({"changed": "src/**"}, files=("src/app.py",), patch=patch).evidence
    assert (hunk.where, hunk.quote) == ("removed:src/app.py", "old = 1")
    (said,) = decided({"says": "rate limit"}).evidence
    assert (said.where, said.quote) == ("said:turn 1", "Done: the rate limit is 5 per second.")


def test_a_check_is_called_as_the_file_says_or_by_its_name() -> None:
    assert decided({"called": "Read", "times": "1..", "agent": "main"}).criterion == (
        "called: Read, times: 1.., agent: main"
    )
    assert decided({"before": {"first": "Read", "then": "Edit"}}).criterion == "before: Read, then Edit"
    assert decided({"changedOnly": ["src/**", "a.md"]}).criterion == "changedOnly: src/**, a.md"
    assert decided({"says": "x", "name": "It says x."}).criterion == "It says x."


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("a && b || c; d | e & f", ["a", "b", "c", "d", "e", "f"]),
        ("a 'x; y' \"z && w\" \\; b", ["a 'x; y' \"z && w\" \\; b"]),
        ('for f in *; do rm "$f"; done', ["for f in *", 'rm "$f"']),
        ("echo ${X:-a;b}", ["echo ${X:-a", "b}"]),
        ("x `y z`", ["x", "y z"]),
        ('sh -c "a; b"', ['sh -c "a; b"', "a", "b"]),
        ("echo 'unclosed; rm x", ["echo 'unclosed", "rm x"]),
        ("", []),
    ],
)  # fmt: skip
def test_a_shell_line_is_taken_apart_into_its_commands(line: str, commands: list[str]) -> None:
    assert [*simple_commands(line)] == commands


@pytest.mark.parametrize("line", ["A=" + "a" * 5_000 + "'x", "-" * 20_000, "1" * 20_000, "timeout " + "-u " * 6_000])
def test_no_shell_line_keeps_anybody_waiting(line: str) -> None:
    """With Python's own expressions, the first took longer than anybody lives."""
    assert decided({"notRead": ["secrets/**"]}, f"Bash {line}", DONE).verdict == CriterionVerdict.PASS
    assert decided({"notCalled": "Bash(git push*)"}, f"Bash {line}", DONE).verdict == CriterionVerdict.PASS
