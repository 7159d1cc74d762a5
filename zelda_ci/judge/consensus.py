"""What several votes come to. Pure."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

V = TypeVar("V", bound=Hashable)


@dataclass(frozen=True)
class Consensus(Generic[V]):
    """The verdict that more than half of the votes have, if there is one, and how they split."""

    verdict: V | None
    split: dict[V, int]

    @property
    def is_unanimous(self) -> bool:
        """Whether all votes are alike."""
        return len(self.split) <= 1


def majority(votes: Sequence[V]) -> Consensus[V]:
    """Count votes: exactly half of them is no majority, and no vote at all is none either."""
    split = dict(Counter(votes).most_common())
    ahead = next(iter(split), None)
    is_majority = ahead is not None and 2 * split[ahead] > len(votes)
    return Consensus(ahead if is_majority else None, split)
