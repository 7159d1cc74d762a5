"""What the log of a workflow shows: annotations on the lines of suites, and why the step ends as it does."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import CriterionDelta, NotLoaded, Verdict
from zelda_ci.domain.outcome import Outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.report.builders.gate import gate_sentence, gate_sentences, uncounted_sentences
from zelda_ci.report.builders.phrases import change_words, quoted
from zelda_ci.report.builders.standings import SuiteStanding, SuiteVerdict, deltas, of, standings
from zelda_ci.report.comment.causes import EXPLAINED, Cause, causes
from zelda_ci.report.comment.headline import measured
from zelda_ci.report.comment.sources import steering_of
from zelda_ci.report.comment.table import standing_words
from zelda_ci.report.text import sentence, visible
from zelda_ci.report.told import CiReport

Level = Literal["error", "warning", "notice"]


@dataclass(frozen=True)
class SuiteAnnotation:
    """What is said at one place; without a file it belongs to the run as a whole."""

    level: Level
    file: str | None
    line: int | None
    title: str
    message: str


def annotations(
    report: CiReport, *, prefix: str = "", texts: Mapping[str, str] | None = None
) -> tuple[SuiteAnnotation, ...]:
    """Everything worth an annotation, in the comment's order and words; whoever prints decides how many.

    Args:
        report: What happened.
        prefix: The project's folder, relative to the repository.
        texts: The suites' files by `config.file`, for the lines of criteria; without them the first line is meant.
    """
    if report.is_cut_short:
        return ()
    suites = standings(report)
    places = _Places(report, prefix, texts or {}, {run.suite: run for run in report.batch.runs})
    found = [_of_cause(cause, places) for causes_of_suite in causes(report, suites) for cause in causes_of_suite]
    return (*_of_all(report), *found, *(_of_better(each, places) for each in of(suites, SuiteVerdict.BETTER)))


def _of_all(report: CiReport) -> Iterator[SuiteAnnotation]:
    """What no single suite shows."""
    for reason in report.gate.reasons:
        if reason.suite is None:
            is_file = isinstance(reason, NotLoaded)
            title = "Zelda: not loaded" if is_file else "Zelda: worse over all suites together"
            file = reason.file if isinstance(reason, NotLoaded) and reason.file.isprintable() else None
            yield SuiteAnnotation("error", file, 1 if file else None, title, sentence(gate_sentence(reason)))


def _of_cause(cause: Cause, places: "_Places") -> SuiteAnnotation:
    suite = cause.suite
    title = f"Zelda: {visible(suite.suite, 80)}, {standing_words(suite)}"
    return SuiteAnnotation("error" if cause.is_red else "warning", *places.of(cause), title, sentence(cause.sentence))


def _of_better(suite: SuiteStanding, places: "_Places") -> SuiteAnnotation:
    better = [delta for delta in deltas(suite.compared) if delta.verdict is Verdict.IMPROVED]
    what = [
        quoted(delta.criterion, 80) if isinstance(delta, CriterionDelta) else change_words(delta) for delta in better
    ]
    title = f"Zelda: {visible(suite.suite, 80)}, {standing_words(suite)}"
    return SuiteAnnotation("notice", *places.at(suite.suite), title, f"Better: {'; '.join(what)}.")


@dataclass(frozen=True)
class _Places:
    report: CiReport
    prefix: str
    texts: Mapping[str, str]
    runs: Mapping[str, RunResult]

    def of(self, cause: Cause) -> tuple[str | None, int | None]:
        """The line of the pull request that may have done it, where one is known; else that of the suite's file."""
        if cause.files and cause.files[0].isprintable():
            return cause.files[0], 1
        if cause.suite.standing in EXPLAINED:
            for change in steering_of(self.report, cause.suite):
                if change.line and change.path.isprintable():
                    return change.path, change.line
        return self.at(cause.suite.suite, cause.criterion)

    def at(self, suite: str | None, statement: str = "") -> tuple[str | None, int | None]:
        """File and line of what is said about a suite."""
        run = self.runs.get(suite or "")
        if run is None:
            return None, None
        file = PurePosixPath(self.prefix) / run.config.file
        if file.is_absolute() or ".." in file.parts or not str(file).isprintable():
            return None, None
        return str(file), self._line(run, statement)

    def _line(self, run: RunResult, statement: str) -> int:
        """The first line of the criterion that is named; suites are YAML, so what it begins with has to do."""
        criterion = next((c for c in run.config.criteria if c in statement or repr(c) in statement), None)
        start = " ".join(criterion.split())[:40] if criterion else ""
        lines = self.texts.get(run.config.file, "").splitlines() if start else []
        return next((number for number, line in enumerate(lines, start=1) if start in " ".join(line.split())), 1)


def log_lines(report: CiReport) -> Iterator[str]:
    """What a reader of the log wants to know besides the verdict."""
    replayed = " (of the recording; nothing was spent)" if any(run.replayed for run in report.batch.runs) else ""
    yield f"Cost of this run: ${report.batch.cost_usd:.4f}{replayed}"
    levels = {run.isolation.level for run in report.batch.runs if run.isolation}
    yield f"Isolation: {', '.join(sorted(levels)) or 'not known'}"
    for text in gate_sentences(report.gate):
        yield f"gate: {text}"
    for text in uncounted_sentences(report.gate):
        yield f"not counted: {text}"


def closing_line(report: CiReport) -> str:
    """Why the step ends with the code that it ends with."""
    outcome = report.outcome
    code = f"Exit code {outcome.exit_code}."
    findings = numbers.format_count(len(report.gate.reasons), "finding")
    words = {
        Outcome.MEASURED: measured(report.batch.runs),
        Outcome.PASSED: "The gate passes.",
        Outcome.FAILED: f"The gate does not pass: {findings}. {code}",
        Outcome.INCOMPLETE: f"INCOMPLETE: not everything could be judged, so this is no pass. {code}",
        Outcome.BROKEN: f"Some runs are broken and say nothing of the files they were to test. {code}",
        Outcome.INTERRUPTED: f"The run was cancelled; its results so far are saved. {code}",
    }
    return words[outcome]
