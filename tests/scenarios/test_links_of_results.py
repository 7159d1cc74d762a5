"""A link that a commit holds leads where its author wants; results do not go there, whoever writes them."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.stage import FILES, GOOD, Stage
from tests.support.command import zelda
from tests.support.projects import repository
from tests.support.scripted_api import ScriptedApi

# Link → where it leads, and what is asked for besides.
LINKS: dict[str, tuple[str, dict[str, Any]]] = {
    ".zelda": ("{outside}", {}),
    ".zelda/runs": ("../.git/hooks", {}),
    ".zelda/ci": ("../docs", {}),
    "out": (".git/hooks", {"junit_path": "out/deep/junit.xml"}),
    "out.xml": ("docs/README.md", {"junit_path": "out.xml"}),
}


def content(folder: Path) -> dict[str, int]:
    """Everything in a folder, with the time of its last change."""
    return {str(path.relative_to(folder)): path.lstat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize("link", LINKS)
def test_nothing_is_written_through_a_link_of_a_pull_request(link: str, tmp_path: Path) -> None:
    target, inputs = LINKS[link]
    outside = tmp_path / "outside"
    outside.mkdir()
    with Stage(tmp_path, {**FILES, "docs/README.md": "Read.\n"}) as stage:
        path = stage.upstream.path / link
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(target.format(outside=outside))
        stage.upstream.git("add", "-f", link)
        pull = stage.open_pull()
        places = [outside, stage.project.path / "docs", stage.project.path / ".git/hooks"]
        before = [content(place) for place in places]
        done = stage.pull_request(pull, GOOD, **inputs)
        assert [content(place) for place in places] == before
        assert (done.code, (stage.project.path / link).is_symlink()) == (2, True), done.printed
        (error,) = done.told("error")
        assert any(why in error.data for why in ("symbolic link", "folder of its own in the project", "git tracks"))
        assert link in error.data or "resultsDir" in error.data


def test_nothing_is_recorded_or_logged_through_a_link(tmp_path: Path) -> None:
    project = repository(tmp_path, FILES)
    outside = tmp_path / "outside"
    outside.mkdir()
    (project.path / "cassettes").symlink_to(outside)
    with ScriptedApi(GOOD) as api:
        recorded = zelda(project, "run", "--record", "cassettes", api=api.url)
        assert "cassettes is a symbolic link" in recorded.stdout + recorded.stderr
    (project.path / ".zelda").rename(project.path / "kept")
    (project.path / ".zelda").symlink_to(outside)
    failed = zelda(project, "list")
    assert failed.returncode == 2
    assert "zelda.config.yaml: resultsDir must be a folder of its own" in failed.stderr
    (project.path / ".zelda").unlink()
    (project.path / ".zelda").symlink_to("kept")
    failed = zelda(project, "validate")
    assert "resultsDir leads through .zelda, a symbolic link" in failed.stderr
    assert list(outside.iterdir()) == []
