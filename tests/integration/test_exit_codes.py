"""Whatever escapes a command, and whoever reads what it prints or does not: the exit code tells the truth."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.command import COMMAND, environment, results
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text

STEPS = """\
import json, os, sys
from zelda_ci.ci import action
from zelda_ci.__main__ import main
from zelda_ci.cli import boundary, ci

def ends(body):
    child = os.fork()
    if child == 0:
        scope = {}
        exec("def ci(*_):\\n" + "".join(f"    {line}\\n" for line in body.splitlines()), scope)
        action.ci = scope["ci"]
        sys.argv = ["zelda", "ci"]
        main()
        os._exit(99)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code

codes = {what: ends(body) for what, body in json.loads(sys.argv[2]).items()}
with open(sys.argv[1], "w") as file:
    json.dump(codes, file)
"""
"""What cannot be provoked from outside is raised where everything that a step does is done.

Each step is a process of its own, forked from one that has imported everything: only `main` does not end in it.
"""

SOCKET = """\
import socket
one, other = socket.socketpair()
other.close()
one.sendall(b"x")
"""
RECURSION = "def deeper(): deeper()\ndeeper()"
UNSPEAKABLE = "class Mute(Exception):\n    def __str__(self): raise SystemExit(0)\nraise Mute"

ESCAPED = {
    "SystemExit(0)": ("sys.exit(0)", 2),
    "SystemExit(1)": ("sys.exit(1)", 2),
    "a broken pipe": ("raise BrokenPipeError", 2),
    "a socket whose other end has gone": (SOCKET, 2),
    "memory": ("raise MemoryError", 2),
    "recursion": (RECURSION, 2),
    "a generator": ("raise GeneratorExit", 2),
    "a cancellation": ("import asyncio; raise asyncio.CancelledError", 2),
    "a group": ("raise ExceptionGroup('several', [ValueError(), SystemError()])", 2),
    "a group that would end well": ("raise BaseExceptionGroup('several', [SystemExit(0), BrokenPipeError()])", 2),
    "a group with an interruption": ("raise BaseExceptionGroup('several', [ValueError(), KeyboardInterrupt()])", 130),
    "an interruption": ("raise KeyboardInterrupt", 130),
    "what cannot be said": (UNSPEAKABLE, 2),
    "a usage": ("import click; raise click.UsageError('wrong')", 2),
    "an own code": ("return 256", 2),
}


def escaping(tmp_path: Path, whats: Iterable[str], redirection: str = "") -> dict[str, int]:
    """How steps end, by what escapes them."""
    codes = tmp_path / "codes"
    bodies = json.dumps({what: ESCAPED[what][0] for what in whats})
    done = subprocess.run(
        ["bash", "-c", f'"$@" {redirection}', "bash", sys.executable, "-c", STEPS, str(codes), bodies],
        cwd=tmp_path,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert codes.exists(), done.stderr
    found: dict[str, int] = json.loads(codes.read_text())
    return found


def test_what_escapes_a_step_is_no_success(tmp_path: Path) -> None:
    assert escaping(tmp_path, ESCAPED) == {what: code for what, (_, code) in ESCAPED.items()}


@pytest.mark.parametrize("redirection", [">&- 2>&-", ">/dev/full 2>&1"])
def test_nor_where_nothing_can_be_said(tmp_path: Path, redirection: str) -> None:
    some = ("SystemExit(0)", "a socket whose other end has gone", "an interruption")
    assert escaping(tmp_path, some, redirection) == {what: ESCAPED[what][1] for what in some}


def shell(project: Project, line: str, api: str | None = None) -> int:
    """The exit code of a line in which `zelda` stands for the command."""
    line = f'zelda() {{ {shlex.join(COMMAND)} "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", line],
        cwd=project.path,
        env=environment(project, api),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    ).returncode


CODES = {1: "false", 2: "no-such-program-anywhere"}


@pytest.mark.parametrize(("reader", "code"), [("| head -n 1", 2), (">&- 2>&-", 1)])
def test_a_run_has_its_own_code_whoever_listens(tmp_path: Path, reader: str, code: int) -> None:
    """Who reads and how it ends is the business of different code: each is tried with each of some other."""
    project = repository(tmp_path, {"zelda/test-a.yaml": f"prompt: Greet.\ntestCommand: '{CODES[code]}'\n"})
    with ScriptedApi([text("Done.")]) as api:
        assert shell(project, f"zelda run {reader}; exit ${{PIPESTATUS[0]}}", api.url) == code


READERS = {
    "validate": {"| true": 0, ">&-": 0, ">/dev/full": 2, "2>/dev/full": 0},
    "--version": {">&-": 0, ">/dev/full": 2},
    "--help": {">/dev/full": 2},
}


@pytest.mark.parametrize("command", READERS)
def test_what_could_not_be_written_is_a_failure_unless_nobody_wanted_it(tmp_path: Path, command: str) -> None:
    """Results, the version and the help are written in three places."""
    project = repository(tmp_path, {"zelda/test-a.yaml": "prompt: Greet.\n"})
    for reader, code in READERS[command].items():
        assert shell(project, f"zelda {command} {reader}; exit ${{PIPESTATUS[0]}}") == code, reader


# A Claude Code that reads no CLAUDE.md unless it is asked to, as it would be after `--bare` has become what it does.
BARE = """\
import sys
from zelda_ci.__main__ import main
from zelda_ci.execution import launch
launch.GUARDS["claudeMdExcludes"] = ["**"]
sys.argv = ["zelda", "run"]
main()
"""


def test_a_run_whose_session_was_not_told_of_claude_md_is_broken_and_not_green(tmp_path: Path) -> None:
    """Others are: every run of a project with a CLAUDE.md would be broken by a false alarm."""
    suite = "prompt: Greet.\nmetrics: {toolUsage: false, requirementFulfillment: false}\n"
    project = repository(tmp_path, {"zelda/test-greeting.yaml": suite, "CLAUDE.md": "Always greet in Latin.\n"})
    with ScriptedApi([text("Salve.")]) as api:
        done = subprocess.run(
            [sys.executable, "-c", BARE],
            cwd=project.path,
            env=environment(project, api.url),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "CLAUDE.md" in done.stdout + done.stderr
    assert [it["failure"]["code"] for it in results(project)] == ["MEMORY_MISSING"]
