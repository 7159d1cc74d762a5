"""What Zelda processes leave that were killed, and how the next one finds and removes it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

import anyio
import pytest

from tests.builders import suite
from tests.support import warm
from tests.support.measured import measured
from tests.support.projects import Project, folder, is_running, repository, wait_until
from zelda_ci.files import temporary
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.redact import Redactor
from zelda_ci.sandbox.levels import USERS
from zelda_ci.workspace.workspaces import Workspaces

ROOT = Path(__file__).parents[2]


@contextmanager
def zelda(
    project: Project, run_id: str = "run-1", deed: str = "hold", line: str = "sleep 300"
) -> Iterator[warm.Process]:
    """Another Zelda process, which has a workspace open, or makes one after the other."""
    started = project.home / f"{run_id}.started"
    line = f"touch {started}; {line}"
    environ = {**project.environ, **measured(), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    arguments = [str(project.path), run_id, deed, line]
    child = warm.start(arguments, ROOT, environ, module="tests.support.hold_workspace")
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "ready\n"
        wait_until(lambda: started.exists() or deed == "make")
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def killed(project: Project, run_id: str = "run-1") -> None:
    """Leave what a Zelda process leaves that was killed."""
    with zelda(project, run_id):
        pass


def sweep(project: Project) -> tuple[str, ...]:
    return anyio.run(project.workspaces().sweep)


async def nothing(*_: object) -> None:
    pass


@pytest.mark.parametrize("make", [repository, folder])
def test_a_killed_run_is_swept_with_its_processes(tmp_path: Path, make: Callable[..., Project]) -> None:
    project = make(tmp_path)
    assert sweep(project) == ()
    before = project.fingerprint()
    pids = tmp_path / "pids"
    with zelda(project, line=f"sleep 300 & echo $! > {pids}; setsid sleep 300 & echo $! >> {pids}; wait"):
        wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    assert len(project.leftovers()) == 1
    assert sweep(project) == ("run-1",)
    assert project.leftovers() == []
    wait_until(lambda: not any(is_running(pid) for pid in pids.read_text().split()))
    assert project.fingerprint() == before
    assert sweep(project) == ()


def test_a_living_run_is_never_swept(tmp_path: Path) -> None:
    project = repository(tmp_path)

    async def work(workspaces: Workspaces, _: object) -> tuple[str, ...]:
        return await workspaces.sweep()

    with zelda(project, "alive"):
        killed(project, "dead")
        there = sorted(project.leftovers())
        # Nor the one that this process has open.
        assert project.work(work) == ("dead",)
        left = [name for name in there if name in project.leftovers()]
        assert len(left) == 1


def test_what_was_left_before_a_project_had_its_first_run_is_swept(tmp_path: Path) -> None:
    """The checkout is looked at first, and somebody may be killed then."""
    project = repository(tmp_path)
    project.work(nothing)
    home = project.base / "0a1b2c3d"
    (home / "trash" / "entry").mkdir(parents=True)
    look = home / "trees" / "0a1b2c3d"
    look.mkdir(parents=True)
    sweep(project)
    assert project.leftovers() == []
    assert not look.exists()


def test_killing_at_any_moment_leaves_nothing_that_a_sweep_does_not_find(tmp_path: Path) -> None:
    """The pauses only spread the kills over the making; none of them is a claim about speed."""
    project = repository(tmp_path, {f"f{n}": os.urandom(20_000) for n in range(50)})
    before = project.fingerprint()
    for moment in (0.02, 0.08, 0.15):
        shutil.rmtree(project.base, ignore_errors=True)
        with zelda(project, deed="make"):
            time.sleep(moment)

        def swept() -> bool:  # a git that outlives its Zelda keeps the run's lock until it is done
            sweep(project)
            return project.leftovers() == []

        wait_until(swept)
        project.work(nothing)
    assert project.fingerprint() == before


def test_two_sweepers_and_a_maker_at_once(tmp_path: Path) -> None:
    project = repository(tmp_path)
    killed(project, "dead")
    swept: list[str] = []

    async def main() -> None:
        async def once() -> None:
            swept.extend(await project.workspaces().sweep())

        async def make(number: int) -> None:
            async with project.workspaces().open(f"new-{number}", suite()) as workspace:
                assert (workspace.root / "README.md").exists()

        async with anyio.create_task_group() as tasks:
            for number in range(2):
                tasks.start_soon(once)
                tasks.start_soon(make, number)

    anyio.run(main)
    assert swept == ["dead"]
    assert project.leftovers() == []


def test_the_remains_of_other_projects_are_swept_too(tmp_path: Path) -> None:
    gone, project = repository(tmp_path, name="gone"), repository(tmp_path, name="project")
    killed(gone)
    shutil.rmtree(gone.path)
    assert sweep(project) == ("run-1",)
    assert project.leftovers() == []


METAS = (
    '{"runId": "../link", "results": "{tmp}"}',
    '{"runId": 3, "results": []}',
    "[" * 100_000,
    "",
)


def test_broken_states_are_found_too(tmp_path: Path) -> None:
    """Whatever was half made or lost a part: nothing of it is ever missed by anybody."""
    project = repository(tmp_path)
    project.work(nothing)
    (home,) = (stores.parent for stores in project.base.glob("*/stores"))
    uid = max(USERS)
    claim, lost = project.base / "users" / str(uid), home / "stores" / "lost"
    elsewhere = project.base / "0a1b2c3d" / "runs"
    for folder_of in (*(home / "runs" / name / "lock" for name in ("spoilt", "fresh")), elsewhere / "unlocked"):
        folder_of.mkdir(parents=True)
    (home / "runs" / "a file").touch()
    os.utime(home / "runs" / "spoilt", (0, 0))
    for folder_of in (claim.parent, lost / "objects"):
        folder_of.mkdir(parents=True, exist_ok=True)
    claim.touch()
    sweep(project)
    assert [entry.name for entry in (home / "runs").iterdir()] == ["fresh"]
    assert not [place for place in (claim, lost, *elsewhere.iterdir()) if os.path.lexists(place)]


def test_a_hostile_session_cannot_make_the_sweep_delete_anything_else(tmp_path: Path) -> None:
    project = repository(tmp_path)
    precious = tmp_path / "workspaces/precious"
    (precious / "home").mkdir(parents=True)
    link = tmp_path / "workspaces/link"
    link.symlink_to(precious)
    for name in ("precious.json", "link.json"):
        (tmp_path / "workspaces" / name).write_text(json.dumps({"folder": "/elsewhere"}))
    for number, _ in enumerate((*METAS, "a link")):
        killed(project, f"run-{number}")
    *spoilt, last = project.base.glob("*/runs/*")
    for run, meta in zip(spoilt, METAS, strict=True):
        (run / "meta.json").write_text(meta.replace("{tmp}", str(tmp_path)))
        (run / "ws/out").symlink_to(tmp_path)
    # And a run in whose place a link stands loses only the link.
    shutil.rmtree(last)
    last.symlink_to(precious)
    sweep(project)
    assert link.is_symlink()
    assert sorted(path.name for path in precious.parent.iterdir()) == ["link", "link.json", "precious", "precious.json"]
    assert (precious / "home").exists()
    assert project.leftovers() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_zelda_even_before_a_sweep(tmp_path: Path, number: signal.Signals) -> None:
    project = repository(tmp_path)
    pids = tmp_path / "pids"
    line = f"env -i setsid sh -c 'cd /; echo $$ > {pids}; sleep 300; true' & wait"
    with zelda(project, line=line) as other:
        wait_until(lambda: pids.exists() and bool(pids.read_text()))
        other.send_signal(number)
        other.wait()
    wait_until(lambda: not is_running(pids.read_text()))


async def wait_in_a_session() -> None:
    async with ModelProxy(None, Redactor()) as proxy:
        sys.stdout.write(f"{proxy.socket}\n")
        sys.stdout.flush()
        await anyio.sleep(300)


def test_the_socket_of_a_killed_run_is_swept_and_that_of_a_living_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "t"
    place.mkdir()
    (place / "zelda-demo-1").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    (place / f"{temporary.PREFIX}link").symlink_to(place / "zelda-demo-1")
    line = f"import anyio; from {__name__} import wait_in_a_session; anyio.run(wait_in_a_session)"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", line], cwd=ROOT, env={**os.environ, "TMPDIR": str(place)}, stdout=PIPE, text=True
        )
        for _ in range(2)
    ]
    try:
        dead, alive = (Path(str(child.stdout and child.stdout.readline().strip())).parent for child in children)
        children[0].kill()
        children[0].wait()
        project = repository(tmp_path)
        before = sorted(place.iterdir())
        assert {dead, alive} < set(before)
        sweep(project)
        assert sorted(place.iterdir()) == [each for each in before if each != dead]
        assert (alive / "s").is_socket()
    finally:
        for child in children:
            child.kill()
            child.communicate()


def test_a_temporary_folder_that_a_sweep_takes_before_its_lock_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [*map(tempfile.mkdtemp, (None,) * 2)]
    monkeypatch.setattr("tempfile.mkdtemp", lambda **_: made.pop(0))
    os.rmdir(made[0])  # noqa: PTH106
    with temporary.folder() as folder:
        assert folder.is_dir()
    assert not folder.exists()
