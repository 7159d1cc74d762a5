"""What programs read of a `zelda run`: JSON, JUnit XML and annotations, of one project or of several."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeVar

from zelda_ci.compare.comparison import gravest
from zelda_ci.compare.gate import joined
from zelda_ci.config.project import LoadedProject
from zelda_ci.domain.base import Record
from zelda_ci.domain.ci import BaselineOrigin, BaselineState, CiReport, PullRequestChanges, SteeringChange
from zelda_ci.domain.comparison import Comparison, Counts, GateResult
from zelda_ci.domain.run import BatchResult
from zelda_ci.files import untrusted
from zelda_ci.github.workflow_commands import Annotation
from zelda_ci.imports import one_at_a_time
from zelda_ci.pipeline.comparing import Compared
from zelda_ci.pipeline.html_report import report_alone
from zelda_ci.report.builders.annotations import annotations
from zelda_ci.report.text import json_text

MAX_SUITE_BYTES = 1_000_000

OfSuite = TypeVar("OfSuite", bound=Record)


def for_programs(kind: str, report: CiReport) -> str:
    """The whole of `--reporter json` or `junit`."""
    if kind == "json":
        return json_text(report.batch.model_dump_json(by_alias=True, exclude_none=True, indent=2)) + "\n"
    with one_at_a_time("zelda_ci.report.junit"):
        from zelda_ci.report.junit import render_junit  # noqa: PLC0415 - needed by few

    return render_junit(report)


def as_report(
    batch: BatchResult, compared: Compared | None = None, subject: str = "", changes: Sequence[SteeringChange] = ()
) -> CiReport:
    """Of runs that are compared with those of another commit, or with nothing."""
    if compared is None:
        return report_alone(batch, subject)
    commit = batch.base.commit if batch.base else None
    origin = BaselineOrigin(state=BaselineState.FOUND, sentence="", commit=commit)
    changed = PullRequestChanges(steering=tuple(changes))
    return CiReport(batch, compared.gate, origin, compared.comparison, subject=subject, changes=changed)


def of_projects(reports: Mapping[str, CiReport], whole: BatchResult) -> CiReport:
    """Of several projects, by name.

    Args:
        reports: What is told of each.
        whole: Their runs, told apart already.
    """
    compared = {name: report.comparison for name, report in reports.items() if report.comparison}
    origin = next((report.baseline for report in reports.values() if report.comparison), as_report(whole).baseline)
    comparison = _of_all(compared) if compared else None
    gates = joined(*(_qualified_gate(report.gate, name) for name, report in reports.items()))
    return CiReport(whole, gates, origin, comparison)


def _of_all(compared: Mapping[str, Comparison]) -> Comparison:
    """Each project was compared by itself: what counts in each adds up, and so does the chance of a false alarm."""
    each = list(compared.values())
    counts = {name: sum(getattr(one.counts, name) for one in each) for name in Counts.model_fields}
    family = each[0].family.replace(
        hypotheses=sum(one.family.hypotheses for one in each),
        alpha=min(1.0, sum(one.family.alpha for one in each)),
    )
    return Comparison(
        verdict=gravest([one.verdict for one in each]),
        counts=Counts(**counts),
        single_trial=any(one.single_trial for one in each),
        mixed=any(one.mixed for one in each),
        family=family,
        # What is said over all suites of a project is in no file.
        suites=tuple(qualified(suite, name) for name, comparison in compared.items() for suite in comparison.suites),
    )


def qualified(of_suite: OfSuite, project: str) -> OfSuite:
    """With the project's name before the suite's."""
    return of_suite.replace(suite=(PurePosixPath(project) / str(getattr(of_suite, "suite", ""))).as_posix())


def _qualified_gate(found: GateResult, project: str) -> GateResult:
    reasons = tuple(reason if reason.suite is None else qualified(reason, project) for reason in found.reasons)
    uncounted = tuple(each.replace(reason=qualified(each.reason, project)) for each in found.uncounted)
    return GateResult(reasons=reasons, uncounted=uncounted)


def annotations_of(loaded: LoadedProject, report: CiReport) -> Iterator[Annotation]:
    """On the lines of suites, whose files the runner knows by their paths in the repository."""
    top = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    prefix = loaded.root.relative_to(top).as_posix() if loaded.root.is_relative_to(top) else ""
    texts = {suite.resolved.file: _text(loaded.root / suite.resolved.file) for suite in loaded.suites}
    for remark in annotations(report, prefix=prefix, texts=texts):
        yield Annotation(remark.level, remark.message, remark.title, remark.file or "", remark.line)


def _text(path: Path) -> str:
    try:
        return untrusted.read(path, MAX_SUITE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
