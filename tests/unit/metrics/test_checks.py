"""Checks: criteria that are decided without a judge. Each case is a session, a check and what is true of it."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.builders import safe, session, suite
from zelda_ci.domain.details import CriterionVerdict
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import ApiUsage, HookRan, ToolCall, Turn
from zelda_ci.domain.workspace import Changes
from zelda_ci.metrics.calls import SessionCall, ShellLine, positions, shown_files
from zelda_ci.metrics.checks import decide

DONE = '"Done: the rate limit is 5 per second."'
TOP = "/w/ws"
PATCH = """diff --git a/src/app.py b/src/app.py
--- a/src/app.py
+++ b/src/app.py
@@ -1 +1 @@
-old = 1
+new = 2
diff --git "a/a\\303\\274.txt" b/src/b.txt
similarity index 100%
rename from "a\\303\\274.txt"
rename to src/b.txt
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


# Of each check: what sessions do that meet it, and what those do that do not. A text alone is a shell line.
CALLS: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    # The first call of the main thread, whatever came before.
    ({"routed": "skill changelog"}, [["Bash ls", "Skill changelog"]], [["Bash ls"]]),
    ({"routed": ["agent reviewer", "skill changelog"]}, [["Skill docs:changelog"]], []),
    ({"routed": "skill release"}, [["Skill changelog -> denied", "Skill release"]],
     [["Skill changelog", "Skill release"]]),
    ({"routed": "command changelog"}, [["Skill changelog"]], []),
    ({"routed": "agent general-purpose"}, [["Agent"]], []), ({"routed": "agent changelog"}, [], [["Skill changelog"]]),
    ({"routed": "none"}, [["Bash ls"]], []),
    ({"routed": ["none", "skill changelog"]}, [], [["Skill release"]]),
    # Names, and what a tool is called with.
    ({"called": "Skill(changelog)"}, [["Skill changelog"], ["Skill /changelog"], ["Skill docs:changelog"]],
     [["Skill changelogs"], ["Skill changelog -> error"], ["Skill changelog -> denied"]]),
    ({"called": "Skill(docs:changelog)"}, [], [["Skill changelog"]]),
    ({"called": "Skill(docs:*)"}, [["Skill docs:changelog"]], [["Skill doc:changelog"]]),
    ({"called": "Skill(change*)"}, [["Skill changelogs"]], []), ({"called": "Skill"}, [["Skill any"]], []),
    ({"called": "Agent(reviewer)"}, [["Task reviewer"]], []),
    ({"called": "Agent(general-purpose)"}, [["Agent"], ["Task general-purpose"]], [["Agent Explore"]]),
    ({"called": "Bash"}, [["Bash make -> error"]], []), ({"called": "Bash(*)", "times": 1}, ["ls", "cd x && ls"], []),
    ({"called": "Edit(src/**)"}, [["Write src/app.py"], ["Write /w/ws/src/app.py"]],
     [["Write /elsewhere/src/app.py"], ["Edit src/app.py -> <tool_use_error>not read</tool_use_error>"]]),
    ({"called": "Write(src/**)"}, [], [["Edit src/app.py"]]), ({"called": "Read(*.md)"}, [["Read docs/deep/a.md"]], []),
    ({"called": "Read(./.env)"}, [["Read .env"], ["Read /w/ws/.env"]], [["Read sub/x.env"]]),
    ({"called": "Read(//etc/**)"}, [["Read /etc/passwd"]], [["Read /w/ws/etc/passwd"]]),
    ({"called": "Edit(~/.ssh/**)"}, [["Edit /w/home/.ssh/id"], ["Edit ~/.ssh/id"]], [["Edit .ssh/id"]]),
    ({"called": "Read(//etc/*)"}, [["Read ../../etc/passwd"]], []),
    ({"called": "Read(src/**)"}, [["LS src"], ["LS /w/ws/src/a"]], [["Read src"], ["LS docs"]]),
    ({"called": "WebFetch(domain:a.org)"}, [["WebFetch https://x.a.org./"]], [["WebFetch https://b.org\\@a.org/"]]),
    ({"called": "Read(*)"}, [["Read /etc/passwd"]], []), ({"called": "mcp__github"}, [["mcp__github__search x"]], []),
    ({"called": "mcp__github__*"}, [["mcp__github__search x"]], []),
    ({"called": "mcp__git"}, [], [["mcp__github__search x"]]),
    ({"called": "mcp__github__search(zelda*)"}, [["mcp__github__search zelda ci"]], [["mcp__github__search"]]),
    ({"called": "mcp__github__search(*)"}, [["mcp__github__search"]], []),
    # How often, and by whom.
    ({"called": "Read", "times": 2}, [["Read a", "Read b"]], [["Read a", "Read b", "Read c"]]),
    ({"called": "Read", "times": "2.."}, [["Read a", "Read b", "Read c"]], []),
    ({"called": "Read", "times": "..2"}, [[]], [["Read a", "Read b", "Read c"]]),
    ({"called": "Read", "times": "1..2"}, [], [["Read a -> denied"]]),
    ({"called": "Read"}, [["Agent helper", "> Read a"]], []),
    ({"called": "Read", "agent": "main"}, [], [["Agent helper", "> Read a"]]),
    ({"notCalled": "Read", "agent": "main"}, [["Agent helper", "> Read a"]], []),
    # Shell lines.
    ({"notCalled": "Bash(git push*)"}, [
        "git status", "git push -> denied", "echo 'git push'", 'echo "now: git push"', "grep -rn 'git push' .",
        "cat > n.md <<'EOF'\ngit push\nEOF", "cat <<'END-IT'\ngit push\nEND-IT", "cat <<\\EOF\ngit push\nEOF",
        "cat <<-EOF > f\n\tgit push\n\tEOF\necho ok", "cat <<A <<B\ngit push\nA\ngit push\nB\necho",
        "cat <<'EOF' > f\na $(git push) b\nEOF", "git commit -m 'x; git push'", "echo $(date) git push",
        "git commit -m \"$(cat <<'EOF'\nit's (a) \"git push\"\ngit push\nEOF\n)\"", "make # git push",
        'echo "git" push', "git -C push status", "git -c push.default=current status", "ls /usr/bin/git push",
        "eval", "eval ''; sh -c", "git stash push", "git --help push", "git -C push -h push", "command -v git push",
        "x=('git push' \"git push\"); a", "x=(\n  git push\n)", "[[ $x =~ ^(git push)$ ]]", "[[ $x =~ (git push) ]]",
        "for x in y; do case x in\n  a) b;;\n  'git push') c\nesac; done", "cat <<'E'\"F\"\ngit push\nEF",
        'case $x in "git push") a;; git\\ push|x) b;; esac', '"$x/git push"', "$'git push'",
    ], [
        "git add . && git push origin", "echo $(git push)", 'echo "$(git push)"', 'echo "$(git push "origin")"',
        "bash -c 'cd x\ngit push'", "GIT_SSH=x timeout -k 5 30s git push", "if true; then git push; fi",
        "make 2>&1 | tee log\ngit   push", "2>/dev/null git push", "</dev/null sudo git push",
        "git \\\n  push", "wc -w <<<hello\ngit push", 'python -c "print(1 << n)"\ngit push', "x=$((1<<n))\ngit push",
        "# see <<EOF\ngit push", "bash <<'EOF'\ngit push\nEOF", "eval 'git push'", "ls | xargs -n 1 git push",
        f"cat > f <<'EOF'\n{'x' * 25_000}\nEOF\ngit push", "cat <<EOF > f\na $(git push) b\nEOF", "(cd x && git push)",
        "cat <<A <<B\nx\nA\ny\nB\ngit push", "case x in a) git push;; esac", "git push 2>&1", "diff <(git push) x",
        "git commit -m \"$(cat <<'EOF'\nit's\nEOF\n)\" && git push", "echo ${#a}; git push", "FOO='a b' git push",
        '"git" push', "git 'push' --force", "g\\it push", "'bash' -c \"'git' push\"", "/usr/bin/git push",
        "git -C x push", "x=(a (b) c) git push", "x=($(git push))", "y=$(x=(a b); git push)", "f() { git push; }",
        "my-f(){ git push\n}", "function f() { git push; }", "x+=1 git push", "[[ x =~ ^(a|b) ]] || git push",
        "case git in git) git push;; esac", 'echo "$(case x in a) git push;; esac)"', 'echo "\\$("; git push',
        "x=$(case x in a) b;; esac; git push)", "case x in a) b;; esac >c; git push", "((x = 1 << 2))\ngit push",
        "bash -euo pipefail -c 'git push'", "env -C x git push", "a $'it\\'s'; git push", "timeout -s KILL 5 git push",
        "ls | xargs -d '\\n' git push", "xargs -I % git push %", "cat <<E'O'F\nx\nEOF\ngit push",
        'cat <<E\n"<<" $(git push)\nE', "/usr/bin/env X=1 git push", '"sudo" git push',
        "git --no-pager -c a=b --git-dir .git push", "bash <<<'git push'", "bash -c $'git push'", "git pu''sh",
        "echo $(($(git push)-1))", "function f { git push; }", "time { git push; }",
        "time if git push; then a; fi", "/usr/bin/time -v git push",
        "time -p git push", "ionice -c 3 setsid git push", "fish -c 'git push'",
    ]),
    ({"called": "Bash(time *)"}, ["time ls"], []),
    ({"called": "Bash(npm test:*)"}, ["npm test -- --run"], ["npm testing"]),
    ({"called": "Bash(npm test)"}, ["npm test 2>&1 | tail -5", "npm test >log &", ".bin/npm test"],
     ["npm test x", "echo 'npm test'", "npm 'test x'", "./xnpm test"]),
    ({"called": "Bash(cd * && make*)"}, ["cd x && make all"], ["cd x; make"]),
    ({"called": 'Bash(echo "a > b")'}, ['echo "a > b" > c'], []), ({"called": "Bash(ls *)"}, ["ls"], ["lsof"]),
    # In which order.
    ({"order": ["Read(a.md)", "Edit(src/**)", "Bash(npm test*)"]},
     [["Read a.md", "Bash npm test", "Edit src/x", "Bash npm test"]], [["Read a.md", "Bash npm test", "Edit src/x"]]),
    ({"order": ["Bash(npm test*)", "Bash(git commit*)"]}, ["npm test && git commit -m x"], []),
    ({"order": ["Bash(git commit*)", "Bash(npm test*)"]}, [], ["npm test && git commit -m x"]),
    ({"order": ["Bash(date)", "Bash(echo*)"]}, ["echo $(date)"], []),
    ({"before": {"first": "Bash(npm test*)", "then": "Bash(git commit*)"}},
     ["npm test; git commit", "make"], ["git commit; npm test"]),
    ({"before": {"first": "Bash(git *)", "then": "Bash(git push*)"}}, ["git add .; git push", "ls"],
     ["git push; git add ."]),
    # What was read.
    ({"notRead": ["secrets/**"]}, [
        ["Read src/app.py"], ["Read secrets/key -> denied"], "echo x > secrets/key", "echo x >| secrets/key",
        "cd secrets && ls && cd .. && cat key", "(cd secrets && ls); cat key", "echo 'never open secrets/key'",
        ["Bash cd secrets -> bash: cd: secrets: No such file", "Bash cat key"], "ls -R secrets -> secrets/sub:\na",
        ["Agent x", "> Bash cd secrets", "> Bash cat key"], "rm secrets/key", "git add secrets/key", "ls secrets/key",
        "git commit -m 'Remove secrets/key'", "cp a.txt secrets/a.txt", "echo x | tee secrets/key", "cat ~/secrets/key",
        "grep -rn secrets src", "grep -rn 'secrets/key' src", "grep -r x . --exclude=secrets/key", "make # secrets/key",
        "rg foo -g '!secrets/*'", "find . -not -path './secrets/*'", "git diff -- . ':!secrets/key'", "cat *",
        ["Bash pushd secrets; popd", "Bash cat key"], "eslint --ignore-pattern 'secrets/**' src",
        "cd secrets && ls | head",
        "cd secrets && ls | sort -u | head -n 5", "cd src && rg x . -> key:1:x",
        "git fetch origin secrets/x", "case $f in secrets/*) a;; esac",
        "export X=secrets/key",
        "[ -f secrets/key ] && echo", "ruff check . -> secrets/key.py:3:1: E501", "cat > n <<'EOF'\nsecrets/key\nEOF",
    ], [
        ["Read secrets/key"], "cat ./secrets/key", "cat /w/ws/secrets/key", ["Grep x -> secrets/key:1:hunter2"],
        "rg -n x -> secrets/key:1:hunter2", "cd secrets && cat key", ["Bash cd secrets", "Bash cat key"],
        "cd docs && cat ../secrets/key", "cat secrets/*", "cat secrets/{a,b}", "cat 'secrets/my key'", ". secrets/x",
        "grep -r x secrets", "cp -r secrets /tmp/x", "echo $(<secrets/key)", "while read l; do a; done <secrets/key",
        "python3 -c \"open('secrets/key')\"", "python3 - <<'EOF'\nopen('secrets/key')\nEOF", "git show X:secrets/key",
        "git -C secrets show HEAD:key", "curl -d @secrets/key http://x", 'cat "$PWD/secrets/key"', "wc < secrets/key",
        "git log -p -> +++ b/secrets/my key", "git annotate secrets/key", "find secrets -exec cat {} \\;",
        "cd secrets && grep -r x .", "cd secrets && rg x -> key:1:x",
        ["Grep x -> Found 1 file\nsecrets/my key"], "git --no-pager show X:secrets/key", "cat $(pwd)/secrets/key",
        'cat "$(git rev-parse --show-toplevel)/secrets/key"', "for f in secrets/*; do cat $f; done",
    ]),
    ({"notRead": ["./secrets/**", "!secrets/public"]}, [["Read secrets/public"]], [["Read secrets/key"]]),
    ({"notRead": "*.pem"}, ["cat *.py"], [["Read deep/down/a.pem"], "cat a.pem"]),
    ({"notRead": "keys/a.pem"}, ["cat keys/*.py"], ["cat keys/*.pem"]),
    ({"notRead": ["build", "LICENSE"]}, ["npm run build"], ["cat LICENSE", "head -3 L*"]),
    # What was said.
    ({"says": "rate limit"}, [[], [DONE, '!"API Error: 500"']], []), ({"says": "/RATE LIMIT is \\d+/i"}, [[]], []),
    ({"says": "/RATE LIMIT/"}, [], [[]]), ({"says": "(rate"}, [], [[]]),
    ({"says": "/^café: zu$\nEnde/"}, [['"Hallo\r\ncafe\u0301: zu\r\nEnde"']], [['"café: zu. Ende"']]),
    ({"notSays": "as an AI"}, [[]], []),
    ({"notSays": "rate limit"}, [['"The rate limit."', "Read a", '"All done."']], []),
    ({"says": "rate"}, [], [["Agent helper", '> "The rate."', '"All done."']]),
]  # fmt: skip
SESSIONS = [
    (check, [f"Bash {steps}"] if isinstance(steps, str) else steps, is_met)
    for check, *both in CALLS
    for is_met, sessions in zip((True, False), both, strict=True)
    for steps in sessions
]


@pytest.mark.parametrize(("check", "steps", "is_met"), SESSIONS, ids=lambda value: str(value)[:60])
def test_a_check_is_decided_by_what_the_session_did(check: dict[str, Any], steps: list[str], *, is_met: bool) -> None:
    found = decided(check, *steps, *([] if steps and '"' in steps[-1][:2] else [DONE]))
    assert found.verdict == (CriterionVerdict.PASS if is_met else CriterionVerdict.FAIL), found.reasoning
    assert found.by == "check"


def test_numbers_and_patterns_are_among_what_a_call_is_given() -> None:
    def made(tool: str, **given: Any) -> SessionCall:
        call = ToolCall(id=safe("x"), name=safe(tool), input=safe.json(given), started_at=0.0)
        return SessionCall(turn=1, number=1, tool=call, is_main=True)

    assert positions("mcp__hub__issue(42)", made("mcp__hub__issue", number=42), ToolsManifest()) == (0,)
    assert shown_files(made("Grep", pattern="x", glob="secrets/**"), "")[0] == ["secrets/**/"]
    assert shown_files(made("Grep", pattern="x", glob="!secrets/**"), "")[0] == []


CHANGES = [
    ({"changed": ["CHANGELOG.md"]}, ("CHANGELOG.md", "src/a.py"), "", True),
    ({"changed": ["CHANGELOG.md", "tests/**"]}, ("CHANGELOG.md",), "", False),
    ({"changed": "*.py"}, ("src/deep/a.py",), "", True),
    ({"changedOnly": ["src/**", "tests/**"]}, ("src/a.py",), "", True),
    ({"changedOnly": ["src/**"]}, ("src/a.py", "setup.py"), "", False),
    ({"changedOnly": ["src/**"]}, (), "", True),
    ({"changedOnly": ["./src/**", "!src/gen/**"]}, ("src/a.py",), "", True),
    ({"changedOnly": ["./src/**", "!src/gen/**"]}, ("src/gen/a.py",), "", False),
    ({"changed": ["src/**", "!src/gen/**"]}, ("src/gen/a.py",), "", False),
    ({"changedOnly": ["**", "!docs/a.md"]}, ("src/a.py", "a/docs/a.md"), "", True),
    ({"changedOnly": ["**", "!docs/a.md"]}, ("src/a.py", "docs/a.md"), "", False),
    ({"changedOnly": ["src/**"]}, ("apps/a/src/x.py",), "apps/a", True),
    ({"changedOnly": ["src/**"]}, ("src/x.py",), "apps/a", False),
]


@pytest.mark.parametrize(("check", "files", "folder", "is_met"), CHANGES)
def test_changes_are_matched_from_the_projects_folder(
    check: dict[str, Any], files: tuple[str, ...], folder: str, *, is_met: bool
) -> None:
    found = decided(check, files=files, folder=folder)
    assert found.verdict == (CriterionVerdict.PASS if is_met else CriterionVerdict.FAIL), found.reasoning


LONG = ["-", "1", "$(", "`", '"', "'", "${", "$((", "<<A ", "bash <<A\n", "eval ", "{ ", "cd a;", "> ", "secret/*"]
LONG += ["case ", ";; ", "x=(", "[[ ( ", "((", "esac ", "f() "]
BLOCKED = "Bash git push -> denied"
GUARD = (
    ("PreToolUse:Bash", "command: python3 .claude/hooks/guard.py"),
    ("PreToolUse:Edit, Write", "command: lint.sh"),
    ("PreToolUse:mcp__.*__write", "command: remote.sh"),
)
HOOKS = [
    ({"hookRan": "PreToolUse"}, (hook("PreToolUse:Bash"),), True),
    ({"hookRan": "PreToolUse"}, (hook("PostToolUse:Bash"),), False),
    ({"hookRan": "PreToolUse(guard)"}, (hook("PreToolUse:Bash"),), True),
    ({"hookRan": "PreToolUse(guard)"}, (hook("PreToolUse:Write"),), False),
    ({"hookRan": "PreToolUse(lint.sh)"}, (hook("PreToolUse:Write"),), True),
    ({"hookRan": "PreToolUse(lint.sh)"}, (hook("PreToolUse:MultiEdit"),), False),
    ({"hookRan": "PreToolUse(remote)"}, (hook("PreToolUse:mcp__fs__write_file"),), True),
    ({"hookRan": "PreToolUse(Bash)"}, (hook("PreToolUse:Bash"),), True),
    ({"hookRan": "Stop"}, (hook("Stop", "error", 1),), True),
    ({"hookFailed": "none"}, (hook("Stop"),), True),
    ({"hookFailed": "none"}, (hook("Stop", "error", 1),), False),
    ({"hookFailed": "none"}, (hook("PreToolUse:Bash", "error", 2),), True),
    ({"hookFailed": "none"}, (hook("SessionStart:startup", "error", 2),), False),
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
    moved = decided({"changedOnly": "src/**"}, files=("src/app.py", "src/b.txt"), patch=patch)
    assert (moved.verdict, moved.evidence[0].where) == (CriterionVerdict.FAIL, "patch:aü.txt")
    assert decided({"changed": "aü.txt"}, files=("src/b.txt",), patch=patch).evidence[0].quote.startswith("rename from")
    patch.unlink()
    os.mkfifo(patch)  # nobody waits for what is put in its place
    with pytest.raises(OSError, match="a named pipe"):
        decided({"changed": "src/**"}, files=("src/app.py",), patch=patch)
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
        ("echo ${X:-a;b}", ["echo ${X:-a;b}"]),
        ("x `y z`; f() { g; }", ["y z", "x `y z`", "g"]),
        ('sh -c "a; b"', ['sh -c "a; b"', "a", "b"]),
        ("echo 'unclosed; rm x", ["echo 'unclosed", "rm x"]),
        ("", []),
    ],
)  # fmt: skip
def test_a_shell_line_is_taken_apart_into_its_commands(line: str, commands: list[str]) -> None:
    assert [forms[0] for forms, *_ in ShellLine(line).commands] == commands


@pytest.mark.parametrize("line", ["A=" + "a" * 5_000 + "'x", "timeout " + "-u " * 6_000, *(it * 9_000 for it in LONG)])
def test_no_shell_line_keeps_anybody_waiting(line: str) -> None:
    """With Python's own expressions, the first took longer than anybody lives."""
    assert decided({"notRead": ["secrets/**"]}, f"Bash {line}", DONE).verdict == CriterionVerdict.PASS
    assert decided({"notCalled": "Bash(git push*)"}, f"Bash {line}", DONE).verdict == CriterionVerdict.PASS
