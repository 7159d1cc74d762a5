"""What the log of a workflow shows: annotations on the lines of suites, and why the step ends as it does."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import CriterionDelta, NotLoaded, Verdict
from zelda_ci.domain.outcome import Outcome
from zelda_ci.report.builders.gate import gate_sentence, gate_sentences, uncounted_sentences
from zelda_ci.report.builders.phrases import change_words, quoted
from zelda_ci.report.builders.standings import SuiteStanding, SuiteVerdict, of, standings
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.comment.causes import EXPLAINED, causes, steering_of
from zelda_ci.report.comment.headline import measured
from zelda_ci.report.comment.table import standing_words
from zelda_ci.report.text import sentence, visible


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

    Args:
        report: What happened.
        prefix: The project's folder, relative to the repository.
        texts: The suites' files by `config.file`, for the lines of criteria; without them the first line is meant.
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
    yield from (f"gate: {text}" for text in gate_sentences(report.gate))
    yield from (f"not counted: {text}" for text in uncounted_sentences(report.gate))


def closing_line(report: CiReport) -> str:
    """Why the step ends with the code that it ends with."""
    findings = numbers.format_count(len(report.gate.reasons), "finding")
    words = {
        Outcome.MEASURED: measured(report.batch.runs),
        Outcome.PASSED: "The gate passes.",
        Outcome.FAILED: f"The gate does not pass: {findings}.",
        Outcome.INCOMPLETE: "INCOMPLETE: not everything could be judged, so this is no pass.",
        Outcome.BROKEN: "Some runs are broken and say nothing of the files they were to test.",
        Outcome.INTERRUPTED: "The run was cancelled; its results so far are saved.",
    }
    code = f" Exit code {report.outcome.exit_code}." * report.is_red
    return f"{words[report.outcome]}{code}"
