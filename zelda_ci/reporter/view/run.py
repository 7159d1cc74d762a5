"""One run: what became of it, the problem if there is one, scores, session, changes, files."""

from collections.abc import Iterator

from zelda_ci.domain.outcome import Outcome, failed_criteria, run_outcome
from zelda_ci.domain.run import CommandResult, RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.changes import change_row, file_rows
from zelda_ci.reporter.view.correctness import correctness, correctness_section, ending, failed_steps
from zelda_ci.reporter.view.criteria import criteria_section, judge_rows
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.isolation import isolation_rows
from zelda_ci.reporter.view.nouns import Cell, Row, RunFiles, RunView, Section, Tone
from zelda_ci.reporter.view.problems import STATUS_WORDS, problem
from zelda_ci.reporter.view.scores import metric_rows
from zelda_ci.reporter.view.tool_usage import tool_usage_section
from zelda_ci.reporter.view.usage import use_rows, used

VERDICTS = {
    Outcome.MEASURED: Cell("MEASURED"),
    Outcome.PASSED: Cell("PASS", Tone.GOOD),
    Outcome.FAILED: Cell("FAIL", Tone.BAD),
    Outcome.INCOMPLETE: Cell("INCOMPLETE", Tone.BAD),
    Outcome.BROKEN: Cell("ERROR", Tone.BAD),
    Outcome.INTERRUPTED: Cell("STOP", Tone.WARN),
}


def run_view(run: RunResult, files: RunFiles, *, several: bool = False) -> RunView:
    """The view of one run; `several` where it is one trial among others."""
    outcome = run_outcome(run)
    session = tuple(_session_rows(run))
    return RunView(
        run_id=visible(run.run_id),
        suite=visible(run.suite),
        trial=f"trial {run.trial}" if several else "",
        outcome=outcome,
        verdict=VERDICTS[outcome],
        facts=run_facts(run),
        problem=problem(run, files),
        scores=metric_rows(run.evaluations),
        sections=(
            *criteria_section(run),
            *correctness_section(run),
            *tool_usage_section(run),
            *((Section("Session", session),) if session else ()),
        ),
        files=file_rows(files, failed_steps(run)),
    )


def run_facts(run: RunResult) -> tuple[Cell, ...]:
    """How it ended, and the three numbers that everybody asks for."""
    return tuple(_facts(run))


def wall_seconds(run: RunResult) -> float:
    """From the start of the run to its result."""
    return (run.finished_at - run.started_at).total_seconds()


def _facts(run: RunResult) -> Iterator[Cell]:
    outcome = run_outcome(run)
    yield Cell(_ending(run, outcome), Tone.NEUTRAL if outcome <= Outcome.PASSED else VERDICTS[outcome].tone)
    if use := used(run):
        if use.details:
            yield Cell(numbers.count(use.details.turns, "turn"), Tone.DIM)
        yield Cell(numbers.money(use.cost_usd, known=use.cost_known), Tone.DIM)
    yield Cell(numbers.duration(wall_seconds(run)), Tone.DIM)
    if run.replayed:
        yield Cell("replayed", Tone.DIM)


def _ending(run: RunResult, outcome: Outcome) -> str:
    if outcome is Outcome.MEASURED:
        return "completed, nothing was checked"
    if run.status is SessionStatus.COMPLETED and outcome is Outcome.INCOMPLETE:
        return "completed, but not evaluated completely"
    if run.status is SessionStatus.COMPLETED and outcome is Outcome.FAILED:
        found = correctness(run)
        if failed_criteria(run) and (found is None or found.passed):
            return "completed, but criteria failed"
        return f"completed, but {ending(found) if found else 'did not pass'}"
    return STATUS_WORDS[run.status]


def _session_rows(run: RunResult) -> Iterator[Row]:
    """What is known of the session and of what Zelda did around it."""
    if run.setup:
        yield Row("Setup", _setup(run.setup))
    use = used(run)
    if use:
        yield from use_rows(run, use)
    yield from judge_rows(run)
    if run.changes and (use or run.changes.files):
        yield change_row(run.changes)
    yield from isolation_rows(run)
    if run.phase_seconds:
        phases = (Cell(f"{visible(name)} {numbers.duration(t)}", Tone.DIM) for name, t in run.phase_seconds.items())
        yield Row("Phases", tuple(phases))


def _setup(setup: CommandResult) -> tuple[Cell, ...]:
    if setup.timed_out:
        how = Cell("timed out", Tone.BAD)
    elif setup.exit_code:
        how = Cell(f"exit code {setup.exit_code}", Tone.BAD)
    else:
        how = Cell("done", Tone.GOOD)
    return (how, Cell(numbers.duration(setup.seconds)), Cell(sentence(setup.command, 200), Tone.DIM))
