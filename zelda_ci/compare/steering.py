"""Which files of a change steer, and which suites may feel each: what whoever looks for a cause reads first. Pure."""

from collections.abc import Mapping, Sequence

from zelda_ci.compare.evidence import Habits, counted
from zelda_ci.compare.impact import (
    MIN_TRIALS,
    ChangeSet,
    Effect,
    FileChange,
    ProjectFiles,
    SuiteEvidence,
    concerned,
    drawn_in,
    effect_on_others,
    may_steer,
)
from zelda_ci.domain.ci import SteeringChange

# A comment names a few; more of them are no explanation.
MAX_STEERING = 50


def steering_changes(
    changes: ChangeSet, suites: Sequence[SuiteEvidence], project: ProjectFiles, *, min_trials: int = MIN_TRIALS
) -> tuple[SteeringChange, ...]:
    """Of what changed, the files that steer, with the suites that may feel each. Arguments as for `choose`."""
    steering = [it for it in changes.files if may_steer(it.path) or drawn_in(it.path, changes.felt)]
    habits = {it.suite.name: Habits.of(counted(it.trials, it.today, it.suite)) for it in suites}
    return tuple(_felt_by(it, changes.felt, habits, project, min_trials) for it in steering[:MAX_STEERING])


def _felt_by(
    change: FileChange,
    felt: Mapping[str, str],
    habits: Mapping[str, Habits],
    project: ProjectFiles,
    min_trials: int,
) -> SteeringChange:
    effect = effect_on_others(change, felt, project)
    names = None
    if effect and effect.scope in ("unit", "files"):
        names = frozenset(name for name, each in habits.items() if _may_feel(effect, each, min_trials))
    line = change.line if change.after else None
    return SteeringChange(change.path, line, names, is_gone=change.after is None)


def _may_feel(effect: Effect, habits: Habits, min_trials: int) -> bool:
    loading = frozenset(filter(effect.touches, habits.touched)) if effect.touches else frozenset()
    return concerned(effect, habits, loading, min_trials) is not None
