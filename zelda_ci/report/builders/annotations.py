"""Annotations on the lines of suites, and links to GitHub."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Literal

from zelda_ci.domain import numbers
from zelda_ci.domain.ci import BaselineOrigin, BaselineState, CiReport
from zelda_ci.domain.comparison import Comparison, SuiteComparison, Verdict
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.errors import GitHubError, ZeldaError
from zelda_ci.report.builders.ci_details import FIRM
from zelda_ci.report.builders.ci_table import WORDS, by_suite
from zelda_ci.report.builders.comparison import NOISE
from zelda_ci.report.builders.correctness import run_problem
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
    found = [*_errors(report, places), *_warnings(report, places), *_notices(report.comparison, places)]
    return tuple(found)


@dataclass(frozen=True)
class _Places:
    prefix: str
    texts: Mapping[str, str]
    runs: Mapping[str, RunResult]

    def at(self, suite: str | None, said: str = "") -> tuple[str | None, int | None]:
        """File and line of what is said about a suite."""
        run = self.runs.get(suite or "")
        if run is None:
            return None, None
        file = PurePosixPath(self.prefix) / run.config.file
        if file.is_absolute() or ".." in file.parts or not str(file).isprintable():
            return None, None
        return str(file), self._line(run, said)

    def _line(self, run: RunResult, said: str) -> int:
        """The first line of the criterion that is named; suites are YAML, so what it begins with has to do."""
        criterion = next((c for c in run.config.acceptance_criteria if c in said or repr(c) in said), None)
        start = " ".join(criterion.split())[:40] if criterion else ""
        lines = self.texts.get(run.config.file, "").splitlines() if start else []
        return next((number for number, line in enumerate(lines, start=1) if start in " ".join(line.split())), 1)


def _errors(report: CiReport, places: _Places) -> Iterator[SuiteAnnotation]:
    for reason in report.gate.reasons:
        title = f"Zelda: {reason.kind}" + (f" in {visible(reason.suite, 80)}" if reason.suite else "")
        yield SuiteAnnotation("error", *places.at(reason.suite, reason.sentence), title, sentence(reason.sentence))


def _warnings(report: CiReport, places: _Places) -> Iterator[SuiteAnnotation]:
    for suite in by_suite(report.batch.runs).values():
        for run in suite.runs:
            outcome = run_outcome(run)
            found = run_problem(run, NO_FILES) if outcome >= Outcome.INCOMPLETE else None
            if found:
                title = f"Zelda: {WORDS[outcome].text} in {visible(run.suite, 80)}, trial {run.trial}"
                yield SuiteAnnotation("warning", *places.at(run.suite), title, f"{found.sentence} {found.advice}")
    for compared in report.comparison.suites if report.comparison else ():
        if compared.verdict is Verdict.INCONCLUSIVE and _is_doubtful(compared):
            title = f"Zelda: inconclusive in {visible(compared.suite, 80)}"
            yield SuiteAnnotation("warning", *places.at(compared.suite), title, _doubt(compared))


def _is_doubtful(suite: SuiteComparison) -> bool:
    """More than that single trials differ, which they always do and the first line of the report says."""
    unsure = [delta for delta in (*suite.criteria, *suite.measures) if delta.verdict is Verdict.INCONCLUSIVE]
    return bool(suite.reasons) or any(delta.reasons != (NOISE,) for delta in unsure)


def _doubt(suite: SuiteComparison) -> str:
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


WRONG_TOKEN = 401

SHORT = 7
"""Characters of a commit's name that people read."""

_NOT_PERMITTED = {"GITHUB_NOT_PERMITTED", "GITHUB_NOT_FOUND"}


def found(branch: str, commit: str, behind: int | None, age: timedelta | None) -> str:
    """The sentence for a baseline that exists."""
    facts = [f"baseline {branch}@{commit[:SHORT]}"]
    if behind:
        facts.append(f"{_counted(behind, 'commit')} behind")
    if age is not None:
        facts.append(_spelt(age))
    return ", ".join(facts)


def never_stored(branch: str, wanted: str | None) -> BaselineOrigin:
    """Every project starts here."""
    sentence = f"no baseline yet: {branch} has not stored one (push to {branch} or run the workflow there once)"
    return BaselineOrigin(state=BaselineState.NONE_YET, sentence=sentence, branch=branch, wanted=wanted)


def none_related(branch: str, wanted: str) -> BaselineOrigin:
    """The branch stored results, but for commits elsewhere in history."""
    sentence = (
        f"no baseline yet: {branch} has stored some, but none for {wanted[:SHORT]} or a commit shortly before it "
        f"(run the workflow on {branch} once)"
    )
    return BaselineOrigin(state=BaselineState.NONE_YET, sentence=sentence, branch=branch, wanted=wanted)


def all_expired(branch: str, wanted: str | None) -> BaselineOrigin:
    """GitHub deletes artifacts after some weeks."""
    sentence = f"no baseline: what {branch} stored has expired (run the workflow there again, or raise retention-days)"
    return BaselineOrigin(state=BaselineState.EXPIRED, sentence=sentence, branch=branch, wanted=wanted)


def refused(branch: str, wanted: str, commit: str, error: ZeldaError) -> BaselineOrigin:
    """There were results, and none could be used; `error` is about the nearest."""
    if error.code == "ARTIFACT_EXPIRED":
        return all_expired(branch, wanted)
    reason = f"{error.message[:1].lower()}{error.message[1:].rstrip('.')}"
    sentence = f"no usable baseline: the results of {branch}@{commit[:SHORT]} were refused: {reason}"
    return BaselineOrigin(state=BaselineState.INVALID, sentence=sentence, branch=branch, wanted=wanted)


def not_told(branch: str, wanted: str | None, error: GitHubError) -> BaselineOrigin:
    """GitHub did not tell; its own words are left out of a text that a bot will post."""
    if error.status == WRONG_TOKEN:
        sentence = "no baseline: the token is wrong or no longer valid (github-token)"
        return BaselineOrigin(state=BaselineState.NOT_PERMITTED, sentence=sentence, branch=branch, wanted=wanted)
    if error.code in _NOT_PERMITTED:
        sentence = "no baseline: the token may not read artifacts (permissions: actions: read, contents: read)"
        return BaselineOrigin(state=BaselineState.NOT_PERMITTED, sentence=sentence, branch=branch, wanted=wanted)
    limited = error.code == "GITHUB_RATE_LIMITED"
    reason = "GitHub limits how often it may be asked" if limited else "GitHub could not be asked"
    state = BaselineState.UNREACHABLE
    return BaselineOrigin(state=state, sentence=f"no baseline: {reason}", branch=branch, wanted=wanted)


def _spelt(age: timedelta) -> str:
    """In the largest unit of which there are two or more."""
    seconds = age.total_seconds()
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{_counted(int(seconds // size), unit)} old"
    return "just stored"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
