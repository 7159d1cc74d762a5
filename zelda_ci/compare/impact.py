"""Which suites a change can concern: by the changed files, and by what stored trials of each suite have felt. Pure.

It fails open. A suite is left out only where each changed file is known to leave it untouched: the file steers nothing,
or it is one that a session feels only by calling or touching something, and enough trials of the suite never did.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from zelda_ci.compare.effects import ChangeSet, Effect, ProjectFiles, SuiteEvidence, effects_of, is_code
from zelda_ci.compare.evidence import Habits, counted

# Of a suite, below which nobody says what it never does: as many as an adaptive plan begins with.
MIN_TRIALS = 3
# What GitHub lists of a pull request, and what anybody wants to look at.
MAX_CHANGED_FILES = 3_000


@dataclass(frozen=True)
class SuiteChoice:
    """Whether a suite runs, and why."""

    suite: str
    runs: bool
    reason: str
    """In words that follow "since" or stand alone."""
    by_trials: bool = False
    """Whether stored trials decided, or the lack of them."""


NOTHING = "nothing here can change a result"


def choose(
    changes: ChangeSet,
    suites: Sequence[SuiteEvidence],
    project: ProjectFiles,
    *,
    run_all: str | None = None,
    min_trials: int = MIN_TRIALS,
) -> tuple[SuiteChoice, ...]:
    """Each suite with whether it runs.

    Args:
        changes: What differs from the state that results are compared with.
        suites: All that were asked for.
        project: Where it has its files.
        run_all: Why everything runs whatever has changed.
        min_trials: Below which nobody says what a suite never does.
    """
    known = run_all or changes.problem
    if known is None and len(changes.files) > MAX_CHANGED_FILES:
        known = f"more than {MAX_CHANGED_FILES:,} files changed"
    if known:
        return tuple(SuiteChoice(it.suite.name, runs=True, reason=known) for it in suites)
    effects = [effect for change in changes.files for effect in effects_of(change, changes, suites, project)]
    paths = [change.path for change in changes.files]
    counts = [counted(it.trials, it.today, it.suite) for it in suites]
    habits = [Habits.of(each, len(it.trials) - len(each)) for it, each in zip(suites, counts, strict=True)]
    # Once for all suites, which touch the same files: patterns are slow.
    touched = frozenset().union(*(each.touched for each in habits))
    loading = {
        id(effect): frozenset(filter(effect.touches, touched)) for effect in effects if effect.touches is not None
    }
    choices = [
        _choice(it.suite.name, each, effects, loading, min_trials) for it, each in zip(suites, habits, strict=True)
    ]
    return tuple(_of_constant_reader(choice, paths, each) for choice, each in zip(choices, habits, strict=True))


def either(one: Sequence[SuiteChoice], other: Sequence[SuiteChoice]) -> tuple[SuiteChoice, ...]:
    """Of two choices about the same suites: a suite runs where any of them says so; trials say more than nothing."""
    return tuple(max(pair, key=lambda choice: (choice.runs, choice.by_trials)) for pair in zip(one, other, strict=True))


def trials_may_tell(choices: Iterable[SuiteChoice], changes: ChangeSet, project: ProjectFiles) -> bool:
    """Whether choices that were made without stored trials may be others with them."""
    listed = list(choices)
    own = (project.config, f"{project.test_dir}/")
    is_readable = any(not is_code(it.path) and not it.path.startswith(own) for it in changes.files)
    return any(it.by_trials or (not it.runs and is_readable) for it in listed)


def nothing_changed(choices: Iterable[SuiteChoice]) -> bool:
    """Whether no suite is left out for what it never does: nothing that could matter changed at all."""
    return all(not choice.runs and choice.reason == NOTHING for choice in choices)


def left_out(choices: Iterable[SuiteChoice]) -> tuple[str, ...]:
    """A sentence for each reason for which suites are not run."""
    reasons: dict[str, list[str]] = {}
    for choice in choices:
        if not choice.runs:
            reasons.setdefault(choice.reason, []).append(choice.suite)
    return tuple(f"Not run: {', '.join(names)}: {reason}" for reason, names in reasons.items())


def reasons(choices: Iterable[SuiteChoice]) -> tuple[str, ...]:
    """A sentence for each reason for which suites run."""
    groups: dict[str, list[str]] = {}
    for choice in choices:
        if choice.runs:
            groups.setdefault(choice.reason, []).append(choice.suite)
    return tuple(f"Run: {', '.join(names)}: {reason}" for reason, names in groups.items())


def _choice(
    name: str, habits: "Habits", effects: Sequence[Effect], loading: Mapping[int, frozenset[str]], min_trials: int
) -> SuiteChoice:
    """Of one suite; `loading` has for an effect the files that load what changed."""
    certain = (effect for effect in effects if effect.scope == "all" or name in effect.suites)
    if effect := next(certain, None):
        return SuiteChoice(name, runs=True, reason=f"{effect.path} changed ({effect.why})")
    waiting = [effect for effect in effects if effect.scope in ("unit", "files", "read")]
    if not waiting:
        return SuiteChoice(name, runs=False, reason=NOTHING)
    for effect in waiting:
        if why := concerned(effect, habits, loading.get(id(effect), frozenset()), min_trials):
            return SuiteChoice(name, runs=True, reason=f"{effect.path} changed, and {why}", by_trials=True)
    spared = " or ".join(dict.fromkeys(effect.why for effect in waiting))
    return SuiteChoice(name, runs=False, reason=f"none of {habits.trials} trials {spared}", by_trials=True)


def _of_constant_reader(choice: SuiteChoice, paths: Iterable[str], habits: Habits) -> SuiteChoice:
    """A suite of which every trial reads a document feels it, whether anything names it or not.

    Code that all read is the work itself: `gate.paths` says where it matters.
    """
    path = next((path for path in paths if path in habits.always_read and not is_code(path)), None)
    if choice.runs or path is None:
        return choice
    return SuiteChoice(choice.suite, runs=True, reason=f"{path} changed, and every trial read it", by_trials=True)


def concerned(effect: Effect, habits: Habits, loading: frozenset[str], min_trials: int) -> str | None:
    """Why a suite feels a change that only those feel who call or touch something."""
    unit = effect.unit or effect.path
    if effect.scope == "unit":
        if unit in habits.shown:
            return f"a trial {effect.why}"
        known = habits.tells.get(unit, 0)
        return None if known >= min_trials else _unknown(known, min_trials, habits)
    if not loading.isdisjoint(habits.touched) or not effect.read.isdisjoint(habits.consulted):
        return f"a trial {effect.why}"
    if unit in habits.read:
        return "a trial read it"
    return None if habits.tellers >= min_trials else _unknown(habits.tellers, min_trials, habits)


def _unknown(trials: int, min_trials: int, habits: Habits) -> str:
    told = f"only {trials} of the {min_trials} stored trials are there that would tell whether the suite uses it"
    if not habits.passed_over:
        return told
    return f"{told} ({habits.passed_over} more broke off, or are of other settings, judges, models or Claude Code)"
