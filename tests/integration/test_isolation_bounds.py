"""Memory, disk and processes that a run may take."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE
from zelda_ci.sandbox import programs
from zelda_ci.sandbox.launcher import bounds

ROOT = Path(__file__).parents[2]
GREEDY = {
    "memory": "import time; kept = b'x' * (400 << 20); print(len(kept), flush=True); time.sleep(60)",
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
    argv = [*programs.supervisor(os.getpid()), "--bounds", json.dumps(order)]
    done = subprocess.run(
        [*argv, "--", "/usr/bin/python3", "-c", script], cwd=folder / "work", timeout=PATIENCE, check=False
    )
    return done.returncode, json.loads(report.read_text())["sentence"] if report.exists() else None


BOUNDS = {"memory": 300 << 20, "disk": 100 << 20, "processes": 20}


@pytest.mark.parametrize("what", GREEDY)
def test_whoever_takes_too_much_is_ended_with_all_its_processes_and_a_sentence(tmp_path: Path, what: str) -> None:
    code, sentence = bounded(tmp_path, GREEDY[what], cgroups=0, **{what: BOUNDS[what]})
    assert code == 137
    assert SAID[what] in str(sentence)
    assert running_in(tmp_path) == []


@pytest.mark.parametrize("what", ["memory", "processes"])
def test_where_there_are_control_groups_the_kernel_keeps_the_bound(tmp_path: Path, what: str) -> None:
    if not all(os.access(home, os.W_OK) for home in map(next, map(bounds._homes, ("memory", "pids")))):
        pytest.skip("needs control groups that can be written")
    code, sentence = bounded(tmp_path, GREEDY[what], **{what: BOUNDS[what]})
    assert code == {"memory": 137, "processes": 1}[what]
    assert (what == "memory") == ("memory" in str(sentence))
    left = [group for home in map(next, map(bounds._homes, ("memory", "pids"))) for group in Path(home).glob("zelda-*")]
    assert not [group for group in left if bounds._is_dead(group.name)]


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


NAME_AND_STAY = """
import sys, time
from zelda_ci.sandbox.launcher import bounds
print(bounds.group_name(), flush=True)
time.sleep(60)
"""


@contextmanager
def supervisor_like(*around: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A process that has made a control group, and the group's name."""
    argv = [*around, sys.executable, "-c", NAME_AND_STAY]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


ELSEWHERE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


def namespaces_refused(*options: str) -> bool:
    return shutil.which("unshare") is None or subprocess.run([*options, "true"], check=False).returncode != 0


@pytest.mark.parametrize("proc", [(), ("--mount-proc",)], ids=["the /proc around it", "a /proc of its own"])
def test_the_group_of_a_living_supervisor_in_another_pid_namespace_is_left(
    tmp_path: Path, proc: tuple[str, ...]
) -> None:
    if namespaces_refused(*ELSEWHERE, *proc):
        pytest.skip("needs a pid namespace of its own: unshare --user --pid")
    with supervisor_like(*ELSEWHERE, *proc) as (name, _):
        (tmp_path / name).mkdir()
        bounds.forget_dead(str(tmp_path))
        assert (tmp_path / name).is_dir()
    # Nobody here can tell that it is dead now.
    bounds.forget_dead(str(tmp_path))
    assert (tmp_path / name).is_dir()


@pytest.mark.parametrize("proc", [(), ("--mount-proc",)], ids=["the /proc around it", "a /proc of its own"])
def test_who_looks_out_of_another_pid_namespace_leaves_the_groups_of_this_one(
    tmp_path: Path, proc: tuple[str, ...]
) -> None:
    if namespaces_refused(*ELSEWHERE, *proc):
        pytest.skip("needs a pid namespace of its own: unshare --user --pid")
    with supervisor_like() as (name, _):
        (tmp_path / name).mkdir()
        look = f"from zelda_ci.sandbox.launcher import bounds; bounds.forget_dead({str(tmp_path)!r})"
        subprocess.run([*ELSEWHERE, *proc, sys.executable, "-c", look], cwd=ROOT, check=True)
        assert (tmp_path / name).is_dir()


def test_the_group_of_a_dead_supervisor_is_removed_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    with supervisor_like() as (name, process):
        (tmp_path / name).mkdir()
        bounds.forget_dead(str(tmp_path))
        assert (tmp_path / name).is_dir()
        process.kill()
        process.wait()
        bounds.forget_dead(str(tmp_path))
        assert not (tmp_path / name).exists()


def test_a_number_that_is_another_process_by_now_does_not_keep_a_group(tmp_path: Path) -> None:
    earlier = bounds.group_name().rpartition("-")[0] + "-1"
    for name in (earlier, bounds.group_name()):
        (tmp_path / name).mkdir()
    bounds.forget_dead(str(tmp_path))
    assert [entry.name for entry in tmp_path.iterdir()] == [bounds.group_name()]


@pytest.mark.parametrize("name", ["zelda-999999999", "zelda-", "zelda-1-2-x-4", "zelda-0-0-999999999-1", "others-1"])
def test_what_names_no_process_of_here_is_left(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    bounds.forget_dead(str(tmp_path))
    assert (tmp_path / name).is_dir()
