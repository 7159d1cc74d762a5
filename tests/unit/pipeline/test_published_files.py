"""What of the runs goes into the artifacts of a CI run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.builders import result
from zelda_ci.ci.outputs import result_members, transcript_members
from zelda_ci.domain.ci import Provenance
from zelda_ci.domain.run import BatchResult, empty_batch

IMAGE = f"images/{'ab' * 32}.png"
ORIGIN = Provenance(
    created_at=result().started_at,
    repository="o/r",
    repository_id=1,
    sha="0" * 40,
    head_sha="0" * 40,
    event="push",
    run_id=1,
    batch_id="b",
)


def batch_in(folder: Path, *names: str) -> BatchResult:
    run = result()
    place = folder / "runs" / run.run_id
    (place / "images").mkdir(parents=True)
    for name in names:
        (place / name).write_text("x")
    return BatchResult(batch_id="b", started_at=run.started_at, finished_at=run.finished_at, runs=(run,))


def test_everything_that_people_read_of_a_run_goes_with_its_transcript(tmp_path: Path) -> None:
    batch = batch_in(tmp_path, "result.json", "transcript.json", "test.log", IMAGE, "images/notes.txt")
    (folder,) = (tmp_path / "runs").iterdir()
    (folder / f"images/{'cd' * 32}.png").symlink_to(folder / "result.json")
    case: Any = SimpleNamespace(results_dir=tmp_path)
    published = transcript_members(case, batch, ORIGIN)
    of_run = {f"runs/{folder.name}/{name}" for name in ("result.json", "transcript.json", "test.log", IMAGE)}
    assert published.keys() == {"zelda-ci.json", *of_run}


def test_where_nothing_ran_there_is_nothing_to_read(tmp_path: Path) -> None:
    case: Any = SimpleNamespace(results_dir=tmp_path)
    assert transcript_members(case, empty_batch(result().started_at), ORIGIN) == {}


def test_the_artifact_that_is_searched_for_holds_nothing_of_single_runs(tmp_path: Path) -> None:
    batch = batch_in(tmp_path, "result.json", "transcript.json", IMAGE)
    (tmp_path / "comparison.json").write_text("{}")
    files: Any = SimpleNamespace(comparison=tmp_path / "comparison.json")
    published = result_members(files, batch, ORIGIN, {"zelda-pool.json": b"{}"})
    assert published.keys() == {"zelda-ci.json", "zelda-results.json", "zelda-pool.json", "comparison.json"}
