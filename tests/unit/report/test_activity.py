import pytest

from tests.golden.batches import run, safe
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
    Event,
    Phase,
    PhaseStarted,
    RunStarted,
    SessionProgressed,
)
from zelda_ci.report.terminal.progress import ProgressState

RUN = run()


def board(*events: Event) -> ProgressState:
    kept = ProgressState()
    for now, event in enumerate(events):
        kept.record(event, float(now))
    return kept


def facts(*records: SessionRecord, cost: float = 0.5) -> list[str]:
    kept = board(
        RunStarted(RUN.run_id, RUN.suite),
        PhaseStarted(RUN.run_id, Phase.SESSION),
        *(SessionProgressed(RUN.run_id, record, 3, cost) for record in records),
    )
    return [cell.text for cell in kept.running[RUN.run_id].facts(83.0)]


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
        (
            [Retried(at=1, attempt=2, status=529, error=safe("x"), delay_seconds=4)],
            "trying again in 4.0 s after HTTP 529",
        ),
        ([Retried(at=1, attempt=2, error=safe("x"))], "trying again in 0.0 s after a broken connection"),
        ([AssistantSaid(at=1, message_id=safe("m"), model=safe("m"), text=safe("hello"))], "writing"),
        ([Ended(at=1, subtype=safe("success"), is_error=False)], "closing"),
        ([returned(7), Noticed(at=1, kind=safe("k"), text=safe("t"))], "thinking"),
        ([called("\x1b[2J", command="\x1b[31m")], "\\x1b[2J \\x1b[31m"),
    ],
)
def test_what_the_session_is_at(records: list[SessionRecord], doing: str) -> None:
    assert facts(*records)[-1] == doing
