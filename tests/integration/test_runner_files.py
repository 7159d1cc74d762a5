"""However a run of suites ends: what stays in the files in which a job speaks to the runner, and what is stored."""

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from tests.builders import START
from zelda_ci.ci.evaluate import emptying, run_shard
from zelda_ci.ci.stored import JobIdentity
from zelda_ci.domain.run import BatchResult, ShardOf, ShardPlan
from zelda_ci.errors import EXIT_INTERRUPTED, ZeldaError
from zelda_ci.github.artifacts import Uploaded
from zelda_ci.github.workflow_commands import Log


@pytest.mark.parametrize("error", [ZeldaError("The disk is full."), RuntimeError("A bug."), KeyboardInterrupt()])
def test_a_run_that_raises_leaves_no_word_for_the_runner(tmp_path: Path, error: BaseException) -> None:
    files = {name: tmp_path / name for name in ("OUTPUT", "ENV", "PATH", "STATE", "STEP_SUMMARY")}
    case: Any = SimpleNamespace(log=Log(Mock(), {f"GITHUB_{name}": str(path) for name, path in files.items()}))

    def run() -> BatchResult:
        for file in files.values():
            file.write_text("verdict=passed\n")
        raise error

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(type(error)):
        emptying(case, run)
    assert {file.read_text() for file in files.values()} == {""}
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_cancel_while_a_part_is_uploaded_stores_it_in_what_is_left_of_the_time(tmp_path: Path) -> None:
    context = SimpleNamespace(job="zelda", run_attempt=1, command_files={})
    settings = SimpleNamespace(retention_days=None, context=context)
    settings.include_transcripts = True
    case: Any = SimpleNamespace(settings=settings, results_dir=tmp_path, now=lambda: START, log=Mock())
    case.decision = SimpleNamespace(pull_request=None, base=None)
    case.output, case.junit, case.identity = tmp_path, tmp_path / "junit.xml", JobIdentity("a", "zelda", ".")

    usual, hurried = Mock(side_effect=KeyboardInterrupt), Mock(return_value=Uploaded(1, 2))
    case.artifacts = lambda patience: SimpleNamespace(upload=hurried if patience else usual)
    plan = ShardPlan(zelda="1", shards=1, suites=())
    assert run_shard(case, ShardOf(number=1, shards=1), plan, "debian", Mock()) == EXIT_INTERRUPTED
    assert hurried.call_args.args[0] == "a.shard-1-of-1.1"
