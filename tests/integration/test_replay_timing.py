"""A recording is replayed alike, however slow the machine is: here everything that is slow takes seconds longer.

`benchmarks/replays.py` does the same many times, under several kinds of load.
"""

from pathlib import Path

import pytest

from tests.support import replay_samples
from tests.support.replay_samples import SAMPLES

PAUSE = 4.0
"""Long enough for Claude Code to make a task of every command."""


IN_ORDER = [name for name in SAMPLES if name != "agents"]
"""Sub-agents that work side by side may still ask in another order on a busy machine: docs/model-proxy.md says so."""


@pytest.mark.parametrize("name", IN_ORDER)
def test_a_slower_replay_has_the_same_outcome(tmp_path: Path, name: str) -> None:
    project = replay_samples.project(tmp_path, name)
    replay_samples.record(project, tmp_path / "cassettes")
    (recorded,) = replay_samples.runs(project)
    replayed = replay_samples.replay(project, tmp_path / "cassettes", pause=PAUSE)
    assert replayed.code == 0, replayed.output
    assert replayed.divergences == []
    assert replayed.outcome == replay_samples.outcome(recorded)


def test_a_replay_in_which_a_command_finds_something_else_still_stops(tmp_path: Path) -> None:
    project = replay_samples.project(tmp_path, "hooks")
    replay_samples.record(project, tmp_path / "cassettes")
    project.write({"README.md": "# Another sample\n"})
    project.commit()
    replayed = replay_samples.replay(project, tmp_path / "cassettes")
    assert replayed.code == 2
    assert "Another sample" in replayed.output
