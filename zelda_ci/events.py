"""What happened, as it happens. Frozen events to a callable; taking every sink away changes no result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from zelda_ci.domain.attribution import Attribution
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionRecord
from zelda_ci.domain.trials import Forecast, MoreTrials, SuiteArms


class Phase(StrEnum):
    """Where a run is, in order; build and test are parts of the evaluation."""

    WORKSPACE = "workspace"
    SETUP = "setup"
    SESSION = "session"
    EVALUATION = "evaluation"
    BUILD = "build"
    TEST = "test"


@dataclass(frozen=True)
class RunsPlanned:
    """Runs that wait for their turn: those of the plan first, then what their results ask for."""

    runs: Mapping[str, float | None]
    """Label → seconds that it took when it was last run, in the order of starting."""
    jobs: int
    """How many run at a time."""
    isolation: str = ""
    """How they are confined, in one line; of the plan only."""
    forecast: Forecast | None = None
    """What the plan may cost; absent where nothing is spent."""


@dataclass(frozen=True)
class Checking:
    """What is being tried before anything is spent; nothing once that is over."""

    about: str | None = None


@dataclass(frozen=True)
class RunStarted:
    """A run begins; `label` is the suite's name, with the trial where there are several."""

    run_id: str
    label: str


@dataclass(frozen=True)
class PhaseStarted:
    run_id: str
    phase: Phase


@dataclass(frozen=True)
class SessionProgressed:
    """A record of the session arrived; turns and cost are what the run has used so far."""

    run_id: str
    record: SessionRecord
    turns: int
    cost_usd: float


@dataclass(frozen=True)
class Warned:
    """Something the user should know and that stops nothing."""

    message: str
    run_id: str | None = None
    output: str = ""
    """Lines of a command that belong to it."""


@dataclass(frozen=True)
class RunFinished:
    """A result is on disk; the workspace is still there."""

    result: RunResult


RunEvent = RunStarted | PhaseStarted | SessionProgressed | RunFinished
# An attribution: a round of a search for the cause of a regression is over, and that is known by now.
Event = RunsPlanned | MoreTrials | SuiteArms | Attribution | Checking | Warned | RunEvent
Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The sink of those who do not listen."""
