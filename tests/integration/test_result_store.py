"""Results on a real disk: what is there after a run, and what stands in the way of one."""

import shutil
import tracemalloc
from pathlib import Path

import pytest

from tests.builders import START, records, result, safe, session
from zelda_ci.domain.run import Failure, RunResult
from zelda_ci.domain.session import SessionStatus, SessionTranscript
from zelda_ci.errors import StorageError
from zelda_ci.storage import codec
from zelda_ci.storage.result_store import ResultStore, RunFolder


def provisional(folder: RunFolder) -> RunResult:
    failure = Failure(code="INTERRUPTED", message=safe("Zelda was killed."))
    return result(folder.run_id, status=SessionStatus.INTERRUPTED, failure=failure)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_finished_run_is_a_result_and_a_transcript(tmp_path: Path) -> None:
    folder = ResultStore(tmp_path).begin("example", START)
    folder.announce(provisional(folder))
    for record in records("Read a.py", '"Done."'):
        folder.append(record)
    final, transcript = result(folder.run_id), session("Read a.py", '"Done."')
    folder.finish(final, transcript)

    assert folder.path == tmp_path / "runs" / "example-2026-02-13T14-30-00"
    assert names(folder.path) == ["result.json", "transcript.json"]
    assert codec.decode(RunResult, (folder.path / "result.json").read_bytes(), "r") == final
    assert codec.decode(SessionTranscript, (folder.path / "transcript.json").read_bytes(), "t") == transcript
    assert list(ResultStore(tmp_path).unfinished()) == []
    # What somebody else made is theirs; what is made for results, git passes over.
    assert names(tmp_path) == ["runs"]
    ResultStore(tmp_path / "made").begin("example", START).close()
    assert names(tmp_path / "made") == [".gitignore", "runs"]


@pytest.mark.parametrize("kind", ["file", "dangling link", "link to itself", "file in place of runs"])
def test_what_is_in_the_way_of_the_results_is_explained(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "results"
    match kind:
        case "file":
            place.write_text("")
        case "dangling link":
            place.symlink_to("nowhere")
        case "link to itself":
            place.symlink_to(place)
        case _:
            place.mkdir()
            (place / "runs").write_text("")
    with pytest.raises(StorageError) as caught:
        ResultStore(place).begin("a", START)
    assert caught.value.code == "STORAGE_IN_THE_WAY"
    assert str(place / "runs") in caught.value.message
    assert "resultsDir" in (caught.value.hint or "")
    assert list(ResultStore(place).unfinished()) == []


def test_a_folder_that_may_not_be_written_is_explained() -> None:
    # Not even the superuser makes folders here.
    with pytest.raises(StorageError, match="may not be written") as caught:
        ResultStore(Path("/sys/zelda")).begin("a", START)
    assert caught.value.code == "STORAGE_FORBIDDEN"


def test_a_folder_deleted_during_the_run_costs_nothing_that_was_captured(tmp_path: Path) -> None:
    folder = ResultStore(tmp_path).begin("a", START)
    happened = records("Read a.py")
    folder.append(happened[0])
    shutil.rmtree(tmp_path / "runs")
    for record in happened[1:]:
        folder.append(record)
    folder.announce(provisional(folder))
    assert list(folder.records()) == happened
    folder.finish(result(folder.run_id), session("Read a.py"))
    assert names(folder.path) == ["result.json", "transcript.json"]


def test_a_result_that_cannot_be_put_in_place_leaves_everything_for_the_next_start(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    folder = store.begin("a", START)
    folder.append(records()[0])
    (folder.path / "result.json").mkdir()
    with pytest.raises(StorageError, match=r"result\.json cannot be made"):
        folder.finish(result(folder.run_id), session())
    (folder.path / "result.json").rmdir()
    assert names(folder.path) == ["result.partial.json", "transcript.json", "transcript.jsonl"]

    [(_, announced)] = store.unfinished()
    assert announced == result(folder.run_id)


def test_a_large_transcript_is_written_a_line_at_a_time(tmp_path: Path) -> None:
    big = "x" * 100_000
    transcript = session(*(f"Bash {n} -> {n}{big}" for n in range(200)))
    folder = ResultStore(tmp_path).begin("a", START)
    tracemalloc.start()
    try:
        folder.finish(result(folder.run_id), transcript)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (folder.path / "transcript.json").stat().st_size > 20_000_000
    assert peak < 2_000_000
