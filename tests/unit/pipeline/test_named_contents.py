"""When a comparison is fair although commits only name some of their contents, and what is said where it is not."""

import pytest

from zelda_ci.domain.workspace import NamedContents, Parts
from zelda_ci.errors import WorkspaceError
from zelda_ci.pipeline.checking import check_fair


def of(parts: tuple[str, str], *, lfs: bool) -> NamedContents:
    """The contents that a side has, and those that it lacks, a letter each."""
    present, missing = parts
    made = Parts(frozenset(present), dict.fromkeys(missing, ""))
    return NamedContents(lfs=made) if lfs else NamedContents(submodules=made)


@pytest.mark.parametrize(
    ("base", "head", "fair"),
    [
        (("", ""), ("", ""), True),
        (("a", ""), ("a", ""), True),
        (("", "a"), ("", "a"), True),
        (("", "a"), ("a", ""), False),
        (("a", ""), ("", "a"), False),
        # Removed by the head, which has all of its own: the base would be tested without what it needs.
        (("", "a"), ("", ""), False),
        (("", "ab"), ("a", ""), False),
        # A workflow that checks none of them out does so on both sides.
        (("", "a"), ("", "b"), True),
        # New in the head, and missing there: the base never had it.
        (("a", ""), ("a", "b"), True),
        (("", ""), ("", "b"), True),
    ],
)
def test_a_comparison_is_fair_where_neither_side_lacks_what_the_other_has(
    base: tuple[str, str], head: tuple[str, str], *, fair: bool
) -> None:
    for lfs in (False, True):
        sides = of(base, lfs=lfs), of(head, lfs=lfs)
        if fair:
            check_fair(*sides)
            continue
        with pytest.raises(WorkspaceError) as caught:
            check_fair(*sides)
        assert caught.value.code == "BASE_UNAVAILABLE"
