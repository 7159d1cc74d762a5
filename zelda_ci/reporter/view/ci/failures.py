"""What did not go well by itself: the gate's reasons, runs that broke, criteria that are not met."""

from collections.abc import Iterator, Sequence

from zelda_ci.domain.comparison import Comparison, GateResult, Verdict
from zelda_ci.domain.judgement import CriterionVerdict
from zelda_ci.domain.outcome import Outcome, failed_criteria, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.ci.changes import LONGEST_CRITERION, reasoned
from zelda_ci.reporter.view.ci.nouns import Fold, Worth
from zelda_ci.reporter.view.ci.readings import WORDS
from zelda_ci.reporter.view.comparison import NOISE
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.nouns import NO_FILES, Cell, Problem, Row, Section, Tone
from zelda_ci.reporter.view.problems import problem

DOUBT = f" ({NOISE})"
"""Said once, in the first line."""
MOST_REASONS = 30
MOST_RUNS = 30
MOST_CRITERIA = 300


def gate_fold(gate: GateResult) -> Iterator[Fold]:
    """Open: nobody should have to look for the reason."""
    if gate.reasons:
        rows = [
            Row(reason.kind, (Cell(sentence(reason.sentence.removesuffix(DOUBT)), Tone.BAD),))
            for reason in gate.reasons
        ]
        title = f"Why the check is red: {numbers.count(len(rows), 'reason')}"
        yield Fold(title, Worth.GATE, (Section("", capped(rows, MOST_REASONS)),), open=True)


def broken_fold(runs: Sequence[RunResult]) -> Iterator[Fold]:
    """Runs that ended otherwise than they should, and those whose build or tests did not pass."""
    rows = [row for run in runs if run_outcome(run) > Outcome.PASSED for row in _broken(run)]
    if rows:
        title = f"{numbers.count(len(rows), 'run')} did not go well"
        yield Fold(title, Worth.FAILED, (Section("", capped(rows, MOST_RUNS)),))


def unmet_fold(runs: Sequence[RunResult], comparison: Comparison | None) -> Iterator[Fold]:
    """Criteria that fail, without those that the comparison tells of already."""
    told = {
        (suite.suite, delta.criterion)
        for suite in (comparison.suites if comparison else ())
        for delta in suite.criteria
        if delta.verdict in {Verdict.REGRESSED, Verdict.IMPROVED, Verdict.INCONCLUSIVE}
    }
    rows = {
        (run.suite, str(found.criterion)): Row(
            visible(run.suite),
            (Cell(sentence(found.criterion, LONGEST_CRITERION), Tone.BAD),),
            (Cell(f"{'undecided: ' * (found.verdict is CriterionVerdict.UNDECIDED)}{reasoned(found)}", Tone.DIM),),
        )
        for run in runs
        for found in failed_criteria(run)
        if (run.suite, str(found.criterion)) not in told
    }
    if rows:
        noun = "criterion fails" if len(rows) == 1 else "criteria fail"
        again = " as before" if comparison else ""
        section = Section("", capped([*rows.values()], MOST_CRITERIA))
        worth = Worth.UNCHANGED if comparison else Worth.FAILED
        yield Fold(f"{numbers.whole(len(rows))} {noun}{again}", worth, (section,))


def capped(rows: Sequence[Row], most: int) -> tuple[Row, ...]:
    """The first ones, and how many more there are."""
    if len(rows) <= most:
        return tuple(rows)
    return (*rows[:most], Row("", (Cell(f"and {numbers.whole(len(rows) - most)} more", Tone.DIM),)))


def printed(found: Problem) -> tuple[Cell, ...]:
    """The last lines of what a command printed, as they are."""
    return (Cell("\n".join(found.output), Tone.DIM, whole=True),) if found.output else ()


def _broken(run: RunResult) -> Iterator[Row]:
    found = problem(run, NO_FILES)
    if found is None or found.sentence.startswith("Not met: "):
        return
    name = f"{visible(run.suite)}, trial {run.trial}" if run.config.trials > 1 else visible(run.suite)
    outcome = WORDS[run_outcome(run)]
    lines = (Cell(found.advice, Tone.DIM), *printed(found))
    yield Row(f"{name}, {outcome.text}", (Cell(found.sentence, Tone.BAD),), lines)
