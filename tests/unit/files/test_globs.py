"""Patterns as the real Claude Code was seen to treat them."""

import pytest

from tests.support.cases import for_each
from zelda_ci.files.globs import matches

COVERED = [
    ("*.txt", "src/deep/n.txt"),
    ("src/", "src/a.py"),
    ("/src/a.py", "src/a.py"),
    ("src/*", "src/deep/n.txt"),
    ("**/*.{ts,txt}", "src/deep/n.txt"),
    ("src/[ab].py", "src/a.py"),
    ("src/[!xy].py", "src/a.py"),
    ("**/src/**/*.py", "src/a.py"),
    ("a.py", "src/a.py"),
    ("SRC/*.py", "src/a.py"),
    ("{src,lib}/{a,b}.{py,js}", "lib/b.js"),
    ("a+b(1).py", "a+b(1).py"),
    ("[", "["),
    ("a[[b", "a[[b"),
    (r"\*.py", "*.py"),
    ("src/[[x]a.py", "src/[a.py"),
    ("*.py", "src/no-utf-8-\udcff.py"),
]

NOT_COVERED = [
    ("./src/a.py", "src/a.py"),
    ("!src/a.py", "src/a.py"),
    ("src/*.js", "src/deep/a.js"),
    ("/a.py", "src/a.py"),
    ("src/", "src"),
    ("src/?.py", "src/ab.py"),
    ("src/[!a].py", "src/a.py"),
    ("", "a"),
    ("# a.py", "# a.py"),
    (r"\*.py", "a.py"),
    ("s**a.py", "src/a.py"),
    ("x" * 301, "x" * 301),
]


@for_each([*((*each, True) for each in COVERED), *((*each, False) for each in NOT_COVERED)])
def test_a_pattern_covers_a_path_or_does_not(pattern: str, path: str, covers: bool) -> None:  # noqa: FBT001  # a table
    assert matches([pattern], path) is covers


@pytest.mark.parametrize("pattern", ["[/-#]", "[z-a]", "a\\", "[[:alpha:]"])
@pytest.mark.filterwarnings("error")
def test_a_pattern_that_makes_no_sense_is_no_trouble(pattern: str) -> None:
    assert not matches([pattern], "src")
    assert matches([pattern, "src"], "src")


@pytest.mark.parametrize("pattern", ["**/" * 90, "*a" * 140, "{a,b}" * 60, "{" * 290, "[" * 290])
def test_every_pattern_comes_to_an_end(pattern: str) -> None:
    assert not matches([pattern], "a/" * 200 + "b") or pattern.startswith("**/")
