"""What Zelda writes as root into somebody's project belongs to that somebody."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import needs
from tests.support.command import zelda
from tests.support.projects import ENVIRON, Project, folder
from zelda_ci.cli.run import CASSETTES, PROJECT
from zelda_ci.files import atomic

OWNER = 61234

pytestmark = needs.ROOT


def strangers(top: Path) -> list[str]:
    """What does not belong to the owner of the project."""
    return [
        str(path) for path in [top, *top.rglob("*")] if (path.lstat().st_uid, path.lstat().st_gid) != (OWNER, OWNER)
    ]


def given_away(top: Path) -> None:
    for path in [top, *top.rglob("*")]:
        os.chown(path, OWNER, OWNER, follow_symlinks=False)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The demo's project, a repository of somebody else."""
    made = folder(tmp_path)
    shutil.copytree(PROJECT, made.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "-m", "Open"]):
        subprocess.run(["git", *words], cwd=made.path, env=ENVIRON, check=True)
    given_away(made.path)
    return made


def test_running_reading_and_failing_as_root_leave_nothing_of_root(project: Project) -> None:
    done = zelda(project, "run", "receipt-tax", "--replay", str(CASSETTES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (project.path / ".zelda" / "runs" / ".lock").is_file()
    assert len(list(project.path.glob(".zelda/runs/*/*"))) >= 4
    assert zelda(project, "list").returncode == 0
    assert zelda(project, "show", "no-such-run").returncode == 2
    shutil.rmtree(project.path / "zelda")
    (project.path / "zelda.config.yaml").unlink()
    done = zelda(project, "init")
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(project.path.glob("zelda/test-*.yaml"))
    assert strangers(project.path) == []


def test_a_file_with_a_second_name_is_not_given_away(tmp_path: Path) -> None:
    secret = tmp_path / "of-root"
    secret.write_text("secret")
    os.chown(tmp_path, OWNER, OWNER)
    (tmp_path / "planted").hardlink_to(secret)
    with secret.open("a") as opened:
        atomic.hand_over(opened.fileno(), tmp_path)
    assert secret.stat().st_uid == 0


def test_folders_above_are_handed_over_and_those_that_exist_are_left(tmp_path: Path) -> None:
    os.chown(tmp_path, OWNER, OWNER)
    kept = tmp_path / "kept"
    kept.mkdir()
    atomic.make_folder(tmp_path / "new" / "deep")
    atomic.make_folder(kept)
    assert strangers(tmp_path / "new") == []
    assert kept.stat().st_uid == 0
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        atomic.make_folder(tmp_path / "file" / "deep")
