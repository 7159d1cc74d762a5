"""A recording is replayed alike, however slow the machine is: here everything that is slow takes seconds longer.

`benchmarks/replays.py` does the same many times, under several kinds of load.
"""

from pathlib import Path

from tests.support import replay_samples

PAUSE = 3.0
"""Long enough for Claude Code to make a task of a command that takes half of it when nothing is slow."""

JOBS = 2
"""Most of the time is spent in waiting."""


def test_slower_replays_have_the_same_outcome(tmp_path: Path) -> None:
    names = ("commands", "parallel")
    project = replay_samples.project(tmp_path, *names)
    recorded = replay_samples.record(project, tmp_path / "cassettes", jobs=JOBS)
    replayed = replay_samples.replay(project, tmp_path / "cassettes", pause=PAUSE, jobs=JOBS)
    assert replayed.code == 0, replayed.output
    assert replayed.divergences == []
    assert replayed.outcomes == recorded.outcomes
    assert len(recorded.outcomes) == len(names)
