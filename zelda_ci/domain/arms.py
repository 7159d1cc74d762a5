"""Two arms, head and base: what they may cost by stored trials, why they go on, and how far they came."""

from dataclasses import dataclass
from typing import Literal

from pydantic import computed_field

from zelda_ci.domain.base import Record
from zelda_ci.domain.trials import TrialSetting
from zelda_ci.redact import SafeText


class TrialPrice(Record):
    """What one trial of a suite costs, judge included, in US dollars."""

    usual: float
    most: float
    """Of those that are stored; the next one may cost more."""
    trials: int
    """Stored trials that say so."""


class SuiteForecast(Record):
    """How many sessions a suite may take, and what one costs."""

    suite: str
    fewest: int
    most: int
    price: TrialPrice | None = None
    """Absent where no trial is stored."""
    limit_usd: float | None = None
    """At which a session of it is ended, judge not included; absent where the suite has no `maxCostUsd`."""


class Forecast(Record):
    """The plan of an invocation, before anything is spent."""

    schema_version: Literal[1] = 1
    suites: tuple[SuiteForecast, ...]
    budget_usd: float | None = None
    replayed: bool = False
    """Whether the models' words come from a recording, so that nothing is spent."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def fewest(self) -> int:
        return sum(suite.fewest for suite in self.suites)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def most(self) -> int:
        return sum(suite.most for suite in self.suites)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def usual_usd(self) -> float:
        """The fewest sessions at their usual price, as far as prices are known."""
        return sum(suite.fewest * suite.price.usual for suite in self.suites if suite.price)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def most_usd(self) -> float:
        """All sessions, each as dear as the dearest that is stored, as far as prices are known; no bound."""
        return sum(suite.most * suite.price.most for suite in self.suites if suite.price)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Suites of which nothing is stored."""
        return tuple(suite.suite for suite in self.suites if suite.price is None)


class SuiteArms(Record):
    """How far the two sides of a suite came, and why no further; told as it happens, too."""

    suite: str
    head: int
    """Trials of this invocation."""
    base: int = 0
    reason: str
    """`asExpected`, `regressed`, `planEnded`, `notProven`, `noBase`, `failed`, `budget`, `ended` or `interrupted`."""
    unpaid: int = 0
    """Trials that were wanted and not begun: the money was gone, or the invocation was ended."""
    trials: TrialSetting | None = None
    """The plan that they follow; absent where it is that of the runs."""


class BaseSide(Record):
    """The commit whose files run beside those of the head."""

    wanted: str
    """As it was asked for."""
    commit: str | None = None
    """Absent where it could not be had."""
    problem: SafeText | None = None
    """Why not."""


@dataclass(frozen=True)
class MoreTrials:
    """A suite goes on to its next look."""

    suite: str
    head: int
    base: int
    made: int
    """Trials of the head that were looked at."""
    look: int
    """The one to come, from 1."""
    looks: int
    """At most."""
    missed: tuple[tuple[str, int, int], ...] = ()
    """Criteria that the head did not always meet: how often not, of how many trials."""
