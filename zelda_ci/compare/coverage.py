"""Which suites felt which of the files that steer Claude Code, over stored trials. Pure."""

from collections.abc import Iterable, Sequence

from zelda_ci.domain.kinds import CALLED
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.steering import SteeringCoverage, SuiteCoverage, SuiteUse, Unit, UnitCoverage, UnitUse

_Key = tuple[str, str, str]


def coverage(runs: Sequence[RunResult]) -> SteeringCoverage:
    """The units of the newest trial, and what the trials of each suite did with them.

    Args:
        runs: Trials of any suites; those of which nothing is known are passed over.
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
    felt = tuple(part for part in parts if part.loaded or part.used or part.missed or part.broken)
    touched = any(part.used or part.missed or part.broken for part in felt)
    return UnitCoverage(unit=unit, touched=touched or (bool(felt) and unit.kind not in CALLED), suites=felt)


def _suite(name: str, runs: Iterable[RunResult]) -> SuiteCoverage:
    own = [run for run in runs if run.suite == name]
    touches = any(use.used or use.missed or use.broken for run in own for use in run.steering or ())
    return SuiteCoverage(suite=name, trials=len(own), touches=touches)
