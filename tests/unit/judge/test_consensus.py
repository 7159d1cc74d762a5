"""Votes: more than half decide."""

import pytest

from zelda_ci.judge.base import majority


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [("", None), ("P", "P"), ("PPF", "P"), ("FPF", "F"), ("PF", None), ("PFN", None), ("PPPFF", "P"), ("PPFFN", None)],
)
def test_more_than_half_of_the_votes_decide(votes, verdict):
    assert majority(votes).verdict == verdict


def test_the_split_is_reported():
    found = majority("FPF")
    assert found.split == {"F": 2, "P": 1}
    assert not found.is_unanimous
    assert majority("PPP").is_unanimous
