"""A recording is replayed alike, however slow the machine is: here everything that is slow takes seconds longer.

`benchmarks/replays.py` does the same many times, under several kinds of load.
"""

from pathlib import Path

from tests.support import replay_samples
from tests.support.replay_samples import SAMPLES

PAUSE = 3.0
"""Long enough for Claude Code to make a task of a command that takes half of it when nothing is slow."""

JOBS = 5
"""All at once: most of the time is spent in waiting."""


def test_slower_replays_have_the_same_outcome(tmp_path: Path) -> None:
    names = [name for name in SAMPLES if not SAMPLES[name].files]
    project = replay_samples.project(tmp_path, *names)
    recorded = replay_samples.record(project, tmp_path / "cassettes", jobs=JOBS)
    replayed = replay_samples.replay(project, tmp_path / "cassettes", pause=PAUSE, jobs=JOBS)
    assert replayed.code == 0, replayed.output
    assert replayed.divergences == []
    assert replayed.outcomes == recorded.outcomes
    assert len(recorded.outcomes) == len(names)


def test_slow_hooks_and_servers_change_no_replay_but_another_output_stops_it(tmp_path: Path) -> None:
    project = replay_samples.project(tmp_path, "hooks")
    recorded = replay_samples.record(project, tmp_path / "cassettes")
    replayed = replay_samples.replay(project, tmp_path / "cassettes", pause=PAUSE)
    assert replayed.code == 0, replayed.output
    assert replayed.divergences == []
    assert replayed.outcomes == recorded.outcomes

    project.write({"README.md": "# Another sample\n"})
    project.commit()
    stopped = replay_samples.replay(project, tmp_path / "cassettes")
    assert stopped.code == 2
    assert "Another sample" in stopped.output
