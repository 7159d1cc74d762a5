"""A real pseudo-terminal and a real pipe: progress that is cut off, and names that want to act on the terminal."""

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.golden.batches import unscored
from tests.golden.ci_reports import batch, trial
from tests.support.command import COMMAND
from tests.support.patience import PATIENCE
from zelda_ci.domain.measures import Metric

PROGRAM = [sys.executable, "-m", "tests.support.progress_of_a_run"]
PROJECT = Path(__file__).parents[2]
ENDLESS = "1000000"


class Terminal:
    """The side of a pseudo-terminal at which the user sits."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self.master = master
        self.process = process
        self.seen = b""

    def read(self) -> bytes:
        """What comes next; nothing once the program has let go of the terminal."""
        try:
            chunk = os.read(self.master, 65_536)
        except OSError:
            return b""
        self.seen += chunk
        return chunk

    def wait_for(self, words: bytes) -> None:
        while words not in self.seen:
            assert self.read(), self.seen

    def rest(self) -> None:
        while self.read():
            pass


@contextmanager
def on_a_terminal(
    *arguments: str, term: str = "xterm-256color", program: Sequence[str] = PROGRAM, cwd: Path = PROJECT
) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*program, *arguments],
        cwd=cwd,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": term, "COLUMNS": "80", "LINES": "24", "PYTHONUTF8": "1"},
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.mark.parametrize("cut", [signal.SIGINT, signal.SIGKILL], ids=lambda cut: cut.name)
def test_the_cursor_is_visible_however_progress_ends(cut: signal.Signals) -> None:
    with on_a_terminal(ENDLESS) as terminal:
        terminal.wait_for(b"turns")
        terminal.process.send_signal(cut)
        terminal.rest()
        assert re.findall(rb"\x1b\[\?25[lh]", terminal.seen)[-1] == b"\x1b[?25h"


def test_a_dumb_terminal_gets_lines_without_any_control() -> None:
    with on_a_terminal("3", term="dumb") as terminal:
        terminal.rest()
        assert b"example  session" in terminal.seen
        assert b"\x1b" not in terminal.seen


EVIL = "\x1b[31mEVIL\x1b]0;owned\x07\x9b2J\u202e"
SPELT = rb"\x1b[31mEVIL\x1b]0;owned\x07\x9b2J\u202e"


@pytest.fixture
def hostile_results(tmp_path: Path) -> list[str]:
    """Two files to compare, of a suite whose name acts on a terminal and which could not be evaluated."""
    old, new = trial(EVIL, "P", criteria=("x",)), trial(EVIL, "P", criteria=("x",), minute=9)
    failed = {**new.evaluations, Metric.EFFICIENCY: unscored(Metric.EFFICIENCY, "boom", failed=True)}
    for name, run in (("a.json", old), ("b.json", new.replace(evaluations=failed))):
        (tmp_path / name).write_text(batch([run]).model_dump_json(by_alias=True, exclude_none=True))
    return ["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")]


def test_names_of_a_project_cannot_act_on_a_terminal(hostile_results: list[str], tmp_path: Path) -> None:
    with on_a_terminal(*hostile_results, program=COMMAND, cwd=tmp_path) as terminal:
        terminal.rest()
    report, _, error = terminal.seen.partition(b"error: ")
    for text in (report, error):
        assert SPELT in text
    assert re.sub(rb"\x1b\[[0-9;]*m", b"", terminal.seen).find(b"\x1b") == -1
    for acting in (b"\x1b[31mEVIL", b"\x07", "\x9b".encode(), "\u202e".encode()):
        assert acting not in terminal.seen


@pytest.mark.parametrize("arguments", [(), ("show", EVIL)])
def test_what_is_printed_into_a_pipe_cannot_act_on_the_terminal_behind_it(
    arguments: Sequence[str], hostile_results: list[str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [*COMMAND, *(arguments or hostile_results)], cwd=tmp_path, capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 2
    assert b"EVIL" in done.stderr
    assert not any(acting in done.stdout + done.stderr for acting in (b"\x1b", b"\x07", "\x9b".encode()))
