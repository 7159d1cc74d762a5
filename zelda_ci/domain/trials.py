"""Trials of suites: how many there are to be, what they may cost, and how far the two sides came."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, computed_field, model_validator
from pydantic_core import PydanticCustomError

from zelda_ci.domain.base import Document, Record, Setting, checked
from zelda_ci.domain.manifest import SteeringChange
from zelda_ci.redact import SafeText

MAX_TRIALS = 1000
TrialCount = Annotated[int, Field(ge=1, le=MAX_TRIALS)]


class Side(StrEnum):
    """Side of a trial: the files of the change, or those that it is compared with."""

    HEAD = "head"
    BASE = "base"


_RISING = checked("must be numbers that rise", lambda looks: list(looks) == sorted(set(looks)))
Looks = Annotated[tuple[TrialCount, ...], Field(min_length=1, max_length=10), _RISING]


class TrialPlan(Setting):
    """Trials that are added where they are needed: the first ones of the head, then both sides up to each look."""

    first: TrialCount = 3
    """Trials of the head that every suite has."""
    looks: Looks = (6, 10, 16, 24)
    """Trials of the head after which the two sides are compared."""
    budget_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Cost in US dollars, judge included, after which no further trial is begun."""

    @model_validator(mode="after")
    def _compares(self) -> Self:
        """Check for a look above the first trials: without one, no suite would ever run beside the base."""
        if self.first >= self.looks[-1]:
            message = "must have a look above first: first is {first}, and the last look {last}"
            raise PydanticCustomError("no_look", message, {"first": self.first, "last": self.looks[-1]})
        return self

    @property
    def counts(self) -> tuple[int, ...]:
        """Trials of the head at each look, the first one included; looks before that are left out."""
        return (self.first, *(look for look in self.looks if look > self.first))


# A number stands for as many trials on each side, whatever they show.
Plan = TrialPlan | int
# What the key `trials` may say.
TrialSetting = TrialCount | Literal["adaptive"] | TrialPlan


def plan_of(setting: TrialSetting) -> Plan:
    return TrialPlan() if setting == "adaptive" else setting


def trials_alone(setting: TrialSetting) -> int:
    """Number of trials where nothing is compared: one, unless the setting is a number."""
    return setting if isinstance(setting, int) else 1


class DoneReason(StrEnum):
    """Reason why a suite has no further trials."""

    AS_EXPECTED = "asExpected"
    """Nothing looks worse than the stored trials, or those of the base, lead to expect."""
    REGRESSED = "regressed"
    """A regression is proven."""
    PLAN_ENDED = "planEnded"
    """All trials of the plan were made."""
    NOT_PROVEN = "notProven"
    """Something looks worse, and so little that the trials of the last look would hardly prove it."""
    NOT_COMPARABLE = "notComparable"
    """The sides differ in more than the steering files, so that no comparison would mean anything."""
    NO_BASE = "noBase"
    """Something looks worse, and there is nothing to compare it with."""
    FAILED = "failed"
    """Too many trials of a side failed for reasons outside the tested files."""
    BUDGET = "budget"
    """The money was gone."""
    ENDED = "ended"
    """Something ended the invocation, such as a refused key or a limit on failed runs."""
    INTERRUPTED = "interrupted"
    """The user ended it."""


class PoolSettings(Setting):
    """Which stored trials of the base are counted together."""

    max_age_days: float = Field(14, gt=0, le=400)
    """Age in days up to which stored trials are counted."""
    max_trials: Annotated[int, Field(ge=0, le=1000)] = 30
    """Stored trials of one state of a suite that are kept, the newest; 0 for none."""


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
