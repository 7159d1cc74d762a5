import io
import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from rich.console import Console

from tests.golden.batches import broken, run, safe
from tests.support.patience import PATIENCE
from tests.unit.compare.runs import redact
from zelda_ci.cli.boundary import CommandOutput
from zelda_ci.domain.session import AssistantSaid, Retried, SessionRecord, ToolCalled, ToolReturned
from zelda_ci.events import (
    BatchStarted,
    Emit,
    Phase,
    PhaseStarted,
    RunFinished,
    RunStarted,
    SessionProgressed,
    Warned,
)
from zelda_ci.report.terminal.console import is_plain, open_console
from zelda_ci.report.terminal.progress import LiveProgress, PlainProgress

GOOD = run("rest-endpoint")
LOST = run("fix-typo", **broken("API_OVERLOADED", "The API stayed overloaded (529)."))
NOISE = Retried(at=1, attempt=1, status=529, error=safe("x"), delay_seconds=4)


class Screen(io.StringIO):
    """Remembers what was written and lets a test wait for it."""

    encoding = "utf-8"

    def __init__(self) -> None:
        super().__init__()
        self.changed = threading.Condition()

    def write(self, text: str) -> int:
        with self.changed:
            self.changed.notify_all()
            return super().write(text)

    def wait_for(self, words: str) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: words in self.getvalue(), timeout=PATIENCE)


def terminal(stream: io.StringIO, width: int = 80, height: int = 25) -> Console:
    return Console(file=stream, width=width, height=height, force_terminal=True, color_system=None, _environ={})


def log(stream: io.StringIO) -> Console:
    return Console(file=stream, width=80, _environ={})


def story(emit: Emit) -> None:
    emit(BatchStarted((GOOD.suite, LOST.suite), 2))
    for result in (GOOD, LOST):
        emit(RunStarted(result.run_id, result.suite))
        emit(PhaseStarted(result.run_id, Phase.SESSION))
    emit(SessionProgressed(GOOD.run_id, NOISE, 5, 0.0123))


def end(emit: Emit) -> None:
    emit(Warned("the patch\nis cut", GOOD.run_id))
    emit(RunFinished(LOST))
    emit(RunFinished(GOOD))


def test_a_log_gets_a_line_for_each_phase_and_each_run() -> None:
    stream = Screen()
    with PlainProgress(log(stream)) as emit:
        story(emit)
        end(emit)
    assert stream.getvalue().splitlines() == [
        "   2 runs, 2 at a time",
        "   rest-endpoint  session",
        "   fix-typo  session",
        " warning rest-endpoint: the patch is cut",
        " ✗ fix-typo  failed · 1.9 s",
        "   The API stayed overloaded (529).",
        " · rest-endpoint  completed, your tests pass · 9 turns · $0.1789 · 1m 25s",
    ]


def test_a_terminal_shows_every_run_under_way() -> None:
    stream = Screen()
    with LiveProgress(terminal(stream)) as emit:
        story(emit)
        assert stream.wait_for("5 turns    $0.0123  trying again")
        assert stream.wait_for("0 of 2 done, $0.0123 so far")


def test_the_terminal_is_clean_and_its_cursor_visible_afterwards() -> None:
    stream = Screen()
    with suppress(KeyboardInterrupt), LiveProgress(terminal(stream)) as emit:
        story(emit)
        assert stream.wait_for("rest-endpoint")
        raise KeyboardInterrupt
    shown = stream.getvalue()
    assert re.findall(r"\x1b\[\?25[lh]", shown)[-1] == "\x1b[?25h"
    assert shown.endswith("\x1b[2K")


@pytest.mark.parametrize("width", [30, 45, 60, 80])
def test_moving_lines_fit_the_terminal_and_show_no_half_numbers(width: int) -> None:
    stream = Screen()
    with LiveProgress(terminal(stream, width=width)) as emit:
        story(emit)
        assert stream.wait_for("0 of 2 done")
    frames = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue()).replace("\r", "\n").splitlines()
    assert max(map(len, frames)) < width
    assert {found for line in frames for found in re.findall(r"\$[\d.]+", line)} <= {"$0.0123", "$0.0000"}


@pytest.mark.parametrize("sink", [PlainProgress, LiveProgress])
def test_runs_go_on_when_the_reader_has_gone(sink: Callable[[Console], PlainProgress | LiveProgress]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    stream = io.TextIOWrapper(io.BufferedWriter(CommandOutput(writer)), encoding="utf-8")
    console = Console(file=stream, width=80, force_terminal=True, _environ={})
    with sink(console) as emit:
        story(emit)
        end(emit)
    stream.flush()
    os.close(writer)


def test_what_is_no_terminal_gets_plain_lines_even_when_colours_are_forced() -> None:
    assert is_plain(open_console(Screen()))
    assert is_plain(terminal(Screen()))


@pytest.mark.parametrize("sink", [PlainProgress, LiveProgress])
def test_steps_are_shown_as_they_happen_where_that_is_wanted(sink: type[PlainProgress] | type[LiveProgress]) -> None:
    thinking = AssistantSaid(at=1, message_id=safe("m"), model=safe("x"), text=safe("Hidden."), thinking=True)
    called = ToolCalled(
        at=1,
        message_id=safe("m"),
        model=safe("x"),
        id=safe("t"),
        name=safe("Bash"),
        input=redact.json({"command": "ls"}),
    )
    returned = ToolReturned(at=1, id=safe("t"), output=safe("no such folder"), is_error=True)
    records: list[SessionRecord] = [
        thinking,
        thinking.replace(text=safe("I look."), thinking=False),
        called,
        returned,
        NOISE,
    ]
    shown = {True: io.StringIO(), False: io.StringIO()}
    for steps, stream in shown.items():
        with sink(log(stream), steps=steps) as emit:
            emit(RunStarted("r1", "rest-endpoint"))
            for record in records:
                emit(SessionProgressed("r1", record, 1, 0.1))
    lines = [line.split("rest-endpoint", 1)[1].lstrip(": ") for line in shown[True].getvalue().splitlines() if line]
    assert lines == ["I look.", "Bash ls", "failed: no such folder", "trying again in 4.0 s after HTTP 529"]
    assert "Bash" not in shown[False].getvalue()
