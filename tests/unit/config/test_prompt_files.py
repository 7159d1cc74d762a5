"""Prompts in files of their own."""

import os

import pytest

from tests.unit.config.folder import loaded, make, problems

PLACE = "zelda/test-a.yaml:1:13: promptFile"
OUTSIDE = f"{PLACE} must be a file inside the project"


@pytest.mark.parametrize("file", ["prompts/x.md", "./prompts/../prompts/x.md", "../zelda/prompts/x.md"])
def test_a_prompt_file_is_found_beside_the_suite(file, tmp_path):
    (tmp_path / "zelda/prompts").mkdir(parents=True)
    (tmp_path / "zelda/prompts/x.md").write_bytes(b"\xef\xbb\xbfDo it.\r\nWell.\r\n")
    (suite,) = loaded(tmp_path, test_a=f"promptFile: {file}\n").suites
    assert suite.resolved.prompt == "Do it.\nWell.\n"
    assert str(suite.provenance["prompt"]) == "zelda/prompts/x.md:1"


@pytest.mark.parametrize("file", ["../../secret.md", "/etc/hostname", "..", "a/../../../x", "../../root-sibling/x"])
def test_a_prompt_comes_from_inside_the_project(file, tmp_path):
    (tmp_path / "secret.md").write_text("x")
    assert problems(make(tmp_path / "root", test_a=f"promptFile: {file}\n")) in (
        [OUTSIDE],
        [f"{PLACE} . is a folder; it must be a regular file"],
    )


def test_not_even_through_a_link(tmp_path):
    (tmp_path / "secret.md").write_text("x")
    root = make(tmp_path / "root", test_a="promptFile: link/secret.md\n", test_b="promptFile: linked.md\n")
    (root / "zelda/link").symlink_to(tmp_path)
    (root / "zelda/linked.md").symlink_to(tmp_path / "secret.md")
    assert problems(root) == [
        OUTSIDE,
        "zelda/test-b.yaml:1:13: promptFile zelda/linked.md is a symbolic link; it must be a regular file",
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("pipe", f"{PLACE} zelda/x.md is a named pipe; it must be a regular file"),
        (None, f"{PLACE} zelda/x.md cannot be read: No such file or directory"),
        (b"", f"{PLACE} zelda/x.md is empty"),
        (b" \n\t\n", f"{PLACE} zelda/x.md is empty"),
        (b"caf\xe9", "zelda/x.md:1:4: is not UTF-8 text (byte 0xe9); save it as UTF-8"),
        (b"a\n\x00", "zelda/x.md:2:1: a text file cannot hold the character U+0000"),
        (b"x" * 1_000_001, f"{PLACE} zelda/x.md is 1.0 MB large; at most 1 MB is read"),
    ],
)
def test_a_prompt_file_must_be_readable_text(content, line, tmp_path):
    make(tmp_path, test_a="promptFile: x.md\n")
    if content == "pipe":
        os.mkfifo(tmp_path / "zelda/x.md")
    elif content is not None:
        (tmp_path / "zelda/x.md").write_bytes(content)
    assert problems(tmp_path) == [line]


def test_a_wrong_prompt_file_is_one_problem_and_so_is_one_beside_a_prompt(tmp_path):
    assert problems(make(tmp_path, test_a="promptFile: 5\n")) == [f"{PLACE} must be text: put 5 in quotes"]
    (tmp_path / "zelda/x.md").write_text("x")
    assert problems(make(tmp_path, test_a="tags: [a]\nprompt: x\npromptFile: x.md\n")) == [
        "zelda/test-a.yaml:3:1: prompt (line 2) and promptFile are both given: keep one"
    ]
