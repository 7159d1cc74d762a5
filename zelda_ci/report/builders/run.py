"""One run as a report: how it ended, scores, session, changes, isolation, files."""

from collections.abc import Iterator

from zelda_ci.domain import numbers
from zelda_ci.domain.details import CorrectnessDetails, EfficiencyDetails
from zelda_ci.domain.outcome import Outcome, failed_criteria, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.workspace import ChangeSummary, IsolationReport
from zelda_ci.report.builders.correctness import command_cells, command_ending, correctness_rows
from zelda_ci.report.builders.findings import hidden_findings
from zelda_ci.report.builders.judged import criteria_title, criterion_rows, judge_rows, tool_usage_rows
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
        criteria_title(run.config): criterion_rows(run),
        "Correctness": correctness_rows(run),
        "Tool usage": tool_usage_rows(run),
        "Session": _session_rows(run),
    }
    return tuple(Section(title, tuple(rows)) for title, of_it in sections.items() if (rows := [*of_it]))


def run_facts(run: RunResult) -> tuple[Cell, ...]:
    """How it ended, and the three numbers that everybody asks for."""
    outcome = run_outcome(run)
    ending = Cell(_ending(run, outcome), Tone.NEUTRAL if outcome <= Outcome.PASSED else OUTCOMES[outcome].tone)
    if found := hidden_findings([run]):
        words = f"passes, but {found}" if outcome is Outcome.PASSED else f"{ending.text}; {found}"
        ending = Cell(words, Tone.WARN)
    details = run.details(EfficiencyDetails)
    facts = [
        numbers.format_count(details.turns, "turn") if details else "",
        cost(spent([run])),
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
    details = run.details(CorrectnessDetails)
    commands = run.setup, *((details.build, details.test) if details else (None, None))
    logs = {"Setup log": files.setup_log, "Build log": files.build_log, "Test log": files.test_log}
    for (name, log), command in zip(logs.items(), commands, strict=True):
        if command and command.exit_code != 0:
            paths[name] = log
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
    ignored, more = [f"{change.kind}: {change.path}" for change in report.ignored.changes], report.ignored.more
    changed = f"the session changed {numbers.format_count(len(ignored) + more, 'file')} that git ignores"
    for label, tone, summary, names, unlisted in (
        ("Let in", Tone.WARN, sentence(let_in[0].effect) if let_in else "", [it.file for it in let_in], 0),
        ("Overruled", Tone.WARN, f"{settings} of the project did not take effect", overruled, 0),
        ("Protected", Tone.WARN, f"{protected} changed by the session, and restored", report.protected, 0),
        ("Ignored", Tone.DIM, f"{changed}; build and tests ran without these changes", ignored, more),
        ("Kept", Tone.DIM, "files that git ignores, as the session left them", report.ignored.kept, 0),
    ):
        if names:
            lines = first([Cell(name, Tone.DIM) for name in names], MAX_LISTED, unlisted=unlisted)
            yield Row(label, (Cell(summary, tone),), lines)
