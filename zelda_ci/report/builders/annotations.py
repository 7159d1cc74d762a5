"""What the log of a workflow shows: annotations on the lines of suites, and why the step ends as it does."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from zelda_ci.domain import numbers
from zelda_ci.domain.ci import CiReport
from zelda_ci.domain.comparison import Comparison, SuiteComparison, Verdict
from zelda_ci.domain.outcome import Outcome, batch_outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.errors import EXIT_INTERRUPTED
from zelda_ci.report.builders.ci_details import FIRM
from zelda_ci.report.builders.ci_table import WORDS, by_suite
from zelda_ci.report.builders.comparison import NOISE, NOT_PROVEN, verdict_words
from zelda_ci.report.builders.correctness import run_problem
from zelda_ci.report.builders.gate import gate_sentence, gate_sentences, on_base_sentences
from zelda_ci.report.model import NO_FILES
from zelda_ci.report.text import sentence, visible

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
    """Everything worth an annotation, the worst first; whoever prints decides how many.

    Args:
        report: What happened.
        prefix: The project's folder, relative to the repository.
        texts: The suites' files by `config.file`, for the lines of criteria; without them the first line is meant.
    """
    places = _Places(prefix, texts or {}, {run.suite: run for run in report.batch.runs})
    ordered = [*_errors(report, places), *_warnings(report, places), *_notices(report.comparison, places)]
    return tuple(ordered)


@dataclass(frozen=True)
class _Places:
    prefix: str
    texts: Mapping[str, str]
    runs: Mapping[str, RunResult]

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
        criterion = next((c for c in run.config.acceptance_criteria if c in statement or repr(c) in statement), None)
        start = " ".join(criterion.split())[:40] if criterion else ""
        lines = self.texts.get(run.config.file, "").splitlines() if start else []
        return next((number for number, line in enumerate(lines, start=1) if start in " ".join(line.split())), 1)


def _errors(report: CiReport, places: _Places) -> Iterator[SuiteAnnotation]:
    for reason in report.gate.reasons:
        text = gate_sentence(reason)
        title = f"Zelda: {reason.kind}" + (f" in {visible(reason.suite, 80)}" if reason.suite else "")
        yield SuiteAnnotation("error", *places.at(reason.suite, text), title, sentence(text))


def _warnings(report: CiReport, places: _Places) -> Iterator[SuiteAnnotation]:
    for suite in by_suite(report.batch.runs).values():
        for run in suite.runs:
            outcome = run_outcome(run)
            problem = run_problem(run, NO_FILES) if outcome >= Outcome.INCOMPLETE else None
            if problem:
                title = f"Zelda: {WORDS[outcome].text} in {visible(run.suite, 80)}, trial {run.trial}"
                yield SuiteAnnotation("warning", *places.at(run.suite), title, f"{problem.sentence} {problem.advice}")
    for compared in report.comparison.suites if report.comparison else ():
        if compared.verdict is Verdict.CHANGED or (compared.verdict is Verdict.INCONCLUSIVE and _is_doubtful(compared)):
            title = f"Zelda: {verdict_words(compared.verdict)} in {visible(compared.suite, 80)}"
            yield SuiteAnnotation("warning", *places.at(compared.suite), title, _doubt(compared))


def _is_doubtful(suite: SuiteComparison) -> bool:
    """More than that single trials differ, which they always do and the first line of the report says."""
    unsure = [delta for delta in (*suite.criteria, *suite.measures) if delta.verdict is Verdict.INCONCLUSIVE]
    return bool(suite.reasons) or any(delta.reasons != (NOISE,) for delta in unsure)


def _doubt(suite: SuiteComparison) -> str:
    if suite.verdict is Verdict.CHANGED:
        seen = sum(delta.verdict is Verdict.CHANGED for delta in (*suite.criteria, *suite.measures))
        return f"{numbers.format_count(seen, 'value')} changed: {NOT_PROVEN}"
    unsure = [delta for delta in (*suite.criteria, *suite.measures) if delta.verdict is Verdict.INCONCLUSIVE]
    reasons = suite.reasons or tuple(reason for delta in unsure for reason in delta.reasons)
    why = "; ".join(dict.fromkeys(map(sentence, reasons)))
    return f"{numbers.format_count(len(unsure), 'value')} cannot be told from noise or compared: {why}"


def _notices(comparison: Comparison | None, places: _Places) -> Iterator[SuiteAnnotation]:
    for suite in comparison.suites if comparison else ():
        better = [d for d in (*suite.criteria, *suite.measures) if d.verdict in FIRM - {Verdict.REGRESSED}]
        if better:
            title = f"Zelda: improved in {visible(suite.suite, 80)}"
            message = f"{numbers.format_count(len(better), 'improvement')} against the baseline."
            yield SuiteAnnotation("notice", *places.at(suite.suite), title, message)


MEASURED = "The runs are measured: no suite has criteria or commands, and nothing could pass or fail."


def log_lines(report: CiReport) -> Iterator[str]:
    """What a reader of the log wants to know besides the verdict."""
    replayed = " (of the recording; nothing was spent)" if any(run.replayed for run in report.batch.runs) else ""
    yield f"Cost of this run: ${report.batch.cost_usd:.4f}{replayed}"
    levels = {run.isolation.level for run in report.batch.runs if run.isolation}
    yield f"Isolation: {', '.join(sorted(levels)) or 'not known'}"
    for text in gate_sentences(report.gate):
        yield f"gate: {text}"
    for text in on_base_sentences(report.gate):
        yield f"not counted: {text}"


def closing_line(report: CiReport, exit_code: int) -> str:
    """Why the step ends with this code."""
    outcome = batch_outcome(report.batch)
    if exit_code == 0:
        return MEASURED if outcome is Outcome.MEASURED and report.comparison is None else "The gate passes."
    if exit_code == 1:
        return f"The gate does not pass: {numbers.format_count(len(report.gate.reasons), 'finding')}. Exit code 1."
    if exit_code == EXIT_INTERRUPTED:
        return "The run was cancelled; its results so far are saved. Exit code 130."
    if outcome is Outcome.INCOMPLETE:
        return f"INCOMPLETE: not everything could be judged, so this is no pass. Exit code {exit_code}."
    return f"Some runs are broken and say nothing of the files they were to test. Exit code {exit_code}."
