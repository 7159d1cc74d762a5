"""Protected files, put back where a command has changed them."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from zelda_ci.workspace.clean_checkout import ProtectedFiles

NAME = "tests/deep/test_a.py"


@pytest.fixture
def guard(tmp_path: Path) -> ProtectedFiles:
    root = tmp_path / "root"
    (root / "tests/deep").mkdir(parents=True)
    (root / NAME).write_text("strict")
    (root / "run.sh").write_text("#!/bin/sh")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("nowhere")
    return ProtectedFiles(root, tmp_path / "kept", [NAME, "run.sh", "link"])


def put(file: Path, kind: str) -> None:
    file.unlink()
    makers: dict[str, Callable[[], object]] = {
        "removed": lambda: None,
        "text": lambda: file.write_text("easy"),
        "link": lambda: file.symlink_to(file.parents[2] / "victim"),
        "pipe": lambda: os.mkfifo(file),
        "folder": lambda: (file / "x").mkdir(parents=True),
    }
    makers[kind]()


@pytest.mark.parametrize("kind", ["removed", "text", "link", "pipe", "folder"])
def test_whatever_has_taken_the_place_of_a_file_gives_way(guard: ProtectedFiles, kind: str) -> None:
    put(guard.root / NAME, kind)
    assert guard.restore() == [NAME]
    assert (guard.root / NAME).read_text() == "strict"
    assert stat.S_ISREG((guard.root / NAME).lstat().st_mode)
    before = (guard.root / NAME).stat()
    assert guard.restore() == []
    assert (guard.root / NAME).stat() == before


def test_a_link_in_place_of_a_folder_is_not_followed(guard: ProtectedFiles, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (guard.root / "tests").rename(victim)
    (guard.root / "tests").symlink_to(victim)
    (victim / "deep/test_a.py").write_text("yours")
    (guard.root / "run.sh").unlink()
    assert guard.restore() == [NAME, "run.sh"]
    assert (guard.root / NAME).read_text() == "strict"
    assert (victim / "deep/test_a.py").read_text() == "yours"
    assert os.access(guard.root / "run.sh", os.X_OK)


def test_a_folder_that_cannot_be_made_again_closes_each_descriptor_once(
    guard: ProtectedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two another thread may have got the number."""
    shutil.rmtree(guard.root / "tests/deep")
    numbers, close = Path("/proc/self/fd"), os.close
    before = len(list(numbers.iterdir()))
    refused: list[int] = []

    def closed(descriptor: int) -> None:
        try:
            close(descriptor)
        except OSError:
            refused.append(descriptor)
            raise

    def read_only(*_: object, **__: object) -> None:
        raise PermissionError("a folder that is read-only")

    monkeypatch.setattr(os, "close", closed)
    monkeypatch.setattr(os, "mkdir", read_only)
    with pytest.raises(PermissionError, match="read-only"):
        guard.restore()
    assert refused == []
    assert len(list(numbers.iterdir())) == before
