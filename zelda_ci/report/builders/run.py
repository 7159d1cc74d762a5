"""One run as a report: how it ended, scores, session, changes, isolation, files."""

from collections.abc import Iterator

from zelda_ci.domain import numbers
from zelda_ci.domain.details import EfficiencyDetails
from zelda_ci.domain.outcome import Outcome, failed_criteria, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.test_run import CorrectnessDetails
from zelda_ci.domain.workspace import ChangeSummary, IsolationReport
from zelda_ci.report.builders.correctness import command_cells, command_ending, correctness_rows, failed_steps
from zelda_ci.report.builders.findings import hidden_findings
from zelda_ci.report.builders.judged import criterion_rows, judge_rows, tool_usage_rows
from zelda_ci.report.builders.phrases import measured_words
from zelda_ci.report.builders.usage import cost, metric_rows, spent, use_rows, used
from zelda_ci.report.model import Cell, Row, RunFiles, Section, Tone
from zelda_ci.report.text import sentence
from zelda_ci.report.words import ENDINGS, OUTCOMES, first

MAX_LISTED = 10


def run_sections(run: RunResult) -> tuple[Section, ...]:
    """Everything that is known of a run, but for its files."""
    sections = {
        "Scores": metric_rows(run),
        "Acceptance criteria": criterion_rows(run),
        "Correctness": correctness_rows(run),
        "Tool usage": tool_usage_rows(run),
        "Session": _session_rows(run),
    }
    return tuple(Section(title, tuple(rows)) for title, of_it in sections.items() if (rows := [*of_it]))


def run_facts(run: RunResult) -> tuple[Cell, ...]:
    """How it ended, and the three numbers that everybody asks for."""
    outcome, uses = run_outcome(run), spent([run])
    ending = Cell(_ending(run, outcome), Tone.NEUTRAL if outcome <= Outcome.PASSED else OUTCOMES[outcome].tone)
    if found := hidden_findings([run]):
        words = f"passes, but {found}" if outcome is Outcome.PASSED else f"{ending.text}; {found}"
        ending = Cell(words, Tone.WARN)
    details = run.details(EfficiencyDetails)
    facts = [
        numbers.format_count(details.turns, "turn") if details else "",
        cost(uses) if uses else "",
        numbers.duration(wall_seconds(run)),
        "replayed" if run.replayed else "",
    ]
    return (ending, *(Cell(fact, Tone.DIM) for fact in facts if fact))


def wall_seconds(run: RunResult) -> float:
    """From the start of the run to its result."""
    return (run.finished_at - run.started_at).total_seconds()


def file_rows(run: RunResult, files: RunFiles) -> Iterator[Row]:
    """The paths to copy; of the commands' output only that of the steps that failed."""
    paths = {"Result": files.result, "Transcript": files.transcript, "Patch": files.patch}
    logs = {"setup": files.setup_log, "build": files.build_log, "test": files.test_log}
    paths |= {f"{step.capitalize()} log": logs[step] for step in failed_steps(run)}
    return (Row(name, (Cell(path, Tone.DIM, whole=True),)) for name, path in paths.items() if path)


def _ending(run: RunResult, outcome: Outcome) -> str:
    if outcome is Outcome.MEASURED:
        return f"completed, {measured_words([run])}"
    if run.status is SessionStatus.COMPLETED and outcome is Outcome.INCOMPLETE:
        return "completed, but not evaluated completely"
    if run.status is SessionStatus.COMPLETED and outcome is Outcome.FAILED:
        details = run.details(CorrectnessDetails)
        if failed_criteria(run) and (details is None or details.passed):
            return "completed, but criteria failed"
        return f"completed, but {command_ending(details) if details else 'did not pass'}"
    return ENDINGS[run.status]


def _session_rows(run: RunResult) -> Iterator[Row]:
    """What is known of the session and of what Zelda did around it."""
    if run.setup:
        done = [] if run.setup.exit_code != 0 else [Cell("done", Tone.GOOD)]
        yield Row("Setup", (*done, *command_cells(run.setup)))
    use = used(run)
    if use:
        yield from use_rows(run, use)
    yield from judge_rows(run)
    if run.changes and (use or run.changes.files):
        yield _changes(run.changes)
    if run.isolation:
        yield from _isolation(run.isolation)


def _changes(changes: ChangeSummary) -> Row:
    if not changes.files:
        return Row("Changes", (Cell("none: the session changed no file", Tone.WARN),))
    sizes = (
        Cell(numbers.format_count(len(changes.files), "file")),
        Cell(f"+{numbers.whole(changes.insertions)}", Tone.GOOD),
        Cell(f"-{numbers.whole(changes.deletions)}", Tone.BAD),
    )
    cut = (Cell("the patch was too large and is cut", Tone.WARN),) if changes.truncated else ()
    return Row("Changes", (*sizes, *cut), first([*map(Cell, sorted(changes.files))], MAX_LISTED))


LEVELS = {"full": Tone.GOOD, "none": Tone.BAD}
PHASES = ("setup", "session", "build", "test")


def _isolation(report: IsolationReport) -> Iterator[Row]:
    """Level and network with the reasons; then only what there is to tell."""
    closed = [phase for phase in PHASES if getattr(report.network, phase) == "none"]
    network = f"no network for {', '.join(closed)}" if closed and report.level != "none" else "network open"
    reasons = tuple(Cell(sentence(reason), Tone.DIM) for reason in report.reasons)
    level = Cell(report.level, LEVELS.get(report.level, Tone.WARN))
    yield Row("Isolation", (level, Cell(network, Tone.DIM)), reasons)
    # What a key of Zelda's own lets in is in force.
    let_in = [it for it in report.findings if it.setting.startswith("isolation.")]
    overruled = [f"{it.setting} ({it.file})" for it in report.findings if it not in let_in]
    settings = numbers.format_count(len(overruled), "setting")
    protected = numbers.format_count(len(report.protected), "protected file")
    for label, summary, names in (
        ("Let in", sentence(let_in[0].effect) if let_in else "", [it.file for it in let_in]),
        ("Overruled", f"{settings} of the project did not take effect", overruled),
        ("Protected", f"{protected} changed by the session, and restored", report.protected),
    ):
        if names:
            yield Row(label, (Cell(summary, Tone.WARN),), first([Cell(name, Tone.DIM) for name in names], MAX_LISTED))
    if count := len(report.ignored.changes) + report.ignored.more:
        changed = f"the session changed {numbers.format_count(count, 'file')} that git ignores"
        yield Row("Ignored", (Cell(f"{changed}; build and tests ran without these changes", Tone.DIM),))
    if report.ignored.kept:
        kept = first([Cell(name, Tone.DIM) for name in report.ignored.kept], MAX_LISTED)
        yield Row("Kept", (Cell("files that git ignores, as the session left them", Tone.DIM),), kept)
