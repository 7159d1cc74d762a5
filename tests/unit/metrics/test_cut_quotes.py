"""A quote in pieces: one stands at its place, the others anywhere, and none is invented."""

import pytest

from tests.unit.metrics.test_proof import RUN, sources
from zelda_ci.metrics.evidence import problem_with


@pytest.mark.parametrize(
    ("quote", "holds"),
    [
        ("7 passed in 0.12s\n[a1b2c3d4 returned]\nfirst line", True),
        ("7 passed in 0.12s\n[a1b2c3d4 returned]\n9 tests failed and nobody looked", False),
        ("9 tests failed and nobody looked\n[a1b2c3d4 returned]\n7 passed in 0.12s", False),
    ],
)
def test_every_piece_of_a_quote_was_shown(quote: str, holds: bool) -> None:  # noqa: FBT001
    assert (problem_with("turn 2 call 1", quote, sources(RUN)) is None) is holds
