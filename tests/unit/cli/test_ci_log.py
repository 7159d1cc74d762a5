"""The log of a step: whose lines are folded together."""

import io

from tests.builders import result
from tests.support.runner import commands
from zelda_ci.cli.ci import _Grouped
from zelda_ci.events import BatchStarted, Event, RunFinished, RunStarted
from zelda_ci.github.workflow_commands import Log


def grouped(*happened: Event) -> list[str]:
    stream = io.StringIO()
    listen = _Grouped(Log(stream), lambda _: None)
    for event in happened:
        listen(event)
    return [f"{command.name} {command.data}".strip() for command in commands(stream.getvalue())]


def test_runs_one_after_the_other_are_folded_one_by_one_and_side_by_side_together() -> None:
    done, a, b = RunFinished(result()), RunStarted("a-1", "a"), RunStarted("b-1", "b")
    assert grouped(BatchStarted(("a", "b"), 1), a, done, b, done) == ["group a", "endgroup", "group b", "endgroup"]
    assert grouped(BatchStarted(("a", "b"), 2), a, b, done, done) == ["group Runs", "endgroup"]
