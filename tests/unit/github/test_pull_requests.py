"""What a commit object and a merge group's event tell of a pull request."""

from typing import Any

import pytest

from zelda_ci.github.pull_requests import merge_parents, of_merge_group

ONE, TWO, TREE = "1" * 40, "2" * 40, "3" * 40
QUEUE = "refs/heads/gh-readonly-queue"

MERGE = f"""\
tree {TREE}
parent {ONE}
parent {TWO}
author A <a@example.com> 1700000000 +0000
committer A <a@example.com> 1700000000 +0000
gpgsig -----BEGIN PGP SIGNATURE-----
 parent {TREE}
 -----END PGP SIGNATURE-----

Merge

parent {TREE}
"""


def test_a_merge_commit_has_base_and_head_as_parents() -> None:
    assert merge_parents(MERGE.encode()) == (ONE, TWO)


def test_the_first_commit_has_no_parent() -> None:
    assert merge_parents(f"tree {TREE}\nauthor A <a@b> 1 +0000\n\nparent {ONE}\n".encode()) == ()


def test_commits_of_a_sha256_repository_are_read_too() -> None:
    assert merge_parents(f"tree {'3' * 64}\nparent {'1' * 64}\n\nm".encode()) == ("1" * 64,)


@pytest.mark.parametrize("garbage", [b"", b"\n\n", b"parent \xff\xfe", b"parent " + b"z" * 40, b"parent " + b"1" * 41])
def test_garbage_has_no_parents(garbage: bytes) -> None:
    assert merge_parents(garbage) == ()


@pytest.mark.parametrize(
    ("ref", "number"),
    [
        (f"{QUEUE}/main/pr-104-{ONE}", 104),
        (f"{QUEUE}/release/pr-1-{TWO}/pr-105-{ONE}", 105),
        (f"{QUEUE}/main/pr-x-{ONE}", None),
        (f"{QUEUE}/main/pr-104-{ONE}/more", None),
        (f"refs/heads/feature/pr-104-{ONE}", None),
        (f"{QUEUE}/main/pr-{'9' * 5000}-{ONE}", None),
        (None, None),
    ],
)
def test_a_merge_group_names_its_last_pull_request(ref: str | None, number: int | None) -> None:
    assert of_merge_group({"merge_group": {"head_ref": ref}}) == number


@pytest.mark.parametrize("event", [{}, {"merge_group": None}, {"merge_group": []}, {"merge_group": {}}])
def test_an_event_of_another_kind_names_none(event: dict[str, Any]) -> None:
    assert of_merge_group(event) is None
