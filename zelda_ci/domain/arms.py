"""Two arms, head and base: what they may cost by stored trials, why they go on, and how far they came."""

from dataclasses import dataclass

from pydantic import computed_field

from zelda_ci.domain.base import Document, Record
from zelda_ci.domain.steering import SteeringChange
from zelda_ci.domain.trials import DoneReason, TrialSetting
from zelda_ci.redact import SafeText


class TrialPrice(Record):
    """Price of one trial of a suite, judge included, in US dollars."""

    usual: float
    most: float
    """The dearest stored trial; the next one may cost more."""
    trials: int
    """Number of stored trials that the price rests on."""


class SuiteForecast(Record):
    """Number and price of the sessions that a suite may take."""

    suite: str
    fewest: int
    most: int
    price: TrialPrice | None = None
    """Absent where no trial is stored."""
    limit_usd: float | None = None
    """Cost at which a session of the suite is ended, judge not included; absent without `maxCostUsd`."""


class Forecast(Document):
    """The plan of an invocation, before anything is spent."""

    suites: tuple[SuiteForecast, ...]
    budget_usd: float | None = None
    replayed: bool = False
    """True where the models' words come from a recording, so that nothing is spent."""

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


class SuiteArms(Record):
    """Progress of the two sides of a suite, and why it ended; also an event."""

    suite: str
    head: int
    """Trials of this invocation."""
    base: int = 0
    reason: DoneReason
    unpaid: int = 0
    """Trials that were wanted and not begun: the money was gone, or the invocation was ended."""
    trials: TrialSetting
    """The plan that they follow."""


class BaseSide(Record):
    """The commit whose files run beside those of the head."""

    wanted: str
    """The commit as the user named it."""
    commit: str | None = None
    """Hash of the commit; absent where it could not be read."""
    problem: SafeText | None = None
    """Reason why it could not be read."""
    changed: tuple[SteeringChange, ...] = ()
    """Files that steer and differ from those that are tested, where `run --against` looked for them."""


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
    missed: tuple[tuple[str, int, int], ...] = ()
    """Criteria that the head did not always meet: name, failures, trials."""
