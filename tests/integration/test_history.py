"""Reading what was stored: always what the files say, whatever became of the index."""

import os
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.history import store
from tests.unit.compare.runs import efficiency, fulfillment
from zelda_ci.domain.outcome import History
from zelda_ci.errors import StorageError
from zelda_ci.storage import codec, result_store
from zelda_ci.storage.references import find, read_side
from zelda_ci.storage.result_store import FORMAT, YOUNG_NS, ResultStore


def ids(history: History) -> list[str]:
    return [run.run_id for run in history.runs]


def settle() -> None:
    """Until files are old enough to be told apart by their times."""
    time.sleep(YOUNG_NS / 1e9 + 0.1)


def indexed(results: Path) -> dict[str, list[object]]:
    found: dict[str, list[object]] = orjson.loads((results / "index.json").read_bytes())["entries"]
    return found


def test_runs_are_listed_newest_first_without_opening_a_transcript(tmp_path: Path) -> None:
    first, second = store(tmp_path, minute=0), store(tmp_path, "beta", minute=5)
    for stored in (first, second):
        transcript = tmp_path / "runs" / stored.run_id / "transcript.json"
        transcript.unlink()
        os.mkfifo(transcript)  # whoever opens it waits for ever
    history = ResultStore(tmp_path).overview()
    assert ids(history) == [second.run_id, first.run_id]
    assert history.skipped == ()


def test_what_is_no_result_is_named_and_passed_over(tmp_path: Path) -> None:
    good = store(tmp_path)
    runs = tmp_path / "runs"
    copy = runs / "copy-2026-02-13T14-30-00"
    copy.mkdir()
    (copy / "result.json").write_bytes((runs / good.run_id / "result.json").read_bytes())
    contents = {"cut": b'{"schemaVersion": 1,', "binary": bytes(range(256)), "newer": b'{"schemaVersion": 9}'}
    for name, content in contents.items():
        folder = runs / f"{name}-2026-02-13T14-30-00"
        folder.mkdir()
        (folder / "result.json").write_bytes(content)
    (runs / "pipe-2026-02-13T14-30-00").mkdir()
    os.mkfifo(runs / "pipe-2026-02-13T14-30-00/result.json")
    (runs / "link-2026-02-13T14-30-00").symlink_to(runs / good.run_id)
    (runs / "my notes").mkdir()
    (runs / "file.txt").write_text("hello")
    (runs / "begun-2026-02-13T14-30-00").mkdir()
    history = ResultStore(tmp_path).overview()
    assert ids(history) == [good.run_id]
    assert {found.name.split("-")[0]: found.code for found in history.skipped} == {
        "copy": "RESULT_FOREIGN",
        "cut": "RESULT_DAMAGED",
        "binary": "RESULT_DAMAGED",
        "newer": "RESULT_NEWER",
        "pipe": "RESULT_FOREIGN",
        "link": "RESULT_FOREIGN",
        "my notes": "RESULT_FOREIGN",
        "file.txt": "RESULT_FOREIGN",
    }
    assert history.unfinished == 1


def test_the_index_is_used_for_files_that_did_not_change(tmp_path: Path) -> None:
    run = store(tmp_path)
    settle()
    ResultStore(tmp_path).overview()
    index = tmp_path / "index.json"
    index.write_bytes(index.read_bytes().replace(b'"suite":"alpha"', b'"suite":"marked"'))
    assert [found.suite for found in ResultStore(tmp_path).overview().runs] == ["marked"]
    os.utime(tmp_path / "runs" / run.run_id / "result.json")
    assert [found.suite for found in ResultStore(tmp_path).overview().runs] == ["alpha"]


@pytest.fixture
def young(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a busy machine takes, files are just written."""
    monkeypatch.setattr(result_store, "YOUNG_NS", 10**12)


@pytest.mark.usefixtures("young")
def test_a_file_that_was_just_written_is_not_indexed(tmp_path: Path) -> None:
    run = store(tmp_path)
    file = tmp_path / "runs" / run.run_id / "result.json"
    assert ids(ResultStore(tmp_path).overview()) == [run.run_id]
    assert indexed(tmp_path) == {}
    before = file.stat()
    file.write_bytes(file.read_bytes().replace(b'"completed"', b'"timedOut" '))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [found.status for found in ResultStore(tmp_path).overview().runs] == ["timedOut"]


def test_a_file_that_was_just_written_when_it_was_read_is_not_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading thousands of others takes longer than files are young."""
    store(tmp_path)
    read = result_store._entry

    def entry(*arguments: Any) -> Any:
        found = read(*arguments)
        settle()
        return found

    monkeypatch.setattr(result_store, "_entry", entry)
    ResultStore(tmp_path).overview()
    assert indexed(tmp_path) == {}


@pytest.mark.usefixtures("young")
@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"null",
        b'{"format": 1}',
        orjson.dumps({"format": FORMAT}),
        orjson.dumps({"format": FORMAT, "entries": [[]]}),
        orjson.dumps({"format": FORMAT, "entries": {"a": [[1, 2], {}]}}),
    ],
)
def test_a_damaged_index_is_made_anew(tmp_path: Path, content: bytes) -> None:
    stored = store(tmp_path)
    (tmp_path / "index.json").write_bytes(content)
    assert ids(ResultStore(tmp_path).overview()) == [stored.run_id]
    assert indexed(tmp_path) == {}


def test_a_run_is_found_by_its_id_a_beginning_or_as_the_latest(tmp_path: Path) -> None:
    old, new = store(tmp_path, "alpha", 0), store(tmp_path, "beta", 5)
    twin = store(tmp_path, "beta", 5)
    history = ResultStore(tmp_path)
    assert twin.run_id == f"{new.run_id}-2"
    assert find(history, old.run_id)[1] == (old.run_id,)
    assert find(history, "al")[1] == (old.run_id,)
    assert find(history, new.run_id)[1] == (new.run_id,)
    assert find(history, "latest")[1] == (twin.run_id,)


@pytest.mark.parametrize(
    ("reference", "code", "sentence"),
    [
        ("alpa-2026-02-13T14-30-00", "RUN_UNKNOWN", "The nearest: alpha-2026-02-13T14-30-00"),
        ("beta", "RUN_AMBIGUOUS", "2 runs begin with 'beta': beta-2026-02-13T14-30-00, beta-2026-02-13T14-31-00"),
        ("begun-2026-02-13T14-30-00", "RUN_UNFINISHED", "has no result yet"),
        ("of-", "RUN_AMBIGUOUS", "2 batches begin with 'of-': of-one, of-two."),
        ("o", "RUN_AMBIGUOUS", "1 run and 2 batches begin with 'o': other-2026-02-13T14-30-00, of-one, of-two."),
        ("", "RUN_UNKNOWN", "There is no run ''."),
        ("..", "RUN_UNKNOWN", "There is no run '..'."),
    ],
)
def test_what_is_not_one_run_is_refused_with_the_nearest(
    tmp_path: Path, reference: str, code: str, sentence: str
) -> None:
    store(tmp_path, batch="of-one"), store(tmp_path, "beta", batch="of-two"), store(tmp_path, "beta", 1, batch="of-two")
    store(tmp_path, "other", batch="of-one")
    (tmp_path / "runs/begun-2026-02-13T14-30-00").mkdir()
    with pytest.raises(StorageError) as caught:
        find(ResultStore(tmp_path), reference)
    assert caught.value.code == code
    assert sentence in caught.value.message


def test_a_side_is_a_run_a_batch_or_a_file(tmp_path: Path) -> None:
    one = store(tmp_path, "alpha", 0, [efficiency(), fulfillment("PF")], batch="b1")
    two = store(tmp_path, "beta", 1, batch="b1")
    store(tmp_path, "beta", 2, batch="b2")
    history = ResultStore(tmp_path)
    assert read_side(history, "b1").runs == (one, two)
    assert read_side(history, one.run_id).runs == (one,)
    assert read_side(history, "alpha").runs == (one,)
    assert read_side(history, str(tmp_path / "runs" / one.run_id / "result.json")).runs == (one,)
    batch = tmp_path / "batch.json"
    tree = {"schemaVersion": 1, "batchId": "b1", "startedAt": one.started_at, "finishedAt": one.finished_at}
    stored = [orjson.loads(codec.encode(run, indent=2)) for run in (one, two)]
    batch.write_bytes(orjson.dumps(tree | {"runs": stored}))
    assert read_side(history, str(batch)).runs == (one, two)


@pytest.mark.parametrize("content", [b"", b'{"runs": []}', b"\xff\xfe"])
def test_a_file_that_holds_no_results_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "other.json"
    file.write_bytes(content)
    with pytest.raises(StorageError, match=r"other\.json"):
        read_side(ResultStore(tmp_path), str(file))
