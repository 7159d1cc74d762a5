"""Results as JUnit XML: a test suite per run, a test case per criterion, and what stands around them; pure."""

import re
from collections.abc import Iterator
from datetime import UTC
from typing import Literal, NamedTuple
from xml.etree import ElementTree as ET

from junit_xml import TestCase, TestSuite

from zelda_ci.domain.comparison import (
    BelowMinimum,
    CommandsFailed,
    CriterionDelta,
    CriterionFailed,
    EndedAtLimit,
    GateReason,
    GateResult,
    NotLoaded,
    Regression,
    SuiteComparison,
    Verdict,
)
from zelda_ci.domain.details import CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.measures import SCORES, Measure, Metric, own_measure
from zelda_ci.domain.outcome import Outcome, correctness_outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.test_run import CommandResult, CorrectnessDetails
from zelda_ci.report.builders.comparison import NOT_PROVEN, verdict_words
from zelda_ci.report.builders.correctness import command_words
from zelda_ci.report.builders.gate import BECAUSE, gate_sentence
from zelda_ci.report.builders.usage import label, used
from zelda_ci.report.comment.folds import citation_place
from zelda_ci.report.text import inert, sentence, written
from zelda_ci.report.told import CiReport
from zelda_ci.report.words import ENDINGS

A_WEEK = 604_800
MEASURED = "measured: the suite has no criteria and no commands, so that nothing could pass or fail"
# Cases of a run that are named alike in every suite.
SESSION, BUILD, TESTS, COVERAGE = "session", "build", "tests", "coverage"
CORRECTNESS = f"score: {label(Metric.FUNCTIONAL_CORRECTNESS)}"
# Characters of one text.
MAX_TEXT_LENGTH = 20_000

# What XML 1.0 cannot hold, or advises against: controls, lone surrogates, characters that are none.
NOT_XML = re.compile("[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")


Tag = Literal["failure", "error", "skipped"]


class Ending(NamedTuple):
    """Why a case did not pass."""

    tag: Tag
    why: str
    output: str = ""
    kind: str | None = None


class Case(NamedTuple):
    """A test case of a run."""

    name: str
    ending: Ending | None = None
    output: str = ""
    """What a case that passes has to show."""
    seconds: float | None = None

    def written(self, group: str) -> TestCase:
        """The case for the file."""
        known = self.seconds is not None and 0 <= self.seconds <= A_WEEK
        case = TestCase(self.name, group, self.seconds if known else None, self.output or None)
        if self.ending and self.ending.tag == "skipped":
            case.add_skipped_info(sentence(self.ending.why), self.ending.output)
        elif self.ending:
            add = case.add_error_info if self.ending.tag == "error" else case.add_failure_info
            add(sentence(self.ending.why), self.ending.output, self.ending.kind)
        return case


def render_junit(report: CiReport) -> str:
    """The whole file, with its declaration; always well-formed, whatever the results hold."""
    suites = [_suite(run, report) for run in report.batch.runs]
    if refused := [reason for reason in report.gate.reasons if isinstance(reason, NotLoaded)]:
        cases = [Case(it.file, Ending("failure", gate_sentence(it), it.effect, "notLoaded")) for it in refused]
        suites.append(TestSuite("settings and plugins", [case.written("settings files") for case in cases]))
    if report.comparison:
        properties = {"baseline": report.baseline.commit} if report.baseline.commit else None
        cases = [_compared(suite, report.gate) for suite in report.comparison.suites]
        written_cases = [case.written("comparison") for case in cases]
        when = f"{report.batch.started_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
        suites.append(TestSuite("comparison with the baseline", written_cases, timestamp=when, properties=properties))
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
    cases = []
    for case in _cases(run):
        ending = case.ending
        if measured and ending is None:
            ending = Ending("skipped", MEASURED)
        elif ending and ending.tag == "failure" and case.name in uncounted:
            # As test runners report an expected failure.
            ending = Ending("skipped", f"{uncounted[case.name]}: {ending.why}", ending.output)
        cases.append(case._replace(ending=ending).written(run.suite or "unknown"))
    several = run.trial > 1 or sum(other.suite == run.suite for other in report.batch.runs) > 1
    return TestSuite(
        f"{run.suite} (trial {run.trial})" if several else run.suite,
        cases,
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
    criteria = [
        (name, _criterion_name(number, judged.criterion))
        for number, (name, judged) in enumerate(details.by_name.items() if details else (), start=1)
    ]
    match reason:
        case _ if reason.suite != run.suite:
            return []
        case CriterionFailed(criterion=name) | Regression(delta=CriterionDelta(criterion=name)):
            return [shown for known, shown in criteria if known == name]
        case BelowMinimum(measure=Measure.REQUIREMENT_FULFILLMENT):
            return [shown for _, shown in criteria]
        case EndedAtLimit(status=run.status):
            return [SESSION]
        case CommandsFailed():
            return [BUILD, TESTS, COVERAGE, CORRECTNESS]
        case _:
            return []


def _criterion_name(number: int, criterion: str) -> str:
    return f"{number}. {sentence(criterion)}"


def _cases(run: RunResult) -> Iterator[Case]:
    yield Case(SESSION, _session_ending(run), seconds=run.phase_seconds.get("session"))
    criteria = run.details(FulfillmentDetails)
    for number, judged in enumerate(criteria.criteria if criteria else (), start=1):
        text = "\n".join([judged.reasoning, *map(citation_place, judged.evidence)])
        why, ending = judged.reasoning, None
        match judged.verdict:
            case CriterionVerdict.PASS:
                pass
            case CriterionVerdict.FAIL:
                ending = Ending("failure", why or "The criterion is not met.", text, "criterion")
            case CriterionVerdict.UNDECIDED if run.config.undecided == "ignore":
                ending = Ending("skipped", f"undecided: {why}")
            case CriterionVerdict.UNDECIDED:
                ending = Ending("failure", f"undecided: {why}", text, "undecided")
            case CriterionVerdict.NOT_JUDGED:
                ending = Ending("error", f"not judged: {why}", text, "notJudged")
        yield Case(_criterion_name(number, judged.criterion), ending, "" if ending else text)
    if details := run.details(CorrectnessDetails):
        yield from _commands(details)
    # Scores are properties: only one that was not computed, or by which a run fails, is a case.
    for metric in Metric:
        result = run.evaluations.get(metric)
        failed = metric is Metric.FUNCTIONAL_CORRECTNESS and correctness_outcome(run) is Outcome.FAILED
        if result and (result.failed or failed):
            score = own_measure(metric).number(result)
            value = "" if score is None else written(own_measure(metric).unit.write, score)
            of = " of 100" * (metric in SCORES)
            said = " ".join(filter(None, (value and f"{value}{of}.", result.reasoning))) or "not evaluated"
            broken, wrong = Ending("error", said, said, "evaluation"), Ending("failure", said, said, "correctness")
            yield Case(f"score: {label(metric)}", broken if result.failed else wrong)


def _session_ending(run: RunResult) -> Ending | None:
    why = (run.failure.message.strip() if run.failure else "") or f"The session {ENDINGS[run.status]}."
    if run.status is SessionStatus.FAILED:
        return Ending("error", why, why, run.failure.code if run.failure else None)
    tag: Tag = "skipped" if run.status is SessionStatus.INTERRUPTED else "failure"
    return None if run.status is SessionStatus.COMPLETED else Ending(tag, why, why, run.status.value)


def _commands(details: CorrectnessDetails) -> Iterator[Case]:
    tests, test, build = details.tests, details.test, details.build
    if build:
        yield Case(BUILD, _command_ending(build), build.output, build.seconds)
    if test:
        ending = _command_ending(test)
        if tests and tests.recognised and (tests.failed + tests.errored or not tests.ran):
            counts = f"{tests.failed} failed, {tests.errored} errored, {tests.passed} passed, {tests.skipped} skipped"
            ending = Ending("failure", counts, "\n".join(tests.failures) or test.output, "tests")
        yield Case(TESTS, ending, test.output, test.seconds)
    elif "tests" in details.parts:
        yield Case(TESTS, Ending("skipped", "not run: the build failed"))
    if details.coverage or "coverage" in details.parts:
        lines, least = details.coverage.lines if details.coverage else None, details.coverage_threshold
        covered = f"{lines:g}% of lines" if lines is not None else "not known"
        short = f"{covered}, at least {least:g}% of lines required"
        if least is not None and (lines is None or lines < least):
            yield Case(COVERAGE, Ending("failure", short, kind="coverage"))
        else:
            yield Case(COVERAGE, Ending("skipped", covered) if lines is None else None, covered)


def _command_ending(command: CommandResult) -> Ending | None:
    why = f"{command_words(command)}: {command.command}"
    return Ending("failure", why, command.output, "command") if command.exit_code != 0 else None


def _compared(suite: SuiteComparison, gate: GateResult) -> Case:
    """Whether a suite regressed."""
    reasons = [gate_sentence(it) for it in gate.reasons if isinstance(it, Regression) and it.suite == suite.suite]
    words, ending = verdict_words(suite.verdict), None
    if reasons:
        ending = Ending("failure", reasons[0], "\n".join(reasons), "regression")
    elif suite.verdict is Verdict.REGRESSED:
        accepted = [each.acceptance.by for each in gate.accepted if each.reason.suite == suite.suite]
        by = f"accepted by {', '.join(dict.fromkeys(accepted))}" if accepted else "the gate does not count it"
        ending = Ending("skipped", f"{by}: {words}")
    elif suite.verdict not in {Verdict.IMPROVED, Verdict.UNCHANGED}:
        why = "; ".join(suite.reasons or (NOT_PROVEN,) * (suite.verdict is Verdict.CHANGED))
        ending = Ending("skipped", f"{words}: {why}" if why else words)
    return Case(suite.suite, ending)
