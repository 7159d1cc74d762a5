"""What a commit object tells of a pull request."""

import pytest

from zelda_ci.github.revisions import merge_parents

ONE, TWO, TREE = "1" * 40, "2" * 40, "3" * 40

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
