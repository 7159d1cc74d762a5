"""Progress on a real pseudo-terminal and on a real pipe, cut off in the middle."""

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE

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
def on_a_terminal(*arguments: str, term: str = "xterm-256color") -> Iterator[Terminal]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=PROJECT,
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


def test_the_program_goes_on_when_the_reader_of_its_output_has_gone() -> None:
    process = subprocess.Popen([*PROGRAM, "50"], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    process.stdout.close()
    _, errors = process.communicate(timeout=PATIENCE)
    assert errors == b"the end\n"
    assert process.returncode == 0
