"""Whatever escapes a command, and whoever reads what it prints or does not: the exit code tells the truth."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import COMMAND, environment
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text

STEP = """\
import sys
from zelda_ci import action
def ci(*_):
{body}
action.ci = ci
sys.argv = ["zelda", "ci"]
from zelda_ci.__main__ import main
main()
"""
"""What cannot be provoked from outside is raised where everything that a step does is done."""

SOCKET = """\
import socket
one, other = socket.socketpair()
other.close()
one.sendall(b"x")
"""
RECURSION = "def deeper(): deeper()\ndeeper()"
UNSPEAKABLE = "class Mute(Exception):\n    def __str__(self): raise SystemExit(0)\nraise Mute"

ESCAPED = {
    "SystemExit": ("raise SystemExit", 2),
    "SystemExit(None)": ("raise SystemExit(None)", 2),
    "SystemExit(0)": ("sys.exit(0)", 2),
    "SystemExit(1)": ("sys.exit(1)", 2),
    "a broken pipe": ("raise BrokenPipeError", 2),
    "a broken pipe with its number": ("raise OSError(32, 'Broken pipe')", 2),
    "a socket whose other end has gone": (SOCKET, 2),
    "a connection": ("raise ConnectionResetError", 2),
    "no more input": ("raise EOFError", 2),
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


def escaping(tmp_path: Path, body: str, redirection: str = "") -> int:
    script = tmp_path / "step.py"
    script.write_text(STEP.format(body="\n".join(f"    {line}" for line in body.splitlines())))
    line = f'"$1" "$2" {redirection}'
    return subprocess.run(
        ["bash", "-c", line, "bash", sys.executable, str(script)],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    ).returncode


@pytest.mark.parametrize("what", ESCAPED)
def test_what_escapes_a_step_is_no_success(tmp_path: Path, what: str) -> None:
    body, code = ESCAPED[what]
    assert escaping(tmp_path, body) == code


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-", ">/dev/full", "2>/dev/full", ">/dev/full 2>&1"])
@pytest.mark.parametrize("what", ["SystemExit(0)", "a socket whose other end has gone", "an interruption"])
def test_nor_where_nothing_can_be_said(tmp_path: Path, what: str, redirection: str) -> None:
    body, code = ESCAPED[what]
    assert escaping(tmp_path, body, redirection) == code


def shell(project: Project, line: str, api: str | None = None) -> int:
    """The exit code of a line in which `zelda` stands for the command."""
    line = f'zelda() {{ {" ".join(COMMAND)} "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", line],
        cwd=project.path,
        env=environment(project, api),
        capture_output=True,
        timeout=90,
        check=False,
    ).returncode


@pytest.mark.parametrize(("test", "code"), [("true", 0), ("false", 1), ("no-such-program-anywhere", 2)])
@pytest.mark.parametrize("reader", ["| head -n 1", "| true", ">&-", "2>&-", ">/dev/null"])
def test_a_run_has_its_own_code_whoever_listens(tmp_path: Path, test: str, code: int, reader: str) -> None:
    project = repository(tmp_path, {"zelda/test-a.yaml": f"prompt: Greet.\ntestCommand: '{test}'\n"})
    with ScriptedApi([text("Done.")]) as api:
        assert shell(project, f"zelda run {reader}; exit ${{PIPESTATUS[0]}}", api.url) == code


@pytest.mark.parametrize("command", ["--help", "validate", "validate --json", "--version", "-V"])
@pytest.mark.parametrize(("reader", "code"), [("| true", 0), (">&-", 0), (">/dev/full", 2), ("2>/dev/full", 0)])
def test_what_could_not_be_written_is_a_failure_unless_nobody_wanted_it(
    tmp_path: Path, command: str, reader: str, code: int
) -> None:
    project = repository(tmp_path, {"zelda/test-a.yaml": "prompt: Greet.\n"})
    assert shell(project, f"zelda {command} {reader}; exit ${{PIPESTATUS[0]}}") == code


def test_a_closed_output_is_not_the_next_file_that_is_opened(tmp_path: Path) -> None:
    project = repository(tmp_path, {"zelda/test-a.yaml": "prompt: Greet.\ntestCommand: echo fine\n"})
    with ScriptedApi([text("Done.")]) as api:
        assert shell(project, "zelda run <&- >&- 2>&-", api.url) == 0
    for file in project.results.rglob("*"):
        assert file.is_dir() or b"Exit code" not in file.read_bytes(), file
