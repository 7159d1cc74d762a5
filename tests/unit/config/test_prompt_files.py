"""Prompts in files of their own."""

import os
import subprocess
from pathlib import Path

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


def test_both_kinds_of_prompt_are_one_too_many(tmp_path):
    (tmp_path / "zelda").mkdir()
    (tmp_path / "zelda/x.md").write_text("x")
    assert problems(make(tmp_path, test_a="tags: [a]\nprompt: x\npromptFile: x.md\n")) == [
        "zelda/test-a.yaml:3:1: prompt (line 2) and promptFile are both given: keep one"
    ]


@pytest.mark.parametrize("file", ["../../secret.md", "/etc/hostname", "..", "a/../../../x", "../../root-sibling/x"])
def test_a_prompt_comes_from_inside_the_project(file, tmp_path):
    (tmp_path / "secret.md").write_text("x")
    assert problems(make(tmp_path / "root", test_a=f"promptFile: {file}\n")) in (
        [OUTSIDE],
        [f"{PLACE}: . is a folder; it must be a regular file"],
    )


def test_not_even_through_a_link(tmp_path):
    (tmp_path / "secret.md").write_text("x")
    root = make(tmp_path / "root", test_a="promptFile: link/secret.md\n", test_b="promptFile: linked.md\n")
    (root / "zelda/link").symlink_to(tmp_path)
    (root / "zelda/linked.md").symlink_to(tmp_path / "secret.md")
    assert problems(root) == [
        OUTSIDE,
        "zelda/test-b.yaml:1:13: promptFile: zelda/linked.md is a symbolic link; it must be a regular file",
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, f"{PLACE}: zelda/x.md cannot be read: No such file or directory"),
        (b"", f"{PLACE}: zelda/x.md is empty"),
        (b" \n\t\n", f"{PLACE}: zelda/x.md is empty"),
        (b"caf\xe9", "zelda/x.md:1:4: is not UTF-8 text: byte 0xe9 at offset 3; save it as UTF-8"),
        (b"a\n\x00", "zelda/x.md:2:1: a text file cannot hold the character U+0000"),
        (b"x" * 1_000_001, f"{PLACE}: zelda/x.md is 1.0 MB large; at most 1 MB is read"),
    ],
)
def test_a_prompt_file_must_be_readable_text(content, line, tmp_path):
    make(tmp_path, test_a="promptFile: x.md\n")
    if content is not None:
        (tmp_path / "zelda/x.md").write_bytes(content)
    assert problems(tmp_path) == [line]


def test_a_pipe_does_not_block(tmp_path):
    make(tmp_path, test_a="promptFile: x.md\n")
    os.mkfifo(tmp_path / "zelda/x.md")
    assert problems(tmp_path) == [f"{PLACE}: zelda/x.md is a named pipe; it must be a regular file"]


def test_a_wrong_value_is_one_problem(tmp_path):
    assert problems(make(tmp_path, test_a="promptFile: 5\n")) == [f"{PLACE} must be text: put 5 in quotes"]


@pytest.mark.parametrize("file", ["x" * 5000, "a/" * 3000 + "x"])
def test_a_path_of_absurd_length_is_a_problem_and_no_crash(file, tmp_path):
    (line,) = problems(make(tmp_path, test_a=f"promptFile: {file}\n"))
    assert line.endswith("cannot be read: File name too long")


UNTRACKED = "is not tracked by git, and what a session gets must be: commit it, or write the text under prompt"


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)


@pytest.mark.parametrize("place", [".", "apps/shop"])
def test_a_prompt_is_a_file_that_git_tracks(place, tmp_path):
    """What lies about beside the commit, a .env above all, does not reach the model; nor does what git keeps itself."""
    suites = {"a": "../.env", "b": "../link/.env", "c": "../.git/config", "d": "new.md", "e": "../hard.md", "f": "x.md"}
    root = make(tmp_path / place, **{f"test_{name}": f"promptFile: {file}\n" for name, file in suites.items()})
    (root / ".env").write_text("PASSPHRASE=fake\n")
    (root / "link").symlink_to(root)
    (root / "hard.md").hardlink_to(root / ".env")
    (root / "zelda/new.md").write_text("x")
    (root / "zelda/x.md").write_text("x")
    git(tmp_path, "init", "-q")
    if place != ".":
        git(root, "init", "-q")
    git(root, "add", "zelda/x.md", "link", *(f"zelda/test-{name}.yaml" for name in suites))
    names = {"a": ".env", "b": "link/.env", "c": ".git/config", "d": "zelda/new.md", "e": "hard.md"}
    assert problems(root) == [
        f"zelda/test-{suite}.yaml:1:13: promptFile: {name} {UNTRACKED}" for suite, name in names.items()
    ]
    git(root, "add", "zelda/new.md")
    assert [line for line in problems(root) if "test-d" in line] == []


def test_where_git_cannot_tell_nothing_is_tracked(tmp_path):
    root = make(tmp_path, test_a="promptFile: x.md\n")
    (root / "zelda/x.md").write_text("x")
    git(root, "init", "-q")
    git(root, "add", ".")
    (root / ".git/index").write_bytes(b"DIRC damaged")
    assert problems(root) == [f"zelda/test-a.yaml:1:13: promptFile: zelda/x.md {UNTRACKED}"]


@pytest.mark.parametrize("key", ["protectedPaths", "testReport", "coverageReport"])
@pytest.mark.parametrize("path", [".git/hooks/*", "a/.GIT/config", ".git"])
def test_no_path_leads_into_git(key, path, tmp_path):
    (line,) = problems(make(tmp_path, test_a=f"prompt: x\ntestCommand: x\n{key}: ['{path}']\n"))
    assert line.startswith("zelda/test-a.yaml:3:")
    assert f"item 1 of {key} must not lead into .git" in line
