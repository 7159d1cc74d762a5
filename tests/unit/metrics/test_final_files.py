"""Final files of a work tree in which a session may have left traps, and what a judge is shown of all that is left."""

import os
from pathlib import Path

from tests.builders import safe, session, suite
from tests.support.cited import place
from tests.support.steered import workspace_in
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import ApiUsage
from zelda_ci.domain.workspace import Changes
from zelda_ci.judge.lookups import FinalTree
from zelda_ci.judge.rendering import new_nonce
from zelda_ci.metrics.evidence import MAX_FILE_BYTES, NO_CHANGES, UNKNOWN, JudgeEvidence, gather, look_up, read_files
from zelda_ci.redact import Redactor


def test_regular_files_are_read_and_masked(tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "a.txt").write_text("key sk-ant-fake0123456789\n")
    found = read_files(FinalTree(tmp_path), ["deep/er/a.txt", "deleted.txt"], Redactor())
    assert found == ({"deep/er/a.txt": "key ***\n"}, {})


def test_links_fifos_folders_and_ways_out_are_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(outside / "secret")
    (root / "way").symlink_to(outside)
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    names = ["link", "way/secret", "folder", "pipe", "../outside/secret", str(outside / "secret"), "a\0b", ""]
    texts, left_out = read_files(FinalTree(root), names, Redactor())
    assert (texts, set(left_out)) == ({}, set(names))


def test_large_and_binary_files_are_named_instead(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    (tmp_path / "binary").write_bytes(b"\x7fELF\0")
    found = read_files(FinalTree(tmp_path), ["large", "binary"], Redactor())
    assert found == ({}, {"large": "larger than 1000000 bytes", "binary": "a binary file"})


NONCE = new_nonce()


def gathered(root: Path, patch: str | None, *files: str, checks: str = "", folder: str = "") -> JudgeEvidence:
    """What a judge with room for 25,000 characters is shown."""
    (root.parent / "patch").write_text(patch or "")
    changes = None if patch is None else Changes(files=tuple(map(safe, files)), patch=root.parent / "patch")
    context = EvalContext(
        suite(),
        workspace_in(root, folder),
        session("Read a"),
        ApiUsage(),
        changes,
        checks=(safe(checks),) * bool(checks),
    )
    return gather(context, safe, nonce=NONCE, context_tokens=10_000)


def test_what_fits_is_shown_whole_and_what_does_not_by_head_and_tail_and_said(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / "app").mkdir(parents=True)
    (root / "app" / "b.txt").write_text("one\ntwo\n")
    (root / "app" / "unchanged.txt").write_text("as before\n")
    (root / "a.txt").write_text("first\n" + "line of it\n" * 1000 + "last\n")
    (root / "c.bin").write_bytes(b"\0")
    found = gathered(root, "+x\n" * 900, "a.txt", "app/b.txt", "c.bin", checks="7 passed", folder="app")
    task, patch, big, small, checks = found.blocks
    assert "one" not in task
    assert patch.count("+x") == 900
    assert "app/b.txt\n1 | one\n2 | two\n" in small
    assert all(
        words in big for words in ("a.txt\n1 | first\n2 | line of it\n", "1002 | last\n", "characters are left out")
    )
    assert len(big) < 5200
    assert "7 passed" in checks
    assert list(found.notes) == [
        "The final content of a.txt was too large for the judge to see it whole.",
        "The judge did not see the content of 1 changed files: c.bin (a binary file)",
    ]
    # What was not shown can be cited nevertheless; also as the session names it, which works in a folder.
    for where, quote in (("a.txt:1002", "last"), ("unchanged.txt:1", "as before"), ("app/unchanged.txt", "as before")):
        assert look_up(place(where, quote), found.sources).problem is None
    found = gathered(root, "+x\n" * 1300, "app/b.txt", checks="ok\n" * 450)
    assert list(found.notes) == [
        "The patch was too large for the judge: it saw head and tail of 3900 characters.",
        "The build and test output was too large for the judge: it saw head and tail of 1350 characters.",
    ]


def test_of_changes_that_are_none_or_not_known_the_judge_is_told(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for patch, said in (("", NO_CHANGES), (None, UNKNOWN)):
        found = gathered(tmp_path / "tree", patch)
        assert said in found.blocks[1]
        assert found.notes == ()
    assert "not known" in (
        look_up(place("absent: x1 in patch"), gathered(tmp_path / "tree", None).sources).problem or ""
    )
