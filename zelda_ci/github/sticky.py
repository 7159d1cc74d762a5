"""The two hidden lines by which a comment is found again, and known to be newer or older than a run: pure."""

import hashlib
import re
from dataclasses import dataclass
from typing import Self

LONGEST_BODY = 65_536
"""UTF-16 code units, as GitHub counts."""

_PLAIN_KEY = re.compile(r"[A-Za-z0-9._]([A-Za-z0-9._]|-(?!-)){0,79}")
_ORDER = re.compile(r"<!-- zelda-ci:order run=([0-9]{1,18}) attempt=([0-9]{1,9}) head=([0-9a-f]{0,64}) -->")


@dataclass(frozen=True)
class Order:
    """Which run a comment tells of.

    Attributes:
        run_id: Of the run whose results it tells; later runs have larger ones.
        run_attempt: Grows when the run is run again.
        head_sha: The pull request's head that was tested. Empty where that is not known, as in a merge queue.
    """

    run_id: int
    run_attempt: int
    head_sha: str

    def is_after(self, other: Self) -> bool:
        """Whether this run's results count and the other's do not; those for another head count for nothing."""
        same_head = not self.head_sha or not other.head_sha or self.head_sha == other.head_sha
        return same_head and (self.run_id, self.run_attempt) > (other.run_id, other.run_attempt)


def marker(key: str) -> str:
    """The first line of the comment that is kept for `key`.

    A key that could end the HTML comment, or is too long to read, is replaced by its hash.
    """
    shown = key if _PLAIN_KEY.fullmatch(key) else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"<!-- zelda-ci:sticky:v1 id={shown} -->"


def sealed(key: str, order: Order, body: str) -> str:
    """A body behind its two hidden lines."""
    hidden = f"<!-- zelda-ci:order run={order.run_id} attempt={order.run_attempt} head={order.head_sha} -->"
    return f"{marker(key)}\n{hidden}\n{body}"


def is_marked(text: str, key: str) -> bool:
    """Whether a comment is the one for `key`; text that quotes the marker anywhere else is not."""
    return text.partition("\n")[0].rstrip() == marker(key)


def order_in(text: str) -> Order | None:
    """Which run a marked comment claims to tell of; None where somebody spoilt the line."""
    lines = text.split("\n", 2)
    found = _ORDER.fullmatch(lines[1].rstrip()) if len(lines) > 1 else None
    return Order(int(found[1]), int(found[2]), found[3]) if found else None


def visible(text: str) -> str:
    """What readers see of a marked comment, however its lines end."""
    lines = text.replace("\r\n", "\n").split("\n", 2)
    return lines[2].rstrip() if len(lines) > 2 else ""


def length(text: str) -> int:
    """In UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
