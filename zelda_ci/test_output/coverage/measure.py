"""What a coverage format finds, and how findings of several parts of a project add up."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """How much was reached: in percent, and as numbers where the format has them."""

    percent: float
    covered: int | None = None
    valid: int | None = None

    @classmethod
    def of(cls, covered: int, valid: int) -> "Share | None":
        """The share of a countable whole; none of nothing."""
        return cls(100 * covered / valid, covered, valid) if valid > 0 and 0 <= covered <= valid else None


@dataclass(frozen=True)
class Coverage:
    """One measurement."""

    format: str
    lines: Share
    branches: Share | None = None


def percent(text: str) -> Share | None:
    """A share as printed; None for what is no percentage."""
    try:
        value = float(text)
    except ValueError:
        return None
    return Share(value) if 0 <= value <= 100 else None


def total(shares: Sequence[Share | None]) -> Share | None:
    """The share over all parts: by their numbers, or the one percentage that all of them give."""
    if not shares or None in shares:
        return None
    known = [share for share in shares if share is not None]
    if len({share.percent for share in known}) == 1 and len(known) == 1:
        return known[0]
    counted = [(share.covered, share.valid) for share in known if share.covered is not None and share.valid is not None]
    if len(counted) < len(known):
        return None
    return Share.of(sum(covered for covered, _ in counted), sum(valid for _, valid in counted))
