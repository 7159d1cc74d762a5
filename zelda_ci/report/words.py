"""One word for each thing that reports tell: how a run ended, and what that means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zelda_ci.domain import numbers
from zelda_ci.domain.outcome import Outcome
from zelda_ci.domain.session import SessionStatus
from zelda_ci.report.model import Cell, Tone


@dataclass(frozen=True)
class Words:
    """An outcome as a badge, as a word in a sentence, for several, and what an exit code with it means."""

    badge: str
    word: str
    several: str
    tone: Tone
    meaning: str = ""

    @property
    def verdict(self) -> Cell:
        """The badge in its colour."""
        return Cell(self.badge, self.tone)

    @property
    def cell(self) -> Cell:
        """The word in its colour."""
        return Cell(self.word, self.tone)


# The gravest first.
OUTCOMES: Mapping[Outcome, Words] = {
    Outcome.INTERRUPTED: Words("STOP", "interrupted", "interrupted", Tone.WARN, "interrupted"),
    Outcome.BROKEN: Words("ERROR", "error", "errors", Tone.BAD, "Zelda could not do its work"),
    Outcome.INCOMPLETE: Words("INCOMPLETE", "INCOMPLETE", "INCOMPLETE", Tone.BAD, "not everything could be judged"),
    Outcome.FAILED: Words("FAIL", "failed", "failed", Tone.BAD, "evaluations ran and something failed"),
    Outcome.PASSED: Words("PASS", "passed", "passed", Tone.GOOD, "all well"),
    Outcome.MEASURED: Words("MEASURED", "measured", "measured", Tone.NEUTRAL),
}

# How a session ended.
ENDINGS: Mapping[SessionStatus, str] = {
    **{status: status.value for status in SessionStatus},
    SessionStatus.MAX_TURNS: "ran out of turns",
    SessionStatus.BUDGET_EXCEEDED: "reached its cost limit",
    SessionStatus.TIMED_OUT: "timed out",
}


def first(cells: Sequence[Cell], most: int, *, unlisted: int = 0) -> tuple[Cell, ...]:
    """The first of them, and how many more there are; `unlisted` counts those that are not even known."""
    more = max(len(cells) - most, 0) + unlisted
    return (*cells[:most], *([Cell(f"and {numbers.whole(more)} more", Tone.DIM)] if more else []))
