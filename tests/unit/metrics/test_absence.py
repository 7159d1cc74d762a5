"""Claims of absence: Zelda looks itself, and what it could not look through is not known to be without it."""

import os
from functools import partial
from pathlib import Path

import pytest

from tests.builders import session
from tests.support.cited import place
from zelda_ci.judge import lookups
from zelda_ci.judge.lookups import FinalTree
from zelda_ci.metrics.evidence import Criterion, Sources, look_up, objection_to_absence

PATCH = """\
diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@
 console.log(context)
-eval(old)
+print(new)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "a.js").write_text("const a = 1\nreturn a\n")
    (root / "src" / "deep" / "b.js").write_text("console.log(1)\n")
    (root / "docs").mkdir()
    (root / "docs" / "read me.md").write_text("# Title\n")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("secretword")
    (root / "wide.txt").write_bytes("wideword\n".encode("utf-16"))
    (root / "data.bin").write_bytes(b"\0\1binaryword\0")
    return root


def objection(root: Path | None, claim: str, patch: str | None = PATCH) -> str | None:
    calls = session("Bash git commit", "Read a.py").tool_calls
    return objection_to_absence(FinalTree(root) if root else None, patch, calls, place(f"absent: {claim}"))


@pytest.mark.parametrize(
    "claim",
    [
        "TODO in src, docs/**",
        "console.log in src/*.js",
        "TODO in .",
        "const b in src/**",
        "/console\\.\\w+/ in docs/**",
        "/^a/ in src/a.js",
        "secretword in **",
        "TODO in docs/read me.md",
        "any file in legacy/**",
        "eval( in patch",
        "a[i] in src/**",
        "TODO\\b in src/**",
        "git push in calls",
    ],
)
def test_what_is_absent_is_shown_to_be(tree, claim):
    assert objection(tree, claim) is None


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        ("console.log in src/**", "src/deep/b.js has it"),
        ("/(?i)CONSOLE/ in **", "src/deep/b.js has it"),
        ("console\\.log\\( in **", "src/deep/b.js has it"),  # without slashes, and meant as an expression
        ("console.*1 in **", "src/deep/b.js has it"),
        ("wideword in **", "wide.txt has it"),
        ("binaryword in *.bin", "data.bin has it"),
        ("TODO in nowhere/**", "no file has such a path"),
        ("any file in docs/**", "is there"),
        ("x in **", "at least 2 characters"),
        ("/((/ in **", "RE2"),
        ("/x*/ in **", "found in every text"),
        ("print(new) in patch", "the patch adds it"),
        ("git commit in calls", "a call of Bash has it"),
        ("Read in calls", "a call of Read has it"),
    ],
)
def test_what_is_there_or_cannot_be_looked_for_is_told(tree, claim, why):
    assert why in (objection(tree, claim) or "")


def test_without_the_final_files_only_what_was_kept_can_be_looked_through():
    assert "are gone" in (objection(None, "TODO in **") or "")
    assert objection(None, "git push in calls") is None
    assert "not known" in (objection(None, "TODO in patch", None) or "")


def test_links_pipes_and_closed_folders_are_not_looked_through_and_said(tree, tmp_path):
    (tmp_path / "outside.js").write_text("TODO")
    (tree / "src" / "link.js").symlink_to(tmp_path / "outside.js")
    assert "link.js is a link" in (objection(tree, "TODO in src/**") or "")
    (tree / "src" / "link.js").unlink()
    os.mkfifo(tree / "src" / "pipe.js")
    assert "pipe.js is a link or no regular file" in (objection(tree, "TODO in src/**") or "")
    (tree / "src" / "pipe.js").unlink()
    (tree / "way").symlink_to(tmp_path)
    assert "way is a link" in (objection(tree, "TODO in **") or "")
    assert objection(tree, "TODO in src/**") is None


def test_more_than_is_looked_through_is_said(tree, monkeypatch):
    with (tree / "src" / "huge.js").open("wb") as file:
        file.truncate(lookups.MAX_FILE_BYTES + 1)
    assert "huge.js could not be looked through" in (objection(tree, "TODO in src/**") or "")
    assert objection(tree, "TODO in docs/**") is None
    monkeypatch.setattr(lookups, "MAX_ENTRIES", 3)
    assert "too many files" in (objection(tree, "TODO in docs/**") or "")


def test_an_absence_is_cited_like_a_place(tree):
    sources = Sources(absent=partial(objection_to_absence, FinalTree(tree), PATCH, ()))
    assert look_up(place("absent: TODO in src/**"), sources).problem is None
    assert "has it" in (look_up(place("absent: console.log in **"), sources).problem or "")
    assert "gone" in (look_up(place("absent: TODO in **"), Sources()).problem or "")
    assert "has no paths" in (look_up(place("absent: TODO in src/**").replace(paths=()), sources).problem or "")


@pytest.mark.parametrize(
    ("criterion", "claim", "is_proof"),
    [
        ("No `TODO` is left.", "TODO in **", True),
        ("No `TODO:` is left.", "TODO in **", True),  # less than what is named is absent, and so is what is named
        ('“TODO” is in neither `./src/` nor "docs".', "TODO in src/**, docs", True),
        ("No `*.pyc` file and no folder `legacy` is there.", "any file in *.pyc, legacy/**", True),
        ("All tests pass.", "zzzz in **", False),
        ("All `tests` pass.", "zzzz in **", False),
        ("No TODO is left in src.", "TODO in src", False),
        ("No `TODO` is left in src.", "TODO in src/**", False),
        ("No `TODO` is left in `src`.", "TODO in src/a.js", False),
        ("No `TODO` is left in `src`.", "TODO in src/**, docs/**", False),
        ("No `TODO` is left.", "/TODO|zzzz/ in **", False),
        ("No `TODO` is left.", "TODO is left in **", False),
        ("No `TODO` is left.", "TODO in patch", False),
        ("No `git push` is run.", "git push in calls", False),
        ("The file `health.py` is there.", "any file in legacy/**", False),
        ("The `file` is there.", "any file in nowhere", False),
    ],
)
def test_an_absence_alone_proves_a_criterion_that_names_what_is_absent_and_where(tree, criterion, claim, is_proof):
    calls = session("Bash git commit").tool_calls
    sources = Sources(absent=partial(objection_to_absence, FinalTree(tree), PATCH, calls))
    citing = look_up(place(f"absent: {claim}"), sources, Criterion(criterion))
    assert citing.problem is None
    assert (citing.weakness is None) is is_proof


def test_what_has_no_text_is_not_looked_through(tree):
    (tree / "empty").mkdir()
    (tree / "empty" / "blank.py").write_text(" \n")
    assert "empty" in (objection(tree, "TODO in empty/**") or "")
    binary = f"{PATCH}diff --git a/x.bin b/x.bin\nGIT binary patch\nliteral 3\nKcmZQzWMT#Y\n"
    assert "binary" in (objection(None, "TODO in patch", binary) or "")
