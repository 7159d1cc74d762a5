"""Which suites run: by the changed files, and by what stored trials of each suite used. Pure.

It fails open. A suite is left out only where each changed file is known to leave it untouched: the file steers nothing,
or it is one that a session has only by calling or touching something, and enough trials of the suite never did.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from zelda_ci.domain.kinds import may_steer
from zelda_ci.domain.manifest import SteeringChange
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.files import globs
from zelda_ci.selection import effects as of_files
from zelda_ci.selection.effects import ChangeSet, Effect, ProjectFiles, effects_of, is_code

# Of a suite, below which nobody says what it never does: as many as an adaptive plan begins with.
MIN_TRIALS = 3
# A comment names a few files that steer; more of them are no explanation.
MAX_STEERING = 50
NOTHING = "nothing here can change a result"


class SuiteChoice(NamedTuple):
    """Whether a suite runs, and why."""

    suite: str
    runs: bool
    reason: str
    """In words that follow "since" or stand alone."""
    by_trials: bool = False
    """Whether stored trials decided, or the lack of them."""


@dataclass(frozen=True)
class SuiteEvidence:
    """A suite, and what is known of it."""

    suite: ResolvedSuite
    files: frozenset[str]
    """Its own, that of its prompt, and files and folders that its commands name; from the top of the repository."""
    trials: tuple[RunResult, ...] = ()
    """Stored ones; those that do not count are passed over here."""
    today: Mapping[str, str] = field(default_factory=dict)
    """Parts of a fingerprint that are known before a session, by name: what it will run on and be judged by."""


def _usable(suite: SuiteEvidence) -> list[RunResult]:
    """Trials that say what a suite does: whole ones, of the suite as it is, on what it runs on today."""
    whole = []
    for run in suite.trials:
        own = run.fingerprint.parts if run.fingerprint else {"agentSdk": run.versions.agent_sdk}
        is_whole = run.status is SessionStatus.COMPLETED and not run.replayed and run.steering is not None
        is_of_today = all(own.get(part, value) == value for part, value in suite.today.items())
        if is_whole and is_of_today and _settings(run.config) == _settings(suite.suite):
            whole.append(run)
    # Which models answer is known from the newest only. A further one may help now and then.
    newest = {*max(whole, key=lambda run: (run.finished_at, run.run_id)).models} if whole else set()
    return [run for run in whole if {*run.models} <= newest or {*run.models} >= newest]


def _settings(suite: ResolvedSuite) -> tuple[object, ...]:
    """What decides what a session does; what was missed or broken is the judge's word."""
    execution = suite.execution
    tools = (execution.permission_mode, execution.allowed_tools, execution.disallowed_tools)
    judge = (suite.judge_model, suite.judge.models, suite.metrics.is_on(Metric.TOOL_USAGE))
    return (suite.prompt, execution.model, *tools, suite.setup_command, *judge)


class SuiteBehaviour:
    """What those trials of a suite did that are usable, taken together; units by their paths."""

    def __init__(self, suite: SuiteEvidence) -> None:
        counted = _usable(suite)
        uses = [use for run in counted for use in run.steering or ()]
        # Trials that know all files that they touched.
        known = [run for run in counted if run.touched is not None]
        touched = [frozenset(run.touched or ()) for run in known]
        changed = [frozenset(run.changes.files if run.changes else ()) for run in known]
        self.trials, self.excluded, self.with_files = len(counted), len(suite.trials) - len(counted), len(known)
        paths = ({use.unit.path for use in run.steering or ()} for run in counted)
        self.with_unit: Counter[str] = Counter(path for each in paths for path in each)
        self.used = {use.unit.path for use in uses if use.used or use.broken}
        self.used_or_missed = self.used | {use.unit.path for use in uses if use.missed}
        self.touched = frozenset[str]().union(*touched)
        # Not a trial's own work.
        self.consulted = frozenset[str]().union(*(own - work for own, work in zip(touched, changed, strict=True)))
        self.always_read = touched[0].intersection(*touched).difference(*changed) if touched else frozenset[str]()


def choose(
    changes: ChangeSet, suites: Sequence[SuiteEvidence], project: ProjectFiles, *, min_trials: int = MIN_TRIALS
) -> tuple[SuiteChoice, ...]:
    """Each suite with whether it runs; fewer trials than `min_trials` do not say what a suite never does."""
    if changes.problem:
        return tuple(SuiteChoice(it.suite.name, runs=True, reason=changes.problem) for it in suites)
    # What a command names may steer everybody else, too; but what lies beside the suites is one's own where it is named
    # itself, and not by its folder.
    beside, named = f"{project.test_dir}/", frozenset[str]().union(*(it.files for it in suites))
    shared = [it for it in changes.files if not (it.path.startswith(beside) and it.path in named)]
    effects = [effect for change in shared for effect in effects_of(change, changes, project)]
    paths = [change.path for change in changes.files]
    return tuple(_choice(it, paths, effects, project, min_trials) for it in suites)


def _choice(
    it: SuiteEvidence, paths: Sequence[str], effects: Sequence[Effect], project: ProjectFiles, min_trials: int
) -> SuiteChoice:
    name, behaviour = it.suite.name, SuiteBehaviour(it)
    own = {path: "gate.paths" for path in paths if of_files.is_meant(path, it.suite, project.folder)}
    own |= {effect.path: effect.why for effect in effects if effect.scope == "all"}
    own |= {path: "the suite itself" for path in paths if not it.files.isdisjoint(globs.upwards(path))}
    if path := next((path for path in paths if path in own), None):
        return SuiteChoice(name, runs=True, reason=f"{path} changed ({own[path]})")
    for effect in effects:
        if why := _reason_affected(effect, behaviour, min_trials):
            return SuiteChoice(name, runs=True, reason=f"{effect.path} changed, and {why}", by_trials=True)
    # A document that every trial reads matters, whether anything names it or not. Code that all read is the work
    # itself: `gate.paths` says where it matters.
    if path := next((path for path in paths if path in behaviour.always_read and not is_code(path)), None):
        return SuiteChoice(name, runs=True, reason=f"{path} changed, and every trial read it", by_trials=True)
    if not effects:
        return SuiteChoice(name, runs=False, reason=NOTHING)
    spared = " or ".join(dict.fromkeys(effect.why for effect in effects))
    return SuiteChoice(name, runs=False, reason=f"none of {behaviour.trials} trials {spared}", by_trials=True)


def _reason_affected(effect: Effect, behaviour: SuiteBehaviour, min_trials: int = MIN_TRIALS) -> str | None:
    """Why a suite may be affected by a change that only those see who call or touch something."""
    unit = effect.unit or effect.path
    if effect.scope == "unit":
        is_affected, known = unit in behaviour.used_or_missed, behaviour.with_unit.get(unit, 0)
    else:
        is_loaded = effect.touches is not None and any(map(effect.touches, behaviour.touched))
        is_affected, known = is_loaded or not effect.read.isdisjoint(behaviour.consulted), behaviour.with_files
    if is_affected:
        return f"a trial {effect.why}"
    if effect.scope != "unit" and unit in behaviour.used:
        return "a trial read it"
    if known >= min_trials:
        return None
    more = f" ({behaviour.excluded} more broke off, or are of other settings, judges, models or Claude Code)"
    lacking = f"only {known} of the {min_trials} stored trials are there that would tell whether the suite uses it"
    return f"{lacking}{more if behaviour.excluded else ''}"


def run_if_either(one: Sequence[SuiteChoice], other: Sequence[SuiteChoice]) -> tuple[SuiteChoice, ...]:
    """Of two choices about the same suites: a suite runs where any of them says so, by trials where these say it."""
    return tuple(max(pair, key=lambda choice: (choice.runs, choice.by_trials)) for pair in zip(one, other, strict=True))


def trials_may_tell(choices: Iterable[SuiteChoice], changes: ChangeSet, project: ProjectFiles) -> bool:
    """Whether choices that were made without stored trials may be others with them."""
    own = (project.config, f"{project.test_dir}/")
    is_readable = any(not is_code(it.path) and not it.path.startswith(own) for it in changes.files)
    return any(it.by_trials or (not it.runs and is_readable) for it in choices)


def reasons(choices: Iterable[SuiteChoice], *, runs: bool) -> tuple[str, ...]:
    """A sentence for each reason for which suites run, or are not run."""
    groups: dict[str, list[str]] = {}
    for choice in choices:
        if choice.runs is runs:
            groups.setdefault(choice.reason, []).append(choice.suite)
    what = "Run" if runs else "Not run"
    return tuple(f"{what}: {', '.join(names)}: {reason}" for reason, names in groups.items())


def steering_changes(
    changes: ChangeSet, suites: Sequence[SuiteEvidence], project: ProjectFiles
) -> tuple[SteeringChange, ...]:
    """Of what changed, the files that steer, with the suites that may be affected by each."""
    behaviours = {it.suite.name: SuiteBehaviour(it) for it in suites}
    found: list[SteeringChange] = []
    for change in changes.files:
        effects = list(effects_of(change, changes, project))
        # A file that steers runs or imports one of the project's own, or a skill or sub-agent names it.
        known = {of_files.CONFIGURATION, of_files.BESIDE}
        is_led_to = any(effect.scope != "read" and effect.why not in known for effect in effects)
        if len(found) == MAX_STEERING or not (is_led_to or may_steer(change.path)):
            continue
        names = None
        if effects and all(effect.scope != "all" for effect in effects):
            names = tuple(it for it, did in behaviours.items() if any(_reason_affected(each, did) for each in effects))
        line = change.line if change.after else None
        found.append(SteeringChange(path=change.path, line=line, suites=names, is_gone=change.after is None))
    return tuple(found)


def line_changes(before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> tuple[SteeringChange, ...]:
    """The files that steer and differ between two states, each with the first line that does; by their lines."""
    found = []
    for path in sorted(path for path in {*before, *after} if before.get(path) != after.get(path))[:MAX_STEERING]:
        now = after.get(path)
        line = None if now is None else of_files.first_difference(before.get(path, ()), now)
        found.append(SteeringChange(path=path, line=line, is_gone=now is None))
    return tuple(found)
