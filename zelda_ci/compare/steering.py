"""Which files of a change steer, and which suites may feel each: what whoever looks for a cause reads first. Pure."""

from collections.abc import Mapping, Sequence

from zelda_ci.compare.effects import ChangeSet, Effect, FileChange, ProjectFiles, SuiteEvidence, effects_on_others
from zelda_ci.compare.evidence import Habits, counted
from zelda_ci.compare.impact import MIN_TRIALS, concerned
from zelda_ci.domain.ci import SteeringChange
from zelda_ci.domain.kinds import may_steer

# A comment names a few; more of them are no explanation.
MAX_STEERING = 50


def steering_changes(
    changes: ChangeSet, suites: Sequence[SuiteEvidence], project: ProjectFiles, *, min_trials: int = MIN_TRIALS
) -> tuple[SteeringChange, ...]:
    """Of what changed, the files that steer, with the suites that may feel each. Arguments as for `choose`."""
    effects = {it.path: list(effects_on_others(it, changes, project)) for it in changes.files}
    steering = [it for it in changes.files if may_steer(it.path) or _is_led_to(effects[it.path])]
    habits = {it.suite.name: Habits.of(counted(it.trials, it.today, it.suite)) for it in suites}
    return tuple(_felt_by(it, effects[it.path], habits, min_trials) for it in steering[:MAX_STEERING])


def line_changes(before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> tuple[SteeringChange, ...]:
    """The files that steer and differ between two states, each with the first line that does; by their lines."""
    paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    return tuple(_at_line(path, before.get(path, ()), after.get(path)) for path in paths[:MAX_STEERING])


def _at_line(path: str, before: Sequence[str], after: Sequence[str] | None) -> SteeringChange:
    if after is None:
        return SteeringChange(path, is_gone=True)
    pairs = zip(before, after, strict=False)
    same = next((at for at, (was, now) in enumerate(pairs) if was != now), min(len(before), len(after)))
    return SteeringChange(path, max(1, min(same + 1, len(after))))


def _is_led_to(effects: Sequence[Effect]) -> bool:
    """Whether a file that steers runs or imports one of the project's own, or a skill or sub-agent names it."""
    return any(
        effect.scope != "read" and effect.why not in ("the configuration", "beside the suites") for effect in effects
    )


def _felt_by(
    change: FileChange, effects: Sequence[Effect], habits: Mapping[str, Habits], min_trials: int
) -> SteeringChange:
    names = None
    if effects and not any(effect.scope == "all" for effect in effects):
        names = frozenset(
            name for name, each in habits.items() if any(_may_feel(effect, each, min_trials) for effect in effects)
        )
    line = change.line if change.after else None
    return SteeringChange(change.path, line, names, is_gone=change.after is None)


def _may_feel(effect: Effect, habits: Habits, min_trials: int) -> bool:
    loading = frozenset(filter(effect.touches, habits.touched)) if effect.touches else frozenset()
    return concerned(effect, habits, loading, min_trials) is not None
