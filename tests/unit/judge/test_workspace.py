"""The final workspace before judges: files by pattern, and why one cannot be read or searched."""

import os
from pathlib import Path

import pytest

from zelda_ci.judge.lookups import MAX_PATTERN_LENGTH, FinalTree, LookupFailedError, expression


@pytest.fixture
def tree(tmp_path: Path) -> FinalTree:
    for name in ("a.py", "src/b.py", ".git/config", os.fsdecode(b"src/\xff.py")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    (tmp_path / "link.py").symlink_to("a.py")
    return FinalTree(tmp_path)


def test_files_and_what_is_none_are_listed_by_pattern(tree: FinalTree) -> None:
    assert tree.files(["**"]) == ["a.py", "src/b.py", "src/\udcff.py"]
    assert tree.files(["src/*.py", "README.md"]) == ["src/b.py", "src/\udcff.py"]
    assert (tree.others(["*.py"]), tree.others(["src/**"]), tree.is_whole) == (["link.py"], [], True)


@pytest.mark.parametrize(
    ("path", "why"),
    [("gone.py", "No such file"), ("link.py", "symbolic link"), ("large.txt", "larger than"), ("logo.png", "binary")],
)
def test_why_a_file_is_not_read_is_said(tree: FinalTree, path: str, why: str) -> None:
    (tree.root / "large.txt").write_bytes(b"x" * 101)
    (tree.root / "logo.png").write_bytes(b"a\0b")
    with pytest.raises(OSError, match=why):
        tree.text(path, max_bytes=100)
    assert tree.text("./src/b.py") == "x\n"


@pytest.mark.parametrize("pattern", ["(", r"(?=a)", "a" * (MAX_PATTERN_LENGTH + 1)])
def test_what_re2_cannot_search_for_is_refused(pattern: str) -> None:
    with pytest.raises(LookupFailedError, match="pattern is"):
        expression(pattern)


def test_lines_are_searched_by_expression_or_by_text() -> None:
    assert expression("^b$").search("a\nb\n")
    assert not expression("^b$", is_regex=False).search("a\nb\n")
