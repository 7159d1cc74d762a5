"""The end of a report: troubles, totals, and the exit code in words."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC

from zelda_ci.domain.comparison import GateResult
from zelda_ci.domain.outcome import Outcome, batch_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.session import Usage
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.criteria import judge_cost
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.nouns import Cell, Problem, Row, RunView, SuiteView, Summary, Tone, Trouble
from zelda_ci.reporter.view.run import VERDICTS
from zelda_ci.reporter.view.usage import Used, used

MOST_NAMES = 3

COUNTED = {
    Outcome.INTERRUPTED: ("interrupted", "interrupted"),
    Outcome.BROKEN: ("error", "errors"),
    Outcome.INCOMPLETE: ("incomplete", "incomplete"),
    Outcome.FAILED: ("failed", "failed"),
    Outcome.PASSED: ("passed", "passed"),
    Outcome.MEASURED: ("measured", "measured"),
}

MEANINGS = {
    Outcome.MEASURED: "measured, nothing was checked",
    Outcome.PASSED: "all well",
    Outcome.FAILED: "evaluations ran and something failed",
    Outcome.INCOMPLETE: "not everything could be judged",
    Outcome.BROKEN: "Zelda could not do its work",
    Outcome.INTERRUPTED: "interrupted",
}


def summary(batch: BatchResult, suites: Sequence[SuiteView], gate: GateResult) -> Summary:
    """Of everything that ran, and of what stands against it."""
    outcome = max(batch_outcome(batch), Outcome.FAILED if gate.reasons else Outcome.MEASURED)
    return Summary(outcome, _troubles(suites), tuple(_rows(batch, suites, gate, outcome)))


def about(run: RunResult) -> tuple[Row, ...]:
    """Of one stored run: which it is, what it tested and what made it."""
    which = [Cell(visible(run.run_id, len(run.run_id)), whole=True), Cell(f"trial {run.trial}", Tone.DIM)]
    began = Cell(f"{run.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")
    rows = (Row("Run", tuple(which)), Row("Batch", (Cell(visible(run.batch_id)),)), Row("Began", (began,)))
    return (*rows, *_tested(run), Row("Versions", tuple(_versions([run]))))


def _troubles(suites: Sequence[SuiteView]) -> tuple[Trouble, ...]:
    """Problems with the runs that have them, alike ones once, the gravest first; of a single run: nothing to repeat."""
    runs = [run for suite in suites for run in suite.runs]
    if len(runs) == 1:
        return ()
    alike: dict[tuple[Outcome, str], list[tuple[RunView, Problem]]] = {}
    for run in runs:
        if run.problem:
            alike.setdefault((run.outcome, run.problem.sentence), []).append((run, run.problem))
    ranked = sorted(alike.items(), key=lambda item: item[0][0], reverse=True)
    return tuple(
        Trouble(outcome, VERDICTS[outcome], _names([run for run, _ in found]), found[0][1])
        for (outcome, _), found in ranked
    )


def _names(runs: Sequence[RunView]) -> str:
    """The suites, with what they have of several trials; the first few of them."""
    trials: dict[str, list[str]] = {}
    for run in runs:
        trials.setdefault(run.suite, []).append(run.trial)
    names = [_name(suite, found) for suite, found in trials.items()]
    if len(names) > MOST_NAMES:
        names[MOST_NAMES:] = [f"and {numbers.count(len(names) - MOST_NAMES, 'more suite')}"]
    return ", ".join(names)


def _name(suite: str, trials: Sequence[str]) -> str:
    which = trials[0] if len(trials) == 1 else numbers.count(len(trials), "trial")
    return f"{suite} ({which})" if which else suite


def _rows(batch: BatchResult, suites: Sequence[SuiteView], gate: GateResult, outcome: Outcome) -> Iterator[Row]:
    begun = [Cell("not every run was begun", Tone.WARN)] * batch.interrupted
    yield Row("Suites", (*_tally([suite.outcome for suite in suites], "suite"), *begun))
    if len(batch.runs) > len(suites):
        yield Row("Trials", _tally([run.outcome for suite in suites for run in suite.runs], "trial"))
    if batch.runs:
        yield from _tested(batch.runs[0])
        yield from _totals(batch)
        yield Row("Versions", tuple(_versions(batch.runs)))
    for reason in gate.reasons:
        yield Row("Gate", (Cell(sentence(reason.sentence), Tone.BAD, whole=True),))
    meaning = Cell(f"{outcome.exit_code}, {MEANINGS[outcome]}", VERDICTS[outcome].tone)
    yield Row("Exit code", (meaning,))


def _tally(outcomes: Sequence[Outcome], noun: str) -> tuple[Cell, ...]:
    if not outcomes:
        return (Cell(f"no {noun} was run", Tone.BAD),)
    counts = Counter(outcomes)
    cells = [
        Cell(numbers.count(counts[outcome], *words), VERDICTS[outcome].tone)
        for outcome, words in COUNTED.items()
        if counts[outcome]
    ]
    return (*cells, Cell(f"{len(outcomes)} in all", Tone.DIM)) if len(cells) > 1 else tuple(cells)


def _tested(run: RunResult) -> Iterator[Row]:
    source = run.source
    if source is None:
        return
    branch = f" ({visible(source.branch)})" if source.branch else ""
    what = f"commit {visible(source.commit[:12])}{branch}" if source.commit else "a copy of the folder, outside git"
    dirty = source.dirty and source.kind == "worktree"
    cells = [Cell(what)] + [Cell("uncommitted changes were not tested", Tone.WARN)] * dirty
    yield Row("Tested", tuple(cells))


def _totals(batch: BatchResult) -> Iterator[Row]:
    uses = [use for use in map(used, batch.runs) if use]
    if uses:
        yield Row("Cost", (Cell(_cost(uses)),))
        yield Row("Tokens", (Cell(numbers.whole(sum((use.tokens for use in uses), Usage()).total)),))
    if judges := [run.judge for run in batch.runs if run.judge]:
        yield Row("Judge", (Cell(judge_cost(judges)),))
    yield Row("Time", (Cell(numbers.duration((batch.finished_at - batch.started_at).total_seconds())),))


def _cost(uses: Sequence[Used]) -> str:
    return numbers.money(sum(use.cost_usd for use in uses), known=all(use.cost_known for use in uses))


def _versions(runs: Sequence[RunResult]) -> Iterator[Cell]:
    yield Cell(f"zelda {visible(runs[0].versions.zelda)}", Tone.DIM)
    clis = sorted({run.versions.cli for run in runs if run.versions.cli})
    if clis:
        yield Cell(f"Claude Code {', '.join(map(visible, clis))}", Tone.DIM)
