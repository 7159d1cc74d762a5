"""What of the runs goes into the artifact of a CI run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.builders import result
from zelda_ci.ci.outputs import members
from zelda_ci.domain.ci import Provenance
from zelda_ci.domain.run import BatchResult

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


@pytest.mark.parametrize("include_transcripts", [True, False])
def test_images_go_where_transcripts_go(tmp_path: Path, *, include_transcripts: bool) -> None:
    run = result()
    folder = tmp_path / "runs" / run.run_id
    (folder / "images").mkdir(parents=True)
    for name in ("result.json", "transcript.json", IMAGE, "images/notes.txt"):
        (folder / name).write_text("x")
    (folder / f"images/{'cd' * 32}.png").symlink_to(folder / "result.json")
    case: Any = SimpleNamespace(settings=SimpleNamespace(include_transcripts=include_transcripts), results_dir=tmp_path)
    files: Any = SimpleNamespace(comparison=tmp_path / "absent")
    batch = BatchResult(batch_id="b", started_at=run.started_at, finished_at=run.finished_at, runs=(run,))
    published = {name for name in members(case, files, batch, ORIGIN, {}) if name.startswith("runs/")}
    more = {f"runs/{run.run_id}/transcript.json", f"runs/{run.run_id}/{IMAGE}"} if include_transcripts else set()
    assert published == {f"runs/{run.run_id}/result.json", *more}
