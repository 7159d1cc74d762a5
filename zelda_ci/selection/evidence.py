"""What stored trials used: which of them say what a suite does, what they did together, and of which units. Pure."""

from collections import Counter
from collections.abc import Sequence

from zelda_ci.domain.kinds import CALLED
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.steering import SteeringCoverage, SuiteCoverage, SuiteUse, UnitCoverage, UnitUse
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.selection.effects import SuiteEvidence


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
        self.with_unit: Counter[str] = Counter(
            path for run in counted for path in {use.unit.path for use in run.steering or ()}
        )
        self.used = {use.unit.path for use in uses if use.used or use.broken}
        self.used_or_missed = self.used | {use.unit.path for use in uses if use.missed}
        self.touched = frozenset[str]().union(*touched)
        # Not a trial's own work.
        self.consulted = frozenset[str]().union(*(own - work for own, work in zip(touched, changed, strict=True)))
        self.always_read = touched[0].intersection(*touched).difference(*changed) if touched else frozenset[str]()


def coverage(runs: Sequence[RunResult]) -> SteeringCoverage:
    """The units of the newest trial, and what the trials of each suite did with them, as far as that is known."""
    known = [run for run in runs if run.steering is not None]
    trials = Counter(run.suite for run in known)
    newest = max(known, key=lambda run: run.started_at, default=None)
    # Several hooks of one event are one unit.
    uses = ((run.suite, use) for run in known for use in {use.unit: use for use in run.steering or ()}.values())
    counts = Counter((suite, use.unit, key) for suite, use in uses for key in FIELDS if getattr(use, key))
    rows = []
    for unit in dict.fromkeys(use.unit for use in (newest.steering if newest else None) or ()):
        each = (SuiteUse(suite=it, **{key: counts[it, unit, key] for key in FIELDS}) for it in sorted(trials))
        parts = tuple(part for part in each if part.loaded or _is_touched(part))
        touched = any(map(_is_touched, parts)) or (bool(parts) and unit.kind not in CALLED)
        rows.append(UnitCoverage(unit=unit, touched=touched, suites=parts))
    touching = {run.suite for run in known if any(map(_is_touched, run.steering or ()))}
    return SteeringCoverage(
        units=tuple(sorted(rows, key=lambda row: (row.touched, row.unit.kind, row.unit.path, row.unit.name))),
        suites=tuple(SuiteCoverage(suite=it, trials=trials[it], touches=it in touching) for it in sorted(trials)),
        unknown=tuple(sorted({run.suite for run in runs} - trials.keys())),
    )


FIELDS = ("loaded", "used", "missed", "broken")


def _is_touched(use: SuiteUse | UnitUse) -> bool:
    return bool(use.used or use.missed or use.broken)
