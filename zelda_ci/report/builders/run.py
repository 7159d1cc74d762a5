"""One run as a report: outcome, problem, scores, session, changes, isolation, files."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from zelda_ci.domain import numbers
from zelda_ci.domain.outcome import Outcome, failed_criteria, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.test_run import CommandResult, CorrectnessDetails
from zelda_ci.domain.workspace import ChangeSummary, IgnoredFiles, IsolationReport
from zelda_ci.report.builders.correctness import (
    command_ending,
    correctness_section,
    failed_steps,
    run_problem,
)
from zelda_ci.report.builders.findings import hidden_findings
from zelda_ci.report.builders.judged import (
    criteria_section,
    is_cost_known,
    judge_rows,
    tool_usage_section,
    unmet_rows,
)
from zelda_ci.report.builders.phrases import measured_words
from zelda_ci.report.builders.usage import metric_rows, use_rows, used
from zelda_ci.report.model import Cell, Row, RunFiles, RunView, Section, Tone
from zelda_ci.report.text import sentence, visible
from zelda_ci.report.words import ENDINGS, OUTCOMES

MAX_FILES = 10
SCORES = "Scores"


def change_row(changes: ChangeSummary) -> Row:
    """How much, and the first names."""
    if not changes.files:
        return Row("Changes", (Cell("none: the session changed no file", Tone.WARN),))
    return Row("Changes", tuple(_sizes(changes)), tuple(_names(changes.files)))


def file_rows(files: RunFiles, failed: Collection[str] = ()) -> tuple[Row, ...]:
    """The paths to copy; of the commands' output only that of the steps that failed."""
    paths = {"Result": files.result, "Transcript": files.transcript, "Patch": files.patch}
    logs = {"setup": files.setup_log, "build": files.build_log, "test": files.test_log}
    paths |= {f"{step.capitalize()} log": path for step, path in logs.items() if step in failed}
    return tuple(
        Row(name, (Cell(visible(path, len(path)), Tone.DIM, whole=True),)) for name, path in paths.items() if path
    )


def _sizes(changes: ChangeSummary) -> Iterator[Cell]:
    yield Cell(numbers.format_count(len(changes.files), "file"))
    yield Cell(f"+{numbers.whole(changes.insertions)}", Tone.GOOD)
    yield Cell(f"-{numbers.whole(changes.deletions)}", Tone.BAD)
    if changes.truncated:
        yield Cell("the patch was too large and is cut", Tone.WARN)


def _names(files: tuple[str, ...]) -> Iterator[Cell]:
    for name in sorted(files)[:MAX_FILES]:
        yield Cell(visible(name))
    if len(files) > MAX_FILES:
        yield Cell(f"and {numbers.whole(len(files) - MAX_FILES)} more", Tone.DIM)


MAX_NAMED = 10
MAX_ISOLATION_NAME_LENGTH = 120
TONES = {"full": Tone.GOOD, "none": Tone.BAD}
PHASES = ("setup", "session", "build", "test")


def isolation_rows(run: RunResult, *, whole: bool) -> Iterator[Row]:
    """Level and network, the reasons where the `whole` is wanted; then only what there is to tell."""
    report = run.isolation
    if report is None:
        return
    level = Cell(report.level, TONES.get(report.level, Tone.WARN))
    reasons = tuple(Cell(sentence(reason), Tone.DIM) for reason in report.reasons if whole)
    yield Row("Isolation", (level, Cell(_network(report), Tone.DIM)), reasons)
    # What a key of Zelda's own lets in is in force.
    let_in = [it for it in report.findings if it.setting.startswith("isolation.")]
    if let_in:
        yield Row("Let in", (Cell(sentence(let_in[0].effect), Tone.WARN),), _listed([it.file for it in let_in]))
    if names := [f"{it.setting} ({it.file})" for it in report.findings if it not in let_in]:
        summary = f"{numbers.format_count(len(names), 'setting')} of the project did not take effect"
        yield Row("Overruled", (Cell(summary, Tone.WARN),), _listed(names))
    if report.protected:
        summary = (
            f"{numbers.format_count(len(report.protected), 'protected file')} changed by the session, and restored"
        )
        yield Row("Protected", (Cell(summary, Tone.WARN),), _listed(report.protected))
    if report.ignored.changes or report.ignored.kept:
        yield _ignored_row(report.ignored)


def _network(report: IsolationReport) -> str:
    closed = [phase for phase in PHASES if getattr(report.network, phase) == "none"]
    if not closed or report.level == "none":
        return "network open"
    return f"no network for {', '.join(closed)}"


def _ignored_row(ignored: IgnoredFiles) -> Row:
    count = len(ignored.changes) + ignored.more
    changes = f"the session changed {numbers.format_count(count, 'file')} that git ignores"
    summary = f"{changes}; build and tests ran without these changes" if count else "kept for build and tests"
    folders = Counter(_ignored_folder(change.path) for change in ignored.changes)
    named = {_ignored_folder(change.path): f"{change.kind}: {change.path}" for change in ignored.changes}
    names = [name if folders[folder] == 1 else f"{folder}/: {folders[folder]} files" for folder, name in named.items()]
    names += [f"and {ignored.more} more"] if ignored.more else []
    kept = _listed([f"kept: {name}" for name in ignored.kept])
    return Row("Ignored", (Cell(summary, Tone.DIM),), (*_listed(names), *kept))


# What is ignored as a whole, beside folders whose names begin with a dot.
GENERATED = {"__pycache__", "node_modules", "target", "build", "dist", "vendor", "venv", "env", "coverage", "out"}


def _ignored_folder(path: str) -> str:
    """The folder that is probably ignored as a whole; otherwise the file's own, and the path of one at the top."""
    *folders, _ = parts = path.split("/")
    depth = next((at for at, name in enumerate(folders, 1) if name in GENERATED or name.startswith(".")), len(folders))
    return "/".join(parts[:depth]) or path


def _listed(names: Sequence[str]) -> tuple[Cell, ...]:
    listed = [Cell(visible(name, MAX_ISOLATION_NAME_LENGTH), Tone.DIM) for name in names[:MAX_NAMED]]
    more = len(names) - len(listed)
    return (*listed, *((Cell(f"and {more} more", Tone.DIM),) if more > 0 else ()))


def run_view(run: RunResult, files: RunFiles, *, several: bool = False, whole: bool = True) -> RunView:
    """The view of one run; `several` where it is one trial among others, `whole` with reasons for its isolation."""
    outcome = run_outcome(run)
    session = tuple(_session_rows(run, whole=whole))
    return RunView(
        run_id=visible(run.run_id),
        suite=visible(run.suite),
        trial=f"trial {run.trial}" if several else "",
        outcome=outcome,
        verdict=OUTCOMES[outcome].verdict,
        facts=run_facts(run),
        problem=run_problem(run, files),
        unmet=unmet_rows(run),
        sections=(
            *([Section(SCORES, scores)] if (scores := metric_rows(run)) else []),
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


def whole_cost(run: RunResult) -> float | None:
    """What session and judge cost together; nothing where neither was asked."""
    use = used(run)
    if use is None and run.judge is None:
        return None
    return (use.cost_usd if use else 0.0) + (run.judge.cost_usd if run.judge else 0.0)


def _is_cost_known(run: RunResult) -> bool:
    use = used(run)
    return (use is None or use.cost_known) and (run.judge is None or is_cost_known(run.judge))


def _facts(run: RunResult) -> Iterator[Cell]:
    outcome = run_outcome(run)
    if found := hidden_findings([run]):
        yield Cell(
            f"passes, but {found}" if outcome is Outcome.PASSED else f"{_ending(run, outcome)}; {found}", Tone.WARN
        )
    else:
        yield Cell(_ending(run, outcome), Tone.NEUTRAL if outcome <= Outcome.PASSED else OUTCOMES[outcome].tone)
    use = used(run)
    if use and use.details:
        yield Cell(numbers.format_count(use.details.turns, "turn"), Tone.DIM)
    cost = whole_cost(run)
    if cost is not None:
        yield Cell(numbers.money(cost, exact=_is_cost_known(run)), Tone.DIM)
    yield Cell(numbers.duration(wall_seconds(run)), Tone.DIM)
    if run.replayed:
        yield Cell("replayed", Tone.DIM)


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


def _session_rows(run: RunResult, *, whole: bool) -> Iterator[Row]:
    """What is known of the session and of what Zelda did around it."""
    if run.setup:
        yield Row("Setup", _setup(run.setup))
    use = used(run)
    if use:
        yield from use_rows(run, use)
    yield from judge_rows(run)
    if run.changes and (use or run.changes.files):
        yield change_row(run.changes)
    yield from isolation_rows(run, whole=whole)
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
