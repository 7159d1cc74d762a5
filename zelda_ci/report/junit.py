"""Results as JUnit XML: a test suite per run, a test case per criterion, and what stands around them; pure."""

import re
from collections.abc import Iterator
from datetime import UTC
from typing import Literal, NamedTuple
from xml.etree import ElementTree as ET

from junit_xml import TestCase, TestSuite

from zelda_ci.domain import comparison
from zelda_ci.domain.comparison import GateReason, GateResult, Refusal, Regression, SuiteComparison, Verdict
from zelda_ci.domain.details import CommandResult, CorrectnessDetails, CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.measures import Measure, Metric, own_measure
from zelda_ci.domain.outcome import Outcome, correctness_outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.report.builders.comparison import BECAUSE, gate_sentence, verdict_words
from zelda_ci.report.builders.run import command_words, used
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.comment.view import citation_place
from zelda_ci.report.model import ENDINGS
from zelda_ci.report.text import inert, sentence, written

A_WEEK = 604_800
MEASURED = "measured: the suite has no criteria and no commands, so that nothing could pass or fail"
# Cases of a run that are named alike in every suite.
SESSION, BUILD, TESTS, COVERAGE = "session", "build", "tests", "coverage"
CORRECTNESS = f"score: {own_measure(Metric.FUNCTIONAL_CORRECTNESS).heading}"
# Characters of one text.
MAX_TEXT_LENGTH = 20_000

# What XML 1.0 cannot hold, or advises against: controls, lone surrogates, characters that are none.
NOT_XML = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")

Tag = Literal["", "failure", "error", "skipped"]


class Case(NamedTuple):
    """A test case of a run; without a tag it passed."""

    name: str
    tag: Tag = ""
    why: str = ""
    output: str = ""
    kind: str | None = None
    seconds: float | None = None

    def written(self, group: str) -> TestCase:
        """The case for the file."""
        seconds = self.seconds if self.seconds is not None and 0 <= self.seconds <= A_WEEK else None
        case = TestCase(self.name, group, seconds, "" if self.tag else self.output)
        if self.tag == "skipped":
            case.add_skipped_info(sentence(self.why), self.output)
        elif self.tag:
            add = case.add_error_info if self.tag == "error" else case.add_failure_info
            add(sentence(self.why), self.output, self.kind)
        return case


def render_junit(report: CiReport) -> str:
    """The whole file, with its declaration; always well-formed, whatever the results hold."""
    suites = [_suite(run, report) for run in report.batch.runs]
    if refused := [reason for reason in report.gate.reasons if isinstance(reason, Refusal)]:
        about = [(getattr(it, "file", "always in context"), it, getattr(it, "effect", "")) for it in refused]
        cases = [Case(name, "failure", gate_sentence(it), effect, it.kind) for name, it, effect in about]
        suites.append(TestSuite("settings and plugins", [case.written("settings files") for case in cases]))
    if report.comparison:
        properties = {"baseline": report.baseline.commit} if report.baseline.commit else None
        compared = [_compared(suite, report.gate).written("comparison") for suite in report.comparison.suites]
        when = f"{report.batch.started_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
        suites.append(TestSuite("comparison with the baseline", compared, timestamp=when, properties=properties))
    root = ET.Element("testsuites", {"name": clean(report.title).strip() or "Zelda"})
    root.extend(_element(suite) for suite in suites)
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in root):.3f}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def clean(text: str) -> str:
    """Text that XML can hold and in which nothing acts; a long middle is left out."""
    if len(text) > MAX_TEXT_LENGTH:
        text = f"{text[: MAX_TEXT_LENGTH // 2]}\n[...]\n{text[-MAX_TEXT_LENGTH // 2 :]}"
    return NOT_XML.sub("\ufffd", inert(text.replace("\r\n", "\n").replace("\r", "\n")))


def _element(suite: TestSuite) -> ET.Element:
    """Without the count of disabled tests, which the stricter schemas do not know, and with every text cleaned."""
    tree: ET.Element = suite.build_xml_doc()
    tree.attrib.pop("disabled", None)
    tree.set("time", f"{float(tree.get('time', '0')):.3f}")
    for element in tree.iter():
        element.text = element.text and clean(element.text)
        for key, value in element.items():
            element.set(key, clean(value).strip() or "unknown")
    return tree


def _suite(run: RunResult, report: CiReport) -> TestSuite:
    """No case is green of a run in which nothing could fail, and none is red for what the gate does not count."""
    measured = Outcome.MEASURED is run_outcome(run) is correctness_outcome(run)
    uncounted = _uncounted(run, report.gate)

    def shown(case: Case) -> Case:
        if measured and not case.tag:
            return case._replace(tag="skipped", why=MEASURED, output="")
        # As test runners report an expected failure.
        why = uncounted.get(case.name) if case.tag == "failure" else None
        return case._replace(tag="skipped", why=f"{why}: {case.why}") if why else case

    several = run.trial > 1 or sum(other.suite == run.suite for other in report.batch.runs) > 1
    return TestSuite(
        f"{run.suite} (trial {run.trial})" if several else run.suite,
        [shown(case).written(run.suite or "unknown") for case in _cases(run)],
        timestamp=f"{run.started_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}",
        package=run.config.file,
        properties=dict(_properties(run, report)),
    )


def _properties(run: RunResult, report: CiReport) -> Iterator[tuple[str, str]]:
    yield "runId", run.run_id
    yield "trial", str(run.trial)
    yield "status", run.status.value
    if commit := report.tested or (run.source.commit if run.source else None):
        yield "commit", commit
    for metric, result in sorted(run.evaluations.items()):
        spec = own_measure(metric)
        if (number := spec.number(result)) is not None:
            yield str(metric), written(spec.unit.write, number)
    if run.setup:
        yield "setup", f"{sentence(run.setup.command)}: {command_words(run.setup)}"
    if use := used(run):
        yield "costUsd", f"{use.cost_usd:.6f}"
        yield "tokens", str(use.usage.total)
    if run.judge:
        yield "judgeCostUsd", f"{run.judge.cost_usd:.6f}"


def _uncounted(run: RunResult, gate: GateResult) -> dict[str, str]:
    """By name, the cases of a run whose failure the gate lists and does not count, and why it does not."""
    findings = [(each.reason, BECAUSE[each.because]) for each in gate.uncounted]
    findings += [(each.reason, f"accepted by {each.acceptance.by}") for each in gate.accepted]
    uncounted = {name: why for reason, why in findings for name in _names(reason, run)}
    # What is proven to be worse than on the base is counted, although it fails there, too.
    proven = {name for reason in gate.reasons for name in _names(reason, run)}
    return {name: why for name, why in uncounted.items() if name not in proven}


def _names(reason: GateReason, run: RunResult) -> list[str]:
    """The cases of a run that a finding is about."""
    details = run.details(FulfillmentDetails)
    judged = enumerate(details.by_name.items() if details else (), 1)
    criteria = {name: _criterion_name(number, one.criterion) for number, (name, one) in judged}
    match reason:
        case _ if reason.suite != run.suite:
            return []
        case comparison.CriterionFailed(criterion=name) | Regression(delta=comparison.CriterionDelta(criterion=name)):
            return [criteria[name]] if name in criteria else []
        case comparison.BelowMinimum(measure=Measure.REQUIREMENT_FULFILLMENT):
            return [*criteria.values()]
        case comparison.EndedAtLimit(status=run.status):
            return [SESSION]
        case comparison.CommandsFailed():
            return [BUILD, TESTS, COVERAGE, CORRECTNESS]
        case _:
            return []


def _criterion_name(number: int, criterion: str) -> str:
    return f"{number}. {sentence(criterion)}"


JUDGED: dict[CriterionVerdict, tuple[Tag, str, str]] = {
    CriterionVerdict.PASS: ("", "", ""),
    CriterionVerdict.FAIL: ("failure", "", "criterion"),
    CriterionVerdict.UNDECIDED: ("failure", "undecided: ", "undecided"),
    CriterionVerdict.NOT_JUDGED: ("error", "not judged: ", "notJudged"),
}


def _cases(run: RunResult) -> Iterator[Case]:
    yield _session(run)
    criteria = run.details(FulfillmentDetails)
    for number, judged in enumerate(criteria.criteria if criteria else (), start=1):
        tag, words, kind = JUDGED[judged.verdict]
        if judged.verdict is CriterionVerdict.UNDECIDED and run.config.undecided == "ignore":
            tag = "skipped"
        why = f"{words}{judged.reasoning}" or "The criterion is not met."
        text = "\n".join([judged.reasoning, *map(citation_place, judged.evidence)])
        yield Case(_criterion_name(number, judged.criterion), tag, why, text, kind)
    if details := run.details(CorrectnessDetails):
        yield from _commands(details)
    # Scores are properties: only one that was not computed, or by which a run fails, is a case.
    for metric, result in sorted(run.evaluations.items()):
        failed = metric is Metric.FUNCTIONAL_CORRECTNESS and correctness_outcome(run) is Outcome.FAILED
        if result.failed or failed:
            value = "" if result.score is None else f"{result.score:.1f} of 100. "
            said = f"{value}{result.reasoning}" or "not evaluated"
            tag, kind = "error" if result.failed else "failure", "evaluation" if result.failed else "correctness"
            yield Case(f"score: {own_measure(metric).heading}", tag, said, said, kind)


def _session(run: RunResult) -> Case:
    why = (run.failure.message.strip() if run.failure else "") or f"The session {ENDINGS[run.status]}."
    kind = run.failure.code if run.failure and run.status is SessionStatus.FAILED else run.status.value
    tags: dict[SessionStatus, Tag] = {SessionStatus.FAILED: "error", SessionStatus.INTERRUPTED: "skipped"}
    tag: Tag = "" if run.status is SessionStatus.COMPLETED else tags.get(run.status, "failure")
    return Case(SESSION, tag, why, why if tag else "", kind, run.phase_seconds.get("session"))


def _commands(details: CorrectnessDetails) -> Iterator[Case]:
    tests, test = details.tests, details.test
    if details.build:
        yield _command(BUILD, details.build)
    if test:
        case = _command(TESTS, test)
        if tests and tests.recognised and (tests.failed + tests.errored or not tests.ran):
            counts = f"{tests.failed} failed, {tests.errored} errored, {tests.passed} passed, {tests.skipped} skipped"
            names = "\n".join(tests.failures) or test.output
            case = Case(TESTS, "failure", counts, names, "tests", test.seconds)
        yield case
    elif "tests" in details.parts:
        yield Case(TESTS, "skipped", "not run: the build failed")
    if details.coverage or "coverage" in details.parts:
        lines, least = details.coverage.lines if details.coverage else None, details.coverage_threshold
        covered = f"{lines:g}% of lines" if lines is not None else "not known"
        if least is not None and (lines is None or lines < least):
            short = f"{covered}, at least {least:g}% of lines required"
            yield Case(COVERAGE, "failure", short, kind="coverage")
        else:
            yield Case(COVERAGE, "skipped" if lines is None else "", covered, covered)


def _command(name: str, command: CommandResult) -> Case:
    why = f"{command_words(command)}: {command.command}"
    return Case(name, "failure" if command.exit_code != 0 else "", why, command.output, "command", command.seconds)


def _compared(suite: SuiteComparison, gate: GateResult) -> Case:
    """Whether a suite regressed."""
    reasons = [gate_sentence(it) for it in gate.reasons if isinstance(it, Regression) and it.suite == suite.suite]
    words = verdict_words(suite.verdict)
    if reasons:
        return Case(suite.suite, "failure", reasons[0], "\n".join(reasons), "regression")
    if suite.verdict is Verdict.REGRESSED:
        accepted = [each.acceptance.by for each in gate.accepted if each.reason.suite == suite.suite]
        by = f"accepted by {', '.join(dict.fromkeys(accepted))}" if accepted else "the gate does not count it"
        return Case(suite.suite, "skipped", f"{by}: {words}")
    if suite.verdict in {Verdict.IMPROVED, Verdict.UNCHANGED}:
        return Case(suite.suite)
    why = "; ".join(suite.reasons or (comparison.ONE_TRIAL_PROVES_NOTHING,) * (suite.verdict is Verdict.CHANGED))
    return Case(suite.suite, "skipped", f"{words}: {why}" if why else words)
