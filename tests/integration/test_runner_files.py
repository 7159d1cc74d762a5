"""However a run of suites ends, nothing of its sessions stays in the files in which a job speaks to the runner."""

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from zelda_ci.ci.evaluate import emptying
from zelda_ci.domain.run import BatchResult
from zelda_ci.errors import ZeldaError


@pytest.mark.parametrize("error", [ZeldaError("The disk is full."), RuntimeError("A bug."), KeyboardInterrupt()])
def test_a_run_that_raises_leaves_no_word_for_the_runner(tmp_path: Path, error: BaseException) -> None:
    files = {name: tmp_path / name for name in ("OUTPUT", "ENV", "PATH", "STATE", "STEP_SUMMARY")}
    case: Any = SimpleNamespace(settings=SimpleNamespace(context=SimpleNamespace(command_files=files)))

    def run() -> BatchResult:
        for file in files.values():
            file.write_text("verdict=passed\n")
        raise error

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(type(error)):
        emptying(case, run)
    assert {file.read_text() for file in files.values()} == {""}
    assert signal.getsignal(signal.SIGINT) is handler
