"""Files that are no ordinary text: each is refused with its reason, quickly, and the others are still checked."""

import os
import stat

import pytest

from tests.unit.config.folder import GOOD, about_suite, make, problems


def test_a_file_of_just_1_mb_is_read(tmp_path):
    text = GOOD + "# " + "x" * (1_000_000 - len(GOOD) - 3) + "\n"
    assert len(text) == 1_000_000
    assert about_suite(tmp_path, text) == []
    os.truncate(tmp_path / "zelda/test-x.yaml", 50_000_000)
    assert problems(tmp_path) == ["zelda/test-x.yaml: is 50.0 MB large; at most 1 MB is read"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"prompt: caf\xe9\n", "1:12: is not UTF-8 text (byte 0xe9); save it as UTF-8"),
        (b"# \xc3\xa9\nprompt: \xc3\xa9\xff\n", "2:10: is not UTF-8 text (byte 0xff); save it as UTF-8"),
        (b"\xef\xbb\xbfprompt: \xff\n", "1:9: is not UTF-8 text (byte 0xff); save it as UTF-8"),
        (b"prompt: \xed\xa0\x80\n", "1:9: is not UTF-8 text (byte 0xed); save it as UTF-8"),
        ("prompt: x\n".encode("utf-16"), "1:1: is not UTF-8 text (byte 0xff); save it as UTF-8"),
        (b"\xfe\xff\x00p", "1:1: is not UTF-8 text (byte 0xfe); save it as UTF-8"),
        (b"prompt: a\x00b\n", "1:10: a text file cannot hold the character U+0000"),
        (b"# x\nprompt: \x1b[31mred\n", "2:9: a text file cannot hold the character U+001B"),
        (b"\x7fELF\x02\x01\x01", "1:1: a text file cannot hold the character U+007F"),
    ],
)
def test_other_bytes_than_utf8_text_are_refused_at_their_place(content, line, tmp_path):
    assert about_suite(tmp_path, content) == [line]


def test_what_is_not_a_regular_file_is_named_and_never_opened(tmp_path):
    make(tmp_path, test_good=GOOD)
    zelda = tmp_path / "zelda"
    (zelda / "test-folder.yaml").mkdir()
    os.mkfifo(zelda / "test-pipe.yml")
    (zelda / "test-link.yaml").symlink_to("test-good.yaml")
    (zelda / "test-dangling.yaml").symlink_to("nowhere")
    (zelda / "test-null.yaml").symlink_to("/dev/null")
    os.mknod(zelda / "test-socket.yaml", stat.S_IFSOCK | 0o600)
    assert problems(tmp_path) == [
        "zelda/test-dangling.yaml: is a symbolic link; it must be a regular file",
        "zelda/test-folder.yaml: is a folder; it must be a regular file",
        "zelda/test-link.yaml: is a symbolic link; it must be a regular file",
        "zelda/test-null.yaml: is a symbolic link; it must be a regular file",
        "zelda/test-pipe.yml: is a named pipe; it must be a regular file",
        "zelda/test-socket.yaml: is a socket; it must be a regular file",
    ]


def test_a_hostile_file_name_cannot_write_to_the_terminal(tmp_path):
    make(tmp_path)
    (tmp_path / "zelda").mkdir()
    (tmp_path / "zelda" / "test-\x1b[31m\n::error::.yaml").write_text("a: 1\n")
    assert all("\x1b" not in line and "\n" not in line for line in problems(tmp_path))
    assert problems(tmp_path)[0].startswith("zelda/test-\\x1b[31m\\n::error::.yaml: ")
