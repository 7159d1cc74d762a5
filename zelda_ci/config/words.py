"""What was probably meant by a word."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

MAX_LENGTH = 60
_LIKE = 0.74
_TELLING_LENGTH = 4


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice most like a word, the first of several; absent when none is like it.

    A choice is also like its parts: `criteria` means `acceptanceCriteria`, and `timeout` means `timeoutSeconds`.
    """
    sought = folded(word[:MAX_LENGTH])
    best, likeness = None, _LIKE
    for choice in choices:
        if (found := _likeness(sought, choice)) > likeness:
            best, likeness = choice, found
    return best


def _likeness(sought: str, choice: str) -> float:
    whole = _ratio(sought, folded(choice))
    if len(sought) < _TELLING_LENGTH:
        return whole
    parts = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", choice)
    runs = ("".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1))
    # A part is less than the whole.
    return max([whole, *(0.95 * _ratio(sought, run.lower()) for run in runs if len(run) >= _TELLING_LENGTH)])


def _ratio(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() > _LIKE else 0.0


def folded(word: str) -> str:
    """Letters and digits alone, small."""
    return "".join(char for char in word.lower() if char.isalnum())
