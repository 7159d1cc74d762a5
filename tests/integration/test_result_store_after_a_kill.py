"""What is left of killed Zelda processes, and who may take it."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import starmap
from pathlib import Path
from random import Random

import pytest

from tests.builders import START, records, result, safe, session
from zelda_ci.domain.run import Failure, RunResult
from zelda_ci.domain.session import Noticed, SessionStatus, SessionTranscript
from zelda_ci.errors import StorageError
from zelda_ci.storage import codec
from zelda_ci.storage.codec import transcript_of
from zelda_ci.storage.result_store import ResultStore, RunFolder

REPOSITORY = Path(__file__).parents[2]
INTERRUPTED = {
    "status": SessionStatus.INTERRUPTED,
    "failure": Failure(code="INTERRUPTED", message=safe("Zelda was killed.")),
}
SETUP = """
import os, subprocess, sys, time
from datetime import UTC, datetime
from pathlib import Path
from resource import RLIMIT_FSIZE, setrlimit
from tests.builders import *
from tests.integration.test_result_store_after_a_kill import *
from zelda_ci.errors import StorageError
store = ResultStore(Path(sys.argv[1]))

def say(line):
    print(line, flush=True)
"""


@contextmanager
def child(results: Path, script: str) -> Iterator["subprocess.Popen[str]"]:
    """Another Zelda process, in miniature; killed at the latest when the test is done with it."""
    command = [sys.executable, "-c", SETUP + script, str(results)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def heard(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def begun(store: ResultStore) -> RunFolder:
    """A run that has announced itself and heard three records."""
    folder = store.begin("a", START)
    folder.announce(result(folder.run_id, **INTERRUPTED))
    for record in records("Read a.py")[:3]:
        folder.append(record)
    return folder


def recovered(folder: RunFolder, announced: RunResult) -> SessionTranscript:
    transcript = transcript_of(announced, safe("Do it."), list(folder.records()))
    folder.finish(announced, transcript)
    return transcript


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_killed_run_leaves_all_it_has_heard(tmp_path: Path) -> None:
    with child(tmp_path, "folder = begun(store); say(folder.run_id); time.sleep(60)") as process:
        run = heard(process)
        assert list(ResultStore(tmp_path).unfinished()) == []  # it lives
        process.kill()
        process.wait()
    [transcript] = starmap(recovered, ResultStore(tmp_path).unfinished())
    assert (transcript.run_id, transcript.status, transcript.reason) == (run, "interrupted", "Zelda was killed.")
    assert (len(transcript.tool_calls), transcript.ended) == (1, None)
    assert transcript.wall_seconds == records("Read a.py")[2].at
    assert names(tmp_path / "runs" / run) == ["result.json", "transcript.json"]
    assert list(ResultStore(tmp_path).unfinished()) == []


def test_a_kill_while_writing_loses_at_most_the_last_line(tmp_path: Path) -> None:
    script = """
folder = begun(store)
n = 0
while True:
    folder.append(Noticed(at=n, kind=safe("n"), text=safe(f"{n} " + "x" * 200_000)))
    say(n)
    n += 1
"""
    with child(tmp_path, script) as process:
        for _ in range(20):
            last = int(heard(process))
        process.kill()
        assert process.stdout
        said = [int(line) for line in process.stdout.read().split()]
    last = max([last, *said])
    [transcript] = starmap(recovered, ResultStore(tmp_path).unfinished())
    numbers = [int(entry.text.split()[0]) for entry in transcript.entries if isinstance(entry, Noticed)]
    assert numbers in (list(range(last + 1)), list(range(last + 2)))


def test_a_child_process_that_survives_does_not_make_the_run_look_alive(tmp_path: Path) -> None:
    script = """
folder = begun(store)
survivor = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
say(survivor.pid)
time.sleep(60)
"""
    with child(tmp_path, script) as process:
        survivor = int(heard(process))
        process.kill()
        process.wait()
    try:
        os.kill(survivor, 0)
        assert len(list(ResultStore(tmp_path).unfinished())) == 1
    finally:
        os.kill(survivor, 9)


def together(results: Path, expression: str, processes: int) -> list[str]:
    """What several processes that start at the same moment make of an expression that names runs."""
    script = f'say("ready"); sys.stdin.readline(); say(",".join({expression}))'
    command = [sys.executable, "-c", SETUP + script, str(results)]
    with ExitStack() as stack:
        racing = [
            stack.enter_context(
                subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(processes)
        ]
        for process in racing:
            assert heard(process) == "ready"
        for process in racing:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        runs = [run for process in racing for run in heard(process).split(",") if run]
    assert all(process.returncode == 0 for process in racing)
    return runs


def test_of_several_processes_exactly_one_recovers_each_run(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    dead = [begun(store) for _ in range(12)]
    for folder in dead:
        folder.close()
    taken = together(tmp_path, "recovered(*remains).run_id for remains in store.unfinished()", processes=2)
    assert sorted(taken) == sorted(folder.run_id for folder in dead)


def test_processes_that_begin_in_the_same_second_get_folders_of_their_own(tmp_path: Path) -> None:
    # Folders are held until the process ends, so that none is taken for dead meanwhile.
    begin = '(held.append(store.begin("a", START)) or held[-1].run_id for held in [[]] for _ in range(20))'
    runs = together(tmp_path, begin, processes=2)
    assert len(runs) == len(set(runs)) == 40
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {*runs, ".lock"}


def test_a_process_killed_at_any_moment_leaves_nothing_half_done(tmp_path: Path) -> None:
    script = """
while True:
    folder = begun(store)
    folder.finish(result(folder.run_id), session("Read a.py"))
    say("ready")
"""
    random = Random(7)
    for _ in range(3):
        with child(tmp_path, script) as process:
            assert heard(process) == "ready"
            time.sleep(random.uniform(0.0, 0.1))
    for remains in ResultStore(tmp_path).unfinished():
        recovered(*remains)
    folders = [path for path in (tmp_path / "runs").iterdir() if path.is_dir()]
    assert folders
    for folder in folders:
        assert names(folder) == ["result.json", "transcript.json"]
        assert codec.decode(RunResult, (folder / "result.json").read_bytes(), "r").run_id == folder.name
        assert codec.decode(SessionTranscript, (folder / "transcript.json").read_bytes(), "t").prompt == "Do it."


def test_a_full_disk_stops_the_journal_and_keeps_what_it_has(tmp_path: Path) -> None:
    script = """
folder = begun(store)
size = (folder.path / "transcript.jsonl").stat().st_size
setrlimit(RLIMIT_FSIZE, (size + 1000, -1))
try:
    folder.append(Noticed(at=7, kind=safe("k"), text=safe("x" * 5000)))
except StorageError as problem:
    say(problem.code)
setrlimit(RLIMIT_FSIZE, (-1, -1))
folder.append(Noticed(at=8, kind=safe("k"), text=safe("there is room again")))
say(len(list(folder.records())))
"""
    with child(tmp_path, script) as process:
        assert heard(process) == "STORAGE_FULL"
        assert heard(process) == "4"
        process.wait()
    [transcript] = starmap(recovered, ResultStore(tmp_path).unfinished())
    assert [entry.text for entry in transcript.entries if isinstance(entry, Noticed)] == ["there is room again"]


@pytest.mark.parametrize("tail", [b'{"type":"noticed","at":9,"ki', b"\0\0\0\0\xff\xfe garbage\n\n\n[]\n{}\n"])
def test_garbage_in_a_journal_is_passed_over(tmp_path: Path, tail: bytes) -> None:
    store = ResultStore(tmp_path)
    folder = begun(store)
    folder.close()
    journal = folder.path / "transcript.jsonl"
    journal.write_bytes(b"garbage\n" + journal.read_bytes() + tail)
    [transcript] = starmap(recovered, store.unfinished())
    assert len(transcript.tool_calls) == 1


def test_a_run_killed_before_it_had_anything_to_tell_is_removed(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.begin("a", START).close()
    (tmp_path / "runs" / "b-2026-02-13T14-30-00").mkdir()  # killed before it had a journal
    assert list(store.unfinished()) == []
    assert names(tmp_path / "runs") == [".lock"]


def test_a_removal_that_was_killed_leaves_no_half_of_a_run(tmp_path: Path) -> None:
    script = """
import shutil
def killed(path, **_):
    if os.path.exists(path):
        os.kill(os.getpid(), 9)
shutil.rmtree = killed
folder = begun(store)
folder.finish(result(folder.run_id), session())
say("ready")
store.remove(folder.run_id)
"""
    with child(tmp_path, script) as process:
        assert heard(process) == "ready"
        assert process.wait() == -9
    store = ResultStore(tmp_path)
    assert (store.overview().unfinished, store.overview().skipped) == (0, ())
    assert list(store.unfinished()) == []
    assert names(tmp_path / "runs") == [".lock"]


def test_a_verdict_for_a_run_that_was_removed_meanwhile_makes_no_half_of_it(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    folder = begun(store)
    folder.finish(result(folder.run_id), session())
    judged = store.run(folder.run_id)
    store.remove(folder.run_id)
    with pytest.raises(StorageError, match=folder.run_id):
        judged.rewrite(result(folder.run_id))
    assert names(tmp_path / "runs") == [".lock"]


def test_what_a_kill_at_the_very_end_leaves_is_removed(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    folder = begun(store)
    kept = tmp_path / "kept"
    shutil.copytree(folder.path, kept)
    folder.finish(result(folder.run_id), session())
    shutil.copytree(kept, folder.path, dirs_exist_ok=True)
    (folder.path / ".result.json.0badcafe.tmp").write_text("{")
    assert list(store.unfinished()) == []
    assert names(folder.path) == ["result.json", "transcript.json"]


@pytest.mark.parametrize("announced", [b"{", b'{"schemaVersion": 2}', None])
def test_remains_that_cannot_be_read_are_left_as_they_are(tmp_path: Path, announced: bytes | None) -> None:
    store = ResultStore(tmp_path)
    folder = begun(store)
    folder.close()
    file = folder.path / "result.partial.json"
    if announced is None:
        file.unlink()
    else:
        file.write_bytes(announced)
    before = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    assert list(store.unfinished()) == []
    assert {path.name: path.read_bytes() for path in folder.path.iterdir()} == before


def test_what_is_not_a_run_is_left_alone(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    (runs / "notes").mkdir(parents=True)
    (runs / "b-2026-02-13T14-30-00").symlink_to("notes")
    (runs / "c-2026-02-13T14-30-00").write_text("")
    (runs / "d-2026-02-13T14-30-00").mkdir()
    (runs / "d-2026-02-13T14-30-00" / "mine.txt").write_text("")
    before = names(runs)
    assert list(ResultStore(tmp_path).unfinished()) == []
    assert names(runs) == [".lock", *before]
