"""Memory, disk and processes that a run may take."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.headless import headless
from tests.support.patience import PATIENCE
from zelda_ci.sandbox import programs

GREEDY = {
    "memory": "import time; kept = b'x' * (400 << 20); print(len(kept), flush=True); time.sleep(60)",
    "memory, the first thread dead": headless("kept = b'x' * (400 << 20); print(len(kept), flush=True)"),
    "disk": "import time\nfor n in range(8):\n  open(f'{n}', 'wb').write(b'x' * (20 << 20))\ntime.sleep(60)",
    "processes": "import subprocess, time\nfor _ in range(40): subprocess.Popen(['sleep', '60'])\ntime.sleep(60)",
}
SAID = {"memory": "memory", "disk": "room on the disk", "processes": "more than 20 processes"}


def bounded(folder: Path, script: str, **wanted: int) -> tuple[int, str | None]:
    """Exit code, and the sentence in the report."""
    report = folder / "report"
    (folder / "work").mkdir()
    order = {
        "memory": 8 << 30, "disk": 1 << 40, "processes": 4000, "folder": str(folder), "report": str(report), **wanted
    }  # fmt: skip
    options = [word for name, value in order.items() for word in (f"--{name}", str(value))]
    argv = [*programs.supervisor(os.getpid()), *options]
    done = subprocess.run(
        [*argv, "--", "/usr/bin/python3", "-c", script], cwd=folder / "work", timeout=PATIENCE, check=False
    )
    return done.returncode, report.read_text() if report.exists() else None


BOUNDS = {"memory": 300 << 20, "disk": 100 << 20, "processes": 20}


@pytest.mark.parametrize("what", GREEDY)
def test_whoever_takes_too_much_is_ended_with_all_its_processes_and_a_sentence(tmp_path: Path, what: str) -> None:
    bound = what.partition(",")[0]
    code, sentence = bounded(tmp_path, GREEDY[what], **{bound: BOUNDS[bound]})
    assert code == 137
    assert SAID[bound] in str(sentence)
    assert running_in(tmp_path) == []


def running_in(folder: Path) -> list[str]:
    """Processes that work below a folder."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            if link.readlink().is_relative_to(folder):
                found.append(link.parent.name)
    return found


def test_who_stays_below_is_left_alone_and_leaves_no_report(tmp_path: Path) -> None:
    assert bounded(tmp_path, "import time; time.sleep(1.5); raise SystemExit(7)") == (7, None)
