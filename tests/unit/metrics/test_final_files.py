"""Final files of a work tree in which a session may have left traps."""

import os

from zelda_ci.metrics.gathering import MAX_FILE_BYTES, read_files
from zelda_ci.redact import Redactor


def test_regular_files_are_read_and_masked(tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "a.txt").write_text("key sk-ant-fake0123456789\n")
    found = read_files(tmp_path, ["deep/er/a.txt", "deleted.txt"], Redactor())
    assert found.texts == {"deep/er/a.txt": "key ***\n"}
    assert found.left_out == {}


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
    names = ["link", "way/secret", "folder", "pipe", "../outside/secret", str(outside / "secret"), "a\0b", "./x", ""]
    found = read_files(root, names, Redactor())
    assert found.texts == {}
    assert set(found.left_out) == set(names)


def test_large_and_binary_files_are_named_instead(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    (tmp_path / "binary").write_bytes(b"\x7fELF\0")
    found = read_files(tmp_path, ["large", "binary"], Redactor())
    assert found.texts == {}
    assert found.left_out == {"large": "larger than 1 MB", "binary": "binary"}
