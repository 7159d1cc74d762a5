"""A patch on its way into the results."""

from pathlib import Path

import pytest

from zelda_ci.redact import Redactor, Secret
from zelda_ci.workspace import changes


def stored(tmp_path: Path, raw: bytes, *preface: str, complete: bool = True) -> tuple[str, int, bool]:
    (tmp_path / "raw").write_bytes(raw)
    target = tmp_path / "changes.patch"
    written, left_out = changes.store_patch(
        tmp_path / "raw", target, preface, Redactor([Secret("hunter2hunter2")]), complete=complete
    )
    assert {path.name for path in tmp_path.iterdir()} == {"raw", "changes.patch"}
    return target.read_text(), written, left_out


def section(name: str, content: str) -> bytes:
    return f"diff --git a/{name} b/{name}\n+{content}\n".encode()


def test_sections_pass_through_in_order_and_one_that_broke_off_is_dropped(tmp_path: Path) -> None:
    raw = section("a", "1") + section("b", "2") + section("c", "diff --git a/x b/x")
    assert stored(tmp_path, raw) == (raw.decode(), len(raw), False)
    (tmp_path / "changes.patch").unlink()
    broken = raw + b"diff --git a/d b/d\n+half of hunt"
    assert stored(tmp_path, broken, complete=False) == (raw.decode(), len(raw), True)


def test_secrets_are_masked_in_sections_and_preface(tmp_path: Path) -> None:
    text, written, _ = stored(tmp_path, section("a", "hunter2hunter2"), "not in this patch: 'hunter2hunter2'")
    assert text == "# not in this patch: '***'\ndiff --git a/a b/a\n+***\n"
    assert written == len(text)


def test_a_section_that_is_too_long_is_left_out_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real bound takes a second, and a real session reaches it in the tests of workspaces."""
    monkeypatch.setattr(changes, "MAX_PATCH_BYTES", 1 << 20)
    first, last = section("a", "1"), section("c", "3")
    for long in (b"x" * (2 << 20), b"hunter2hunter2" * (1 << 17)):
        raw = first + b"diff --git a/b b/b\n+" + long + b"\n" + last
        assert stored(tmp_path, raw)[::2] == ((first + last).decode(), True)
        (tmp_path / "changes.patch").unlink()
