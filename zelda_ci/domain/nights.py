"""Results of suites night by night, and checks that fell although nobody changed a file that steers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Self

from pydantic import Field, model_validator

from zelda_ci.domain.base import Document, Moment, Record
from zelda_ci.domain.trials import MAX_TRIALS

# More than any history of ours has: whoever writes more means to keep the reader busy.
MAX_ROWS = 1000
LARGEST_NUMBER = 2**63 - 1
Count = Annotated[int, Field(ge=0, le=MAX_TRIALS)]


class Passes(Record):
    """Number of passes among a number of trials."""

    passed: Count = 0
    trials: Count = 0

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.passed > self.trials:
            raise ValueError("more trials passed than there were")
        return self

    @property
    def rate(self) -> float:
        """Between 0 and 1; of no trials 0."""
        return self.passed / self.trials if self.trials else 0.0

    def __str__(self) -> str:
        return f"{self.passed}/{self.trials}"

    def __add__(self, other: "Passes") -> "Passes":
        # Not validated, since a sum of possible ones is possible.
        return Passes.model_construct(passed=self.passed + other.passed, trials=self.trials + other.trials)


class SuiteNight(Record):
    """The valid trials of one suite in one night."""

    outcome: str
    """Fingerprint of suite, settings and steering files: nights in which it is the same may be compared."""
    tree: str = ""
    """Fingerprint of the project's own code."""
    platform: dict[str, str] = {}
    """Versions of what changes without a commit, by part: Claude Code, the answering models, the system."""
    trials: Count = 0
    whole: Passes = Passes()
    """Trials that passed in everything, among those that could pass or fail."""
    checks: dict[str, Passes] = {}
    """Passes by criterion, and of build and tests together."""
    cost_usd: float = Field(0.0, ge=0)


class Night(Record):
    """One row: a scheduled run, or on a laptop one invocation."""

    at: Moment
    batch_id: str
    commit: str | None = None
    run: Annotated[int, Field(ge=1, le=LARGEST_NUMBER)] | None = None
    """Number of the workflow run; absent on a laptop."""
    suites: dict[str, SuiteNight] = {}


class Drift(Record):
    """A check that passes less often than before, at the same suite and steering files."""

    suite: str
    check: str
    outcome: str
    """Fingerprint of the state in which it fell."""
    since: Moment
    """The first night that counts as after."""
    before: Passes
    after: Passes
    """Passes after it fell, when it was found."""
    lately: Passes
    """Passes in the newest nights."""
    p: float = Field(ge=0, le=1)
    """P value of the test that found it, corrected for everything that was tested in that night."""
    platform_before: dict[str, str] = {}
    platform_after: dict[str, str] = {}
    commit_before: str | None = None
    commit_after: str | None = None
    code_changed: bool = False
    """True where the project's own code changed, too."""
    issue: Annotated[int, Field(ge=1, le=LARGEST_NUMBER)] | None = None
    """Number of the issue about it; absent without one."""
    accepted: bool = False
    """True where somebody closed that issue: it is reported no more, until it is over or the issue is opened again."""


def nights_of(nights: Iterable[Night], drift: Drift) -> tuple[Night, ...]:
    """The newest nights in which a drift was looked at, those that `lately` counts."""
    rows = ((night, night.suites.get(drift.suite)) for night in nights if night.at >= drift.since)
    return tuple(night for night, row in rows if row and row.outcome == drift.outcome)[-WINDOW:]


class NightlyHistory(Document):
    """`history.json`: a row per night, the oldest first, and what is known to have fallen."""

    nights: tuple[Night, ...] = Field((), max_length=MAX_ROWS)
    drifts: tuple[Drift, ...] = Field((), max_length=MAX_ROWS)
    author: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Login of the issue's author, as GitHub answered: not every token may ask who it is."""


# Nights that are looked at together where the platform is what it was; more for a fall that shows in the longer run.
WINDOW, LONG_WINDOW = 5, 10
# After a change of the platform all nights since then are, for so long; and nights before that are compared with.
SETTLING, REFERENCE = 14, 60
# Nights of one state in which a fall can be seen at the earliest: the newest five against seven.
MIN_NIGHTS = 12


@dataclass(frozen=True)
class Split:
    """The nights of one suite in its newest state: the newest ones, and those that they are compared with."""

    suite: str
    before: tuple[Night, ...]
    after: tuple[Night, ...]

    def of(self, nights: Sequence[Night], check: str) -> Passes:
        """Passes of a check in these nights; of very many trials, in the newest of them."""
        counts = self._counts(nights, check)[::-1]
        sums = accumulate(count.trials for count in counts)
        # An exact test of more takes for ever.
        kept = (count for count, trials in zip(counts, sums, strict=True) if trials <= MAX_TRIALS)
        return sum(kept, Passes())

    def rates(self, nights: Sequence[Night], check: str) -> tuple[float, ...]:
        """Shares of trials that passed, one for each night that has the check."""
        return tuple(count.rate for count in self._counts(nights, check) if count.trials)

    def _counts(self, nights: Sequence[Night], check: str) -> list[Passes]:
        return [row[check] for night in nights if check in (row := night.suites[self.suite].checks)]

    @property
    def newest(self) -> SuiteNight:
        return self.after[-1].suites[self.suite]


def split_nights(nights: Sequence[Night], suite: str) -> tuple[Split, ...]:
    """The ways to tell new from old among the nights of a suite; none where it has not run in the newest night."""
    if not nights or suite not in nights[-1].suites:
        return ()
    # Suite, settings and steering files are those of now. What is new follows from platforms and dates, never outcomes.
    outcome = nights[-1].suites[suite].outcome
    alike = tuple(night for night in nights if suite in night.suites and night.suites[suite].outcome == outcome)
    platforms = [night.suites[suite].platform for night in alike]
    changes = [index for index in range(1, len(alike)) if platforms[index] != platforms[index - 1]]
    lately, settling = ([index for index in changes if index >= len(alike) - days] for days in (WINDOW, SETTLING))
    # The first change among the newest nights, else the last one not long ago.
    starts = dict.fromkeys(lately[:1] or settling[-1:])
    starts |= dict.fromkeys(max(0, len(alike) - days) for days in (WINDOW, LONG_WINDOW))
    return tuple(Split(suite, alike[max(0, start - REFERENCE) : start], alike[start:]) for start in starts)
