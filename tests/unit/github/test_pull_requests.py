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


@pytest.mark.parametrize("garbage", [b"", b"\n\n", b"parent \xff\xfe", b"parent " + b"z" * 40, b"parent " + b"1" * 41])
def test_garbage_has_no_parents(garbage: bytes) -> None:
    assert merge_parents(garbage) == ()
