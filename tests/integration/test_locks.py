"""Locks between processes: told by the kernel alone, waited for in a bounded way that can be cancelled."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.builders import START
from tests.support.command import ended, started
from tests.support.projects import repository
from tests.support.scripted_api import ScriptedApi, text
from zelda_ci.errors import LockError, StorageError, WorkspaceError
from zelda_ci.files import locks
from zelda_ci.storage.result_store import ResultStore

HOLD = "import fcntl, os, sys, time; fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)"


def socket_at(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket is short
        made.bind(path.name)
        os.chdir(here)


KINDS: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a named pipe": os.mkfifo,
    "a symbolic link": lambda path: path.symlink_to("/dev/null"),
    "a socket": socket_at,
}


@contextmanager
def holder(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that has the lock."""
    script = f"{HOLD}; print('held', flush=True); time.sleep(300)"
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("kind", KINDS)
def test_what_lies_in_the_place_of_a_lock_is_named(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "lock"
    KINDS[kind](place)
    with pytest.raises(LockError, match=f"{place}, which is {kind}, not a file") as caught:
        locks.try_lock(place)
    assert "Move it away" in str(caught.value.hint)
    assert caught.value.code == "LOCK_IN_THE_WAY"


def test_a_lock_that_its_holder_removed_keeps_nobody_out(tmp_path: Path) -> None:
    place = tmp_path / "lock"
    first = locks.try_lock(place)
    late = os.open(place, os.O_RDWR)
    place.unlink()
    second = locks.try_lock(place)
    assert first is not None
    assert second is not None
    assert os.fstat(second).st_ino == place.stat().st_ino
    assert locks.try_lock(place) is None
    for descriptor in (first, late, second):
        os.close(descriptor)


def test_a_wait_is_bounded_and_says_what_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, told = tmp_path / "lock", list[str]()
    monkeypatch.setattr(locks, "NOTICE_SECONDS", -1)  # at once: nobody knows how soon a busy machine comes back to it

    async def wait() -> None:
        locks.on_wait.set(told.append)
        locks.wait_for(place, patience=0.3)

    async def wait_in_a_thread() -> None:
        locks.on_wait.set(told.append)
        await anyio.to_thread.run_sync(partial(locks.wait_for, place, patience=0.3))

    with holder(place):
        for way in (wait, wait_in_a_thread):
            with pytest.raises(LockError, match="locked by another process") as caught:
                anyio.run(way)
            assert caught.value.code == "LOCK_HELD"
    assert len(told) == 2
    assert all(f"waiting for another process, which holds {place}" in sentence for sentence in told)


def test_a_thread_leaves_off_waiting_when_its_task_is_cancelled(tmp_path: Path) -> None:
    async def main() -> bool:
        with anyio.move_on_after(0.1) as scope:
            await anyio.to_thread.run_sync(locks.wait_for, tmp_path / "lock")
        return scope.cancelled_caught

    with holder(tmp_path / "lock"):
        assert anyio.run(main)


@pytest.mark.parametrize(("place", "number"), [("results", signal.SIGINT), ("stores", signal.SIGTERM)])
def test_a_lock_that_somebody_holds_makes_no_run_deaf(tmp_path: Path, place: str, number: signal.Signals) -> None:
    project = repository(tmp_path, {"zelda/test-one.yaml": "prompt: Say hello.\n"})
    project.work(nothing)
    (stores,) = project.base.glob("*/stores")
    (project.results / "runs").mkdir(exist_ok=True)
    with ScriptedApi([text("Hello.")]) as api:
        lock = {"results": project.results / "runs/.lock", "stores": stores / "lock"}[place]
        log = tmp_path / "log"
        with holder(lock), started(project, "run", api=api.url) as process:
            assert process.stdout is not None
            with log.open("w") as copy:
                for line in process.stdout:
                    copy.write(line)
                    if "waiting for another process" in line:
                        break
            process.send_signal(number)
            code, _ = ended(process)
    assert "waiting for" in log.read_text()
    assert code == 130


def refusal(act: Callable[[], object]) -> str:
    """What is said where it is refused; nothing where it is done. Any other failure is one."""
    try:
        act()
    except (StorageError, WorkspaceError, LockError) as error:
        return f"{error.message} {error.hint}"
    return ""


async def nothing(*_: object) -> None:
    pass


def spoil(place: Path, kind: str) -> None:
    """Put something else in the place of a file or folder of ours."""
    if place.is_dir() and not place.is_symlink():
        place.rename(place.with_name(f"{place.name}-away"))
    else:
        place.unlink(missing_ok=True)
    KINDS[kind](place)


OURS = ("*/trash", "*/stores", "*/stores/lock", "*/stores/*/used", "*/stores/*", "*/runs")


PLACES = list(zip(OURS, cycle(("a symbolic link", "a named pipe", "a folder")), strict=False))


@pytest.mark.parametrize(("pattern", "kind"), PLACES)
def test_what_is_of_the_wrong_kind_among_the_workspaces_is_replaced_or_named(
    tmp_path: Path, pattern: str, kind: str
) -> None:
    project = repository(tmp_path)
    project.work(nothing)
    found = sorted(project.base.glob(pattern), key=lambda path: (path.name == "lock", path))[:1]
    for place in found:
        spoil(place, kind)
        said = refusal(lambda: project.work(nothing, "again"))
        is_named = kind in said or "Something else lies there or in place of a folder above" in said
        assert not said or (str(place) in said and is_named and "room" not in said)
    assert found


@pytest.mark.parametrize("kind", ["a named pipe", "a folder full of things"])
def test_a_run_whose_lock_cannot_be_read_is_left_and_blocks_nobody(tmp_path: Path, kind: str) -> None:
    project = repository(tmp_path)
    project.work(nothing)
    (runs,) = project.base.glob("*/runs")
    place = runs / "0badc0de/lock"
    place.parent.mkdir()
    if kind in KINDS:
        KINDS[kind](place)
    else:
        (place / "full").mkdir(parents=True)
    (runs / "a-file").write_text("of somebody")
    assert anyio.run(project.workspaces().sweep) == ()
    project.work(nothing, "again")
    assert os.path.lexists(place)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["runs/.lock", "runs", "index.json"])
def test_what_is_of_the_wrong_kind_among_the_results_is_replaced_or_named(tmp_path: Path, name: str, kind: str) -> None:
    results = tmp_path / "results"
    store = ResultStore(results)
    store.begin("one", START).close()
    place = results / name
    spoil(place, kind)

    def use() -> None:
        store.begin("two", START).close()
        list(store.unfinished())
        ResultStore(results).overview()

    said = refusal(use)
    assert not said or str(place) in said
