"""What a step in CI tells: the comment, which is the job summary as well, annotations on lines, and its log."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, timedelta
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from zelda_ci.domain import numbers
from zelda_ci.domain.check import ContextReport
from zelda_ci.domain.comparison import BaselineState, Comparison, CriterionDelta, GateReason, NotLoaded, Verdict
from zelda_ci.domain.details import Citation, CriterionVerdict
from zelda_ci.domain.outcome import Outcome, failed_criteria, run_outcome
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.trials import trials_alone
from zelda_ci.report.builders import phrases
from zelda_ci.report.builders.anchors import base_runs
from zelda_ci.report.builders.comparison import KINDS, gate_sentence, uncounted_sentences, uncounted_words
from zelda_ci.report.builders.phrases import capital, change_words, commit_name, join, line, quoted
from zelda_ci.report.builders.routing import routing_tables
from zelda_ci.report.builders.run import cost, failure_problem, used, wall_seconds
from zelda_ci.report.builders.standings import SuiteStanding, SuiteVerdict, of, standings
from zelda_ci.report.builders.steering import context_line, context_report, first_requests
from zelda_ci.report.builders.summary import incomplete_words, spending
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.comment.causes import EXPLAINED, boxes, causes, steering_of
from zelda_ci.report.comment.headline import headline, lead
from zelda_ci.report.comment.table import moved_table, numbers_table, standing_words
from zelda_ci.report.model import NO_FILES, OUTCOMES, Cell, CiView, Line, Row, Section, plain
from zelda_ci.report.text import sentence, visible

MAX_NOTES = 10
# Sentences below the first line; the others can be opened.
MAX_LEAD = 3
FOREIGN = "These results were made by the workflow run of a fork's pull request, whose author controls what it does."
NOT_STORED = "The results were not stored as an artifact"
NO_REPORT = "The HTML report could not be stored"
NO_JUNIT = "There is no JUnit XML"


def ci_view(report: CiReport) -> CiView:
    """The view that comment and summary are rendered from."""
    suites, comparison = standings(report), report.comparison
    shown, more = boxes(report, [] if report.is_cut_short else causes(report, suites))
    first, rest = (found := [*lead(report, suites)])[:MAX_LEAD], found[MAX_LEAD:]
    # Nobody is asked to look into the folds of a night.
    opened = [note for note in report.notes if report.nightly or note == FOREIGN]
    rest += [line("{}", capital(note)) for note in report.notes if note not in opened]
    changed = report.baseline.state is not BaselineState.OFF
    if comparison:
        verdicts = {comparison.verdict, *(suite.verdict for suite in comparison.suites)}
        missed = any(suite.tools.newly_missed or suite.tools.no_longer_missed for suite in comparison.suites)
        broken = report.is_cut_short or any(run_outcome(run) > Outcome.FAILED for run in report.batch.runs)
        changed = missed or broken or not verdicts <= {Verdict.UNCHANGED, Verdict.INCONCLUSIVE}
    return CiView(
        title=sentence(report.title, 80) or "Zelda",
        headline=headline(report, suites),
        lead=(
            *([join(first, " ")] if first else []),
            *([context_line(report.context_size)] if report.context_size else []),
            *(line("{}", capital(note)) for note in opened[:MAX_NOTES]),
        ),
        causes=shown,
        more_causes=more,
        table=moved_table(report, suites),
        basis=tuple(basis(report)),
        details=tuple(_folds(report, suites, rest)),
        footer=_footer(report),
        changed=changed,
        failed=report.is_red,
    )


def basis(report: CiReport) -> Iterator[Line]:
    """One paragraph below the table: what was compared with what, how many sessions, and what they cost."""
    sentences: list[Line] = []
    if report.comparison and not report.is_cut_short:
        sentences += _compared(report, report.comparison)
    if runs := (*report.batch.runs, *report.batch.base_runs):
        cost = f"This run cost {spending(report.batch)}{' with the judge' * any(run.judge for run in runs)}"
        is_free = all(run.replayed for run in runs)
        sentences.append(line(f"{'The sessions were replayed, and nothing was spent' if is_free else cost}."))
    if search := sum(found.cost_usd for found in report.attributions):
        sentences.append(line(f"The search for the cause cost {numbers.brief_money(search)} more."))
    if sentences:
        yield join(sentences, " ")


def _compared(report: CiReport, comparison: Comparison) -> Iterator[Line]:
    """The baseline, and how many sessions of each side; of a base without any, why there are none."""
    origin, suites = report.baseline, comparison.suites
    # Stored trials only said what to expect of the head's first.
    of_base = (it.sources.base if it.sources else it.baseline.valid if it.baseline else 0 for it in suites)
    base = [*filter(None, of_base)]
    if base:
        age = report.batch.started_at - origin.created_at if origin.created_at else timedelta()
        facts = [f"{origin.stands_for} has stored no results"] if origin.stands_for else []
        facts += [f"stored by {origin.workflow.rpartition('/')[2]}"] if origin.workflow else []
        facts += [f"{numbers.format_count(origin.behind, 'commit')} behind"] if origin.behind else []
        facts += [phrases.age_words(age)] if age > timedelta(days=1) else []
        words = ", ".join(facts)
        name = commit_name(origin.branch, origin.commit)
        against = Cell(name, whole=True) if name else "the results that the workflow names"
        yield line("Compared with {} ({})." if words else "Compared with {}{}.", against, words)
    here = [suite.candidate.valid for suite in suites if suite.candidate and suite.candidate.valid]
    whose = origin.branch or "the base"
    there = f", all as expected; {whose} was not needed"
    if base:
        beside = any(suite.sources and suite.sources.base for suite in suites)
        there = f", {_range(base)} on the base{', side by side' * beside}"
    elif report.gate.uncounted or report.is_red:
        there = f"; no session of {whose} stands beside them"
    single = ": cost, turns and time differ between any two" * comparison.single_trial
    counts = f"{_range(here)} session{'s' * (max(here) > 1)} per suite here" if here else ""
    yield line(f"{counts}{{}}{single}.", there) if here else line("No session could be counted.")


def _footer(report: CiReport) -> Line:
    """The commit that a reviewer knows, and where everything is."""
    links = report.links
    head = report.head or report.tested or next((run.source.commit for run in report.batch.runs if run.source), None)
    tested = line("Tested {}", Cell(commit_name(None, head), whole=True, url=links.commit)) if head else ()
    places = {
        "report": links.report,
        "transcripts and patches": links.transcripts,
        "results": links.artifact,
        "workflow run": links.run,
    }
    found = [tested, *((Cell(words, url=url),) for words, url in places.items() if url)]
    return join(filter(None, found), " \u00b7 ")


# --- what can be opened ------------------------------------------------------------------------------------------

MAX_ROWS = 100


def _folds(report: CiReport, suites: Sequence[SuiteStanding], notes: Sequence[Line]) -> Iterator[Section]:
    """What matters most comes first: where there is no room for all, the last ones are left out."""
    gate, folds = report.gate, []
    if not report.is_cut_short:
        # Every finding, also those that follow from another.
        red = [_finding(reason) for reason in gate.reasons]
        others = [_finding(each.reason, uncounted_words(each)) for each in gate.uncounted]
        for reason, given in ((each.reason, each.acceptance) for each in gate.accepted):
            others.append(_finding(reason, f"accepted by @{given.by} because {given.because}"))
        folds.append((f"Why the check is red: {numbers.format_count(len(red), 'finding')} of the gate", red))
        folds.append((f"Fails, and is no reason to be red: {numbers.whole(len(others))}", others))
    noted = [Row("", (Cell(plain(note)),)) for note in notes]
    title = "About this run and its baseline" if report.comparison else "About this run"
    folds += [_broken(report.batch), *_unmet(report)]
    folds.append((f"{numbers.format_count(len(noted), 'note')} on this run", noted))
    folds.append((title, [*_baseline(report), *_run(report)]))
    for words, rows in folds:
        more = [Row("", (Cell(f"and {numbers.whole(len(rows) - MAX_ROWS)} more"),))] * (len(rows) > MAX_ROWS)
        if rows:
            yield Section(words, (*rows[:MAX_ROWS], *more))
    if report.context_size:
        found = context_details(report.context_size)
        requests = first_requests(report.context_size, report.batch.runs, base_runs(report))
        yield replace(found, rows=(*requests, *found.rows))
    if not report.is_cut_short:
        tables = routing_tables(report.batch.runs, base_runs(report))
        yield from (Section(title, table=table) for title, table in tables)
    table = numbers_table(report, suites)
    if table.lines:
        yield Section("All numbers of all suites", table=table)


def context_details(size: ContextReport) -> Section:
    """What steering takes of the context, unit by unit."""
    found = context_report(size)
    table = found.table
    if table and (more := len(table.lines) - MAX_ROWS) > 0:
        rest = Cell(f"and {numbers.whole(more)} more")
        table = replace(table, lines=table.lines[:MAX_ROWS], remarks=(rest, *table.remarks))
    return replace(found, title="Context of a session, unit by unit", table=table)


def _finding(reason: GateReason, because: str = "") -> Row:
    words = gate_sentence(reason)
    return Row(KINDS[reason.kind], (Cell(f"{words}: {because}" if because else words),))


def _broken(batch: BatchResult) -> tuple[str, list[Row]]:
    """Runs that ended otherwise than they should, and those whose build or tests did not pass."""
    rows = []
    for run in batch.runs:
        outcome = run_outcome(run)
        if outcome > Outcome.PASSED and (problem := failure_problem(run, NO_FILES)):
            several = trials_alone(run.config.trials) > 1 or run.trial > 1
            name = f"{run.suite}, session {run.trial}" if several else run.suite
            # The last lines of what a command printed, as they are.
            printed = [Cell("\n".join(problem.output), whole=True)] * bool(problem.output)
            label = f"{name}, {OUTCOMES[outcome].word}"
            rows.append(Row(label, (Cell(problem.sentence),), (Cell(problem.advice), *printed)))
    return f"{numbers.format_count(len(rows), 'session')} with a problem", rows


def _unmet(report: CiReport) -> Iterator[tuple[str, list[Row]]]:
    """Criteria that fail, each with what the judge said of the newest session; those that fail as before come last."""
    suites = report.comparison.suites if report.comparison else ()
    criteria = ((suite.suite, delta) for suite in suites for delta in suite.criteria)
    unchanged = {(suite, delta.criterion) for suite, delta in criteria if delta.verdict is Verdict.UNCHANGED}
    rows: dict[tuple[str, str], Row] = {}
    for run in report.batch.runs:
        for judged in failed_criteria(run):
            undecided = "undecided: " * (judged.verdict is CriterionVerdict.UNDECIDED)
            places = "; ".join(map(citation_place, judged.evidence[:2]))
            reason = f"{undecided}{sentence(judged.reasoning, 500)}{f' ({places})' if places else ''}"
            rows[run.suite, judged.criterion] = Row(run.suite, (Cell(judged.criterion),), (Cell(reason),))
    for again in ("", " as before"):
        those = [row for key, row in rows.items() if (key in unchanged) == bool(again)]
        yield f"{numbers.format_count(len(those), 'criterion fails', 'criteria fail')}{again}", those


def citation_place(cited: Citation) -> str:
    """Where a verdict can be checked."""
    return f"{cited.where} {quoted(cited.quote, 160)}" if cited.quote else cited.where


def _baseline(report: CiReport) -> Iterator[Row]:
    origin, now = report.baseline, report.batch.started_at
    name, wanted = commit_name(origin.branch, origin.commit), commit_name(None, origin.wanted)
    cells = [Cell(name, whole=True)] if name else []
    if origin.created_at:
        stamp = f"{origin.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        cells.append(Cell(f"of {stamp}, {phrases.age_words(now - origin.created_at)}"))
    if origin.behind is not None and wanted:
        behind = f"{numbers.format_count(origin.behind, 'commit')} behind {wanted}, " if origin.behind else ""
        cells.append(Cell(f"{behind}on which this is based"))
    cells += [Cell(phrases.pool_words(origin.pool, now))] if origin.pool else []
    # Where a comparison is there, the facts say it all.
    yield Row("Baseline", (*cells, *(() if report.comparison and cells else (Cell(origin.sentence),))))


def _run(report: CiReport) -> Iterator[Row]:
    batch, suites = report.batch, report.comparison.suites if report.comparison else ()
    if report.head and report.tested:
        yield Row("Tested", (Cell(f"{commit_name(None, report.tested)} merges {commit_name(None, report.head)}"),))
    sizes = Counter(run.suite for run in batch.runs).values()
    here = [Cell(f"{_range(sizes)} per suite")] if sizes else []
    stored = [suite.baseline.valid for suite in suites if suite.baseline]
    yield Row("Sessions", (*here, *([Cell(f"{_range(stored)} in the baseline")] if stored else [])))
    runs = (*batch.runs, *batch.base_runs)
    judges = [run.judge for run in runs if run.judge]
    exact = all(use.cost_known for run in runs if (use := used(run)))
    costs = [f"sessions {numbers.money(sum(run.api.cost_usd for run in runs), exact=exact)}"]
    costs += [f"judge {cost(judges)}"] * bool(judges)
    costs.append(numbers.duration(wall_seconds(batch)))
    yield Row("Cost of this run", tuple(map(Cell, costs)))
    made_with = (
        *sorted({f"Zelda {run.versions.zelda}, Claude Code {run.versions.cli or 'unknown'}" for run in batch.runs}),
        *sorted({model for run in batch.runs for model in run.models}),
        *sorted({f"isolation {run.isolation.level}" for run in batch.runs if run.isolation}),
        *["the model's words came from a cassette"] * any(run.replayed for run in batch.runs),
    )
    yield Row("Versions", tuple(map(Cell, made_with)))


def _range(sizes: Collection[int]) -> str:
    """`3`, or `1 to 3`."""
    return " to ".join(map(numbers.whole, sorted({min(sizes), max(sizes)})))


class Annotation(NamedTuple):
    """A remark; without a file it belongs to the run as a whole."""

    level: Literal["error", "warning", "notice"]
    message: str
    title: str
    file: str = ""
    """From the top of the repository."""
    line: int | None = None


def annotations(report: CiReport, *, prefix: str = "", texts: Mapping[str, str] | None = None) -> Iterator[Annotation]:
    """Everything worth an annotation, in the comment's order and words; whoever prints decides how many.

    `prefix` is the project's folder in the repository. Without the suites' files by name, in `texts`, a criterion is
    on the first line.
    """
    if report.is_cut_short:
        return
    kinds = {"notLoaded": "not loaded", "context": "too much is always in context"}
    for reason in report.gate.reasons:
        if reason.suite is None:
            file = reason.file if isinstance(reason, NotLoaded) and reason.file.isprintable() else ""
            what = kinds.get(reason.kind, "worse over all suites together")
            yield Annotation("error", gate_sentence(reason), f"Zelda: {what}", file, 1 if file else None)
    suites = standings(report)
    for cause in (cause for found in causes(report, suites) for cause in found):
        # The line of the pull request that may have done it, where one is known.
        changes = steering_of(report, cause.suite) if cause.suite.standing in EXPLAINED else ()
        lines = ((it.path, it.line) for it in changes if it.line)
        blamed: Iterable[tuple[str, int | None]] = ((file, 1) for file in cause.files[:1]) if cause.files else lines
        known = next((it for it in blamed if it[0].isprintable()), None)
        place = known or _place(report, cause.suite, prefix, texts or {}, cause.criterion)
        level: Literal["error", "warning"] = "error" if cause.is_red else "warning"
        yield Annotation(level, sentence(cause.sentence), _title(cause.suite), *place)
    for suite in of(suites, SuiteVerdict.BETTER):
        better = [delta for delta in suite.deltas if delta.verdict is Verdict.IMPROVED]
        told = (quoted(it.criterion, 80) if isinstance(it, CriterionDelta) else change_words(it) for it in better)
        place = _place(report, suite, prefix, texts or {})
        yield Annotation("notice", f"Better: {'; '.join(told)}.", _title(suite), *place)


def _title(suite: SuiteStanding) -> str:
    return f"Zelda: {visible(suite.suite, 80)}, {standing_words(suite)}"


def _place(
    report: CiReport, suite: SuiteStanding, prefix: str, texts: Mapping[str, str], criterion: str = ""
) -> tuple[str, int | None]:
    """The suite's file, and the first line of a criterion in it: suites are YAML, so what it begins with has to do."""
    config = next((run.config for run in reversed(report.batch.runs) if run.suite == suite.suite), None)
    file = PurePosixPath(prefix) / config.file if config else None
    if config is None or file is None or file.is_absolute() or ".." in file.parts or not str(file).isprintable():
        return "", None
    start = " ".join(criterion.split())[:40]
    lines = texts.get(config.file, "").splitlines() if start else []
    return str(file), next((number for number, text in enumerate(lines, 1) if start in " ".join(text.split())), 1)


def log_lines(report: CiReport) -> Iterator[str]:
    """What a reader of the log wants to know besides the verdict."""
    replayed = " (of the recording; nothing was spent)" if any(run.replayed for run in report.batch.runs) else ""
    yield f"Cost of this run: ${report.batch.cost_usd:.4f}{replayed}"
    levels = {run.isolation.level for run in report.batch.runs if run.isolation}
    yield f"Isolation: {', '.join(sorted(levels)) or 'not known'}"
    yield from (f"gate: {gate_sentence(reason)}" for reason in report.gate.reasons)
    yield from (f"not counted: {text}" for text in uncounted_sentences(report.gate))


def closing_line(report: CiReport) -> str:
    """Why the step ends with the code that it ends with."""
    findings = numbers.format_count(len(report.gate.reasons), "finding")
    words = {
        Outcome.MEASURED: phrases.measured(report.batch.runs),
        Outcome.PASSED: "The gate passes.",
        Outcome.FAILED: f"The gate does not pass: {findings}.",
        Outcome.INCOMPLETE: f"INCOMPLETE: {incomplete_words(report.batch)}, so this is no pass.",
        Outcome.BROKEN: "Some runs are broken and say nothing of the files they were to test.",
        Outcome.INTERRUPTED: "The run was cancelled; its results so far are saved.",
    }
    code = f" Exit code {report.outcome.exit_code}." * report.is_red
    return f"{words[report.outcome]}{code}"
