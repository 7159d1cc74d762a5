"""A patch on its way into the results."""

import io

import pytest

from zelda_ci.redact import Redactor, Secret
from zelda_ci.workspace import changes


def stored(raw: bytes, *, complete: bool = True) -> tuple[str, bool]:
    file = io.BytesIO()
    left_out = changes.copy_sections(io.BytesIO(raw), file, Redactor([Secret("hunter2hunter2")]), complete=complete)
    return file.getvalue().decode(), left_out


def section(name: str, content: str) -> bytes:
    return f"diff --git a/{name} b/{name}\n+{content}\n".encode()


def test_sections_pass_through_in_order_masked_and_one_that_broke_off_is_dropped() -> None:
    raw = section("a", "1") + section("b", "hunter2hunter2") + section("c", "diff --git a/x b/x")
    expected = raw.decode().replace("hunter2hunter2", "***")
    assert stored(raw) == (expected, False)
    assert stored(raw + b"diff --git a/d b/d\n+half of hunt", complete=False) == (expected, True)


def test_a_section_that_is_too_long_is_left_out_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real bound takes a second, and a real session reaches it in the tests of workspaces."""
    monkeypatch.setattr(changes, "MAX_PATCH_BYTES", 1 << 20)
    first, last = section("a", "1"), section("c", "3")
    for long in (b"x" * (2 << 20), b"hunter2hunter2" * (1 << 17)):
        raw = first + b"diff --git a/b b/b\n+" + long + b"\n" + last
        assert stored(raw) == ((first + last).decode(), True)


def test_counts_stand_before_the_patch_and_a_renamed_file_has_its_new_name() -> None:
    source = io.BytesIO(b"1\t2\ta\0-\t-\tb\nin\xff\x000\t3\t\0old\0new\0\0diff --git a/a b/a\n")
    assert changes.read_counts(source) == {"a": (1, 2), "b\nin\udcff": (0, 0), "new": (0, 3)}
    assert source.read() == b"diff --git a/a b/a\n"
