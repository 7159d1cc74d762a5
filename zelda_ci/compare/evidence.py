"""What stored trials of a suite tell of its sessions: which of them count, and what they felt together. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from zelda_ci.domain.fingerprint import EVALUATORS, PLATFORM, Fingerprint
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.steering import UnitUse
from zelda_ci.domain.suite import ResolvedSuite


def counted(
    trials: Iterable[RunResult], today: Mapping[str, str], suite: ResolvedSuite | None = None
) -> list[RunResult]:
    """Trials that tell what a suite does: whole ones, of the suite as it is, on what it runs on today.

    Args:
        trials: Of one suite.
        today: What is known of the platform and the judges before a session, by part of a fingerprint.
        suite: As it is now; without it the trials are known to be of the same.
    """
    whole = [
        run
        for run in trials
        if run.status is SessionStatus.COMPLETED
        and not run.replayed
        and run.steering is not None
        and (suite is None or _is_same(run.config, suite))
        and _is_of_today(run, today)
    ]
    # Which models answer is known from the newest only. A further one may help now and then.
    newest = max(whole, key=lambda run: (run.finished_at, run.run_id)).models if whole else ()
    return [run for run in whole if run.models == newest or _is_part(run.models, newest)]


def _is_part(own: Iterable[str], other: Iterable[str]) -> bool:
    """Whether one of two sets of models is part of the other."""
    return {*own} <= {*other} or {*own} >= {*other}


def _is_of_today(run: RunResult, today: Mapping[str, str]) -> bool:
    own = run.fingerprint.parts if run.fingerprint else {"agentSdk": run.versions.agent_sdk}
    return all(own.get(part, value) == value for part, value in today.items())


def known_today(expected: Fingerprint) -> dict[str, str]:
    """What a fingerprint from before a session, or from an earlier one, says of platform and judges.

    Models are left out: they need not be the same in every session.
    """
    parts = (*(part for part in PLATFORM if part != "models"), EVALUATORS)
    return {part: value for part in parts if (value := expected.parts.get(part))}


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
class Habits:
    """What trials of a suite did, taken together."""

    trials: int
    tells: Mapping[str, int]
    """By path of a unit, how many trials had it."""
    shown: frozenset[str]
    """Units that a trial used, missed or broke."""
    read: frozenset[str]
    """Those that one used or broke."""
    tellers: int
    """Trials that know all files that they touched."""
    touched: frozenset[str]
    consulted: frozenset[str]
    """Of these, files that a trial touched and did not change: not its own work."""
    always_read: frozenset[str]
    """Files that every trial touched, and none changed."""
    passed_over: int = 0
    """Trials that do not count."""

    @classmethod
    def of(
        cls,
        trials: Sequence[RunResult],
        passed_over: int = 0,
        uses_of: Callable[[RunResult], Iterable[UnitUse]] = lambda run: run.steering or (),
    ) -> "Habits":
        """Of all units, or of those that `uses_of` gives of a trial."""
        tells, missed, read = dict[str, int](), set[str](), set[str]()
        for run in trials:
            own = set()
            for use in uses_of(run):
                path = use.unit.path
                own.add(path)
                if use.used or use.broken:
                    read.add(path)
                elif use.missed:
                    missed.add(path)
            for path in own:
                tells[path] = tells.get(path, 0) + 1
        known = [frozenset(run.touched) for run in trials if run.touched is not None]
        changed = [frozenset(run.changes.files if run.changes else ()) for run in trials if run.touched is not None]
        touched = frozenset[str]().union(*known)
        return cls(
            len(trials),
            tells,
            frozenset(read | missed),
            frozenset(read),
            len(known),
            touched,
            consulted=frozenset[str]().union(*(own - work for own, work in zip(known, changed, strict=True))),
            always_read=known[0].intersection(*known).difference(*changed) if known else frozenset(),
            passed_over=passed_over,
        )
