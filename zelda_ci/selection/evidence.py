"""What stored trials used: which of them say what a suite does, what they did together, and of which units. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from zelda_ci.domain.kinds import CALLED
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.steering import SteeringCoverage, SuiteCoverage, SuiteUse, Unit, UnitCoverage, UnitUse
from zelda_ci.domain.suite import ResolvedSuite


def usable(trials: Iterable[RunResult], today: Mapping[str, str], suite: ResolvedSuite) -> list[RunResult]:
    """Trials that say what a suite does: whole ones, of the suite as it is, on what it runs on today.

    Args:
        trials: Of one suite.
        today: What is known of the platform and the judges before a session, by part of a fingerprint.
        suite: As it is now.
    """
    whole = [
        run
        for run in trials
        if run.status is SessionStatus.COMPLETED
        and not run.replayed
        and run.steering is not None
        and _is_same(run.config, suite)
        and _is_of_today(run, today)
    ]
    # Which models answer is known from the newest only. A further one may help now and then.
    newest = {*max(whole, key=lambda run: (run.finished_at, run.run_id)).models} if whole else set()
    return [run for run in whole if {*run.models} <= newest or {*run.models} >= newest]


def _is_of_today(run: RunResult, today: Mapping[str, str]) -> bool:
    own = run.fingerprint.parts if run.fingerprint else {"agentSdk": run.versions.agent_sdk}
    return all(own.get(part, value) == value for part, value in today.items())


def _is_same(stored: ResolvedSuite, suite: ResolvedSuite) -> bool:
    """Whether sessions of the two do the same, as far as settings decide it."""
    return all(
        (
            stored.prompt == suite.prompt,
            stored.execution.model == suite.execution.model,
            stored.execution.permission_mode == suite.execution.permission_mode,
            stored.execution.allowed_tools == suite.execution.allowed_tools,
            stored.execution.disallowed_tools == suite.execution.disallowed_tools,
            stored.setup_command == suite.setup_command,
            # What was missed or broken is the judge's word.
            stored.judge_model == suite.judge_model,
            stored.judge.models == suite.judge.models,
            stored.metrics.is_on(Metric.TOOL_USAGE) == suite.metrics.is_on(Metric.TOOL_USAGE),
        )
    )


@dataclass(frozen=True)
class SuiteBehaviour:
    """What trials of a suite did, taken together."""

    trials: int
    excluded: int
    """Trials that do not count."""
    with_unit: Mapping[str, int]
    """By path of a unit, how many trials had it."""
    used_or_missed: frozenset[str]
    """Units that a trial used, missed or broke."""
    used: frozenset[str]
    """Those that one used or broke."""
    with_files: int
    """Trials that know all files that they touched."""
    touched: frozenset[str]
    consulted: frozenset[str]
    """Of these, files that a trial touched and did not change: not its own work."""
    always_read: frozenset[str]
    """Files that every trial touched, and none changed."""

    @classmethod
    def of(cls, trials: Sequence[RunResult], today: Mapping[str, str], suite: ResolvedSuite) -> "SuiteBehaviour":
        """Of the trials that are usable."""
        counted = usable(trials, today, suite)
        with_unit, missed, used = dict[str, int](), set[str](), set[str]()
        for run in counted:
            for use in run.steering or ():
                if use.used or use.broken:
                    used.add(use.unit.path)
                elif use.missed:
                    missed.add(use.unit.path)
            for path in {use.unit.path for use in run.steering or ()}:
                with_unit[path] = with_unit.get(path, 0) + 1
        known = [frozenset(run.touched) for run in counted if run.touched is not None]
        changed = [frozenset(run.changes.files if run.changes else ()) for run in counted if run.touched is not None]
        return cls(
            trials=len(counted),
            excluded=len(trials) - len(counted),
            with_unit=with_unit,
            used_or_missed=frozenset(used | missed),
            used=frozenset(used),
            with_files=len(known),
            touched=frozenset[str]().union(*known),
            consulted=frozenset[str]().union(*(own - work for own, work in zip(known, changed, strict=True))),
            always_read=known[0].intersection(*known).difference(*changed) if known else frozenset(),
        )


_Key = tuple[str, str, str]


def coverage(runs: Sequence[RunResult]) -> SteeringCoverage:
    """The units of the newest trial, and what the trials of each suite did with them.

    Args:
        runs: Trials of any suites; those of which nothing is known are left out.
    """
    known = [run for run in runs if run.steering is not None]
    if not known:
        return SteeringCoverage(unknown=tuple(sorted({run.suite for run in runs})))
    newest = max(known, key=lambda run: run.started_at)
    units = {_key(use.unit): use.unit for use in newest.steering or ()}
    names = sorted({run.suite for run in known})
    found = {name: _uses([run for run in known if run.suite == name]) for name in names}
    rows = [_row(unit, [(name, found[name].get(key, [])) for name in names]) for key, unit in units.items()]
    return SteeringCoverage(
        units=tuple(sorted(rows, key=lambda row: (row.touched, row.unit.kind, row.unit.path, row.unit.name))),
        suites=tuple(_suite(name, known) for name in names),
        unknown=tuple(sorted({run.suite for run in runs} - set(names))),
    )


def _key(unit: Unit) -> _Key:
    return unit.kind, unit.path, unit.name


def _uses(runs: Iterable[RunResult]) -> dict[_Key, list[UnitUse]]:
    found: dict[_Key, list[UnitUse]] = {}
    for run in runs:
        # Several hooks of one event are one unit.
        for key, use in {_key(use.unit): use for use in run.steering or ()}.items():
            found.setdefault(key, []).append(use)
    return found


def _row(unit: Unit, suites: Iterable[tuple[str, Sequence[UnitUse]]]) -> UnitCoverage:
    parts = [
        SuiteUse(
            suite=name,
            loaded=sum(use.loaded for use in uses),
            used=sum(use.used for use in uses),
            missed=sum(use.missed for use in uses),
            broken=sum(use.broken for use in uses),
        )
        for name, uses in suites
    ]
    concerned = tuple(part for part in parts if part.loaded or part.used or part.missed or part.broken)
    touched = any(part.used or part.missed or part.broken for part in concerned)
    return UnitCoverage(unit=unit, touched=touched or (bool(concerned) and unit.kind not in CALLED), suites=concerned)


def _suite(name: str, runs: Iterable[RunResult]) -> SuiteCoverage:
    own = [run for run in runs if run.suite == name]
    touches = any(use.used or use.missed or use.broken for run in own for use in run.steering or ())
    return SuiteCoverage(suite=name, trials=len(own), touches=touches)
