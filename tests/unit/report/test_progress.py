import io
import os
import re
import threading

import pytest
from rich.console import Console

from tests.golden.batches import broken, run, safe
from tests.support.patience import PATIENCE
from zelda_ci.cli.boundary import CommandOutput
from zelda_ci.domain.session import (
    AssistantSaid,
    Ended,
    Noticed,
    Retried,
    SessionRecord,
    ToolCalled,
    ToolReturned,
)
from zelda_ci.events import (
    Emit,
    Event,
    Phase,
    PhaseStarted,
    RunFinished,
    RunsPlanned,
    RunStarted,
    SessionProgressed,
    Warned,
)
from zelda_ci.report.terminal.pages import is_plain, open_console
from zelda_ci.report.terminal.progress import Progress, ProgressState

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
    emit(RunsPlanned({GOOD.suite: None, LOST.suite: None}, 2))
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
    with Progress(log(stream), plain=True) as emit:
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
    with Progress(terminal(stream), plain=False) as emit:
        story(emit)
        assert stream.wait_for("5 turns    $0.0123  trying again")
        assert stream.wait_for("0 of 2 done, $0.0123 so far")
    assert stream.getvalue().endswith("\x1b[2K")


@pytest.mark.parametrize("width", [30, 45, 60, 80])
def test_moving_lines_fit_the_terminal_and_show_no_half_numbers(width: int) -> None:
    stream = Screen()
    with Progress(terminal(stream, width=width), plain=False) as emit:
        story(emit)
        assert stream.wait_for("0 of 2 done")
    frames = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue()).replace("\r", "\n").splitlines()
    assert max(map(len, frames)) < width
    assert {found for line in frames for found in re.findall(r"\$[\d.]+", line)} <= {"$0.0123", "$0.0000"}


@pytest.mark.parametrize("plain", [True, False])
def test_runs_go_on_when_the_reader_has_gone(*, plain: bool) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    stream = io.TextIOWrapper(io.BufferedWriter(CommandOutput(writer)), encoding="utf-8")
    console = Console(file=stream, width=80, force_terminal=True, _environ={})
    with Progress(console, plain=plain) as emit:
        story(emit)
        end(emit)
    stream.flush()
    os.close(writer)


def test_what_is_no_terminal_gets_plain_lines_even_when_colours_are_forced() -> None:
    assert is_plain(open_console(Screen()))
    assert is_plain(terminal(Screen()))


@pytest.mark.parametrize("plain", [True, False])
def test_steps_are_shown_as_they_happen_where_that_is_wanted(*, plain: bool) -> None:
    look = AssistantSaid(at=1, message_id=safe("m"), model=safe("x"), text=safe("I look."))
    failed = returned().replace(output=safe("no such folder"), is_error=True)
    thinking = look.replace(text=safe("Hidden."), thinking=True)
    records: list[SessionRecord] = [thinking, look, called("Bash", command="ls"), failed, NOISE]
    shown = {True: io.StringIO(), False: io.StringIO()}
    for steps, stream in shown.items():
        with Progress(log(stream), plain=plain, steps=steps) as emit:
            emit(RunStarted("r1", "rest-endpoint"))
            for record in records:
                emit(SessionProgressed("r1", record, 1, 0.1))
    lines = [line.split("rest-endpoint", 1)[1].lstrip(": ") for line in shown[True].getvalue().splitlines() if line]
    assert lines == ["I look.", "Bash ls", "failed: no such folder", "trying again in 4.0 s after HTTP 529"]
    assert "Bash" not in shown[False].getvalue()


def activity(*records: SessionRecord) -> str:
    kept = ProgressState()
    events: list[Event] = [RunStarted(GOOD.run_id, GOOD.suite), PhaseStarted(GOOD.run_id, Phase.SESSION)]
    for event in (*events, *(SessionProgressed(GOOD.run_id, record, 3, 0.5) for record in records)):
        kept.record(event, 0.0)
    return kept.running[GOOD.run_id].facts(83.0)[-1].text


def called(name: str, number: int = 1, **arguments: object) -> ToolCalled:
    return ToolCalled(
        at=1, message_id=safe("m"), model=safe("m"), id=safe(f"t{number}"), name=safe(name), input=safe.json(arguments)
    )


def returned(number: int = 1) -> ToolReturned:
    return ToolReturned(at=2, id=safe(f"t{number}"), output=safe("ok"))


@pytest.mark.parametrize(
    ("records", "doing"),
    [
        ([called("Read"), returned()], "thinking"),
        ([called("Read", 1), called("Bash", 2, command="make  test\n"), returned(1)], "Bash make test"),
        ([called("Bash", command=""), called("Odd", 2, weird={"x": 1})], "Odd"),
        ([Retried(at=1, attempt=2, error=safe("x"))], "trying again in 0.0 s after a broken connection"),
        ([AssistantSaid(at=1, message_id=safe("m"), model=safe("m"), text=safe("hello"))], "writing"),
        ([Ended(at=1, subtype=safe("success"), is_error=False)], "closing"),
        ([returned(7), Noticed(at=1, kind=safe("k"), text=safe("t"))], "thinking"),
        ([called("\x1b[2J", command="\x1b[31m")], "\\x1b[2J \\x1b[31m"),
    ],
)
def test_what_the_session_is_at(records: list[SessionRecord], doing: str) -> None:
    assert activity(*records) == doing
