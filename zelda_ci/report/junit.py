"""Results as JUnit XML: a test suite per run, a test case per criterion, and what stands around them; pure."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC
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
from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.measures import SCORES, Measure, Metric, own_measure
from zelda_ci.domain.outcome import Outcome, correctness_outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.test_run import CommandResult, CorrectnessDetails
from zelda_ci.report.builders.comparison import NOT_PROVEN, verdict_words
from zelda_ci.report.builders.correctness import STATUS_WORDS
from zelda_ci.report.builders.gate import BECAUSE, gate_sentence
from zelda_ci.report.builders.usage import label, used
from zelda_ci.report.comment.folds import citation_place
from zelda_ci.report.text import inert, sentence, written
from zelda_ci.report.told import CiReport

A_WEEK = 604_800
MEASURED = "measured: the suite has no criteria and no commands, so that nothing could pass or fail"
# Cases of a run that are named alike in every suite.
SESSION, BUILD, TESTS, COVERAGE = "session", "build", "tests", "coverage"
# Characters of one text.
MAX_TEXT_LENGTH = 20_000

# What XML 1.0 cannot hold, or advises against: controls, lone surrogates, characters that are none.
NOT_XML = re.compile("[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")


def render_junit(report: CiReport) -> str:
    """The whole file, with its declaration; always well-formed, whatever the results hold."""
    suites = [_suite(run, report) for run in report.batch.runs]
    if refused := [reason for reason in report.gate.reasons if isinstance(reason, NotLoaded)]:
        suites.append(TestSuite("settings and plugins", list(map(_refused, refused))))
    if report.comparison:
        suites.append(_comparison(report))
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
    several = run.trial > 1 or sum(other.suite == run.suite for other in report.batch.runs) > 1
    name = f"{run.suite} (trial {run.trial})" if several else run.suite
    return TestSuite(
        name,
        [*_marked(run, report.gate)],
        timestamp=f"{run.started_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}",
        package=run.config.file,
        properties=dict(_properties(run, report)),
    )


def _refused(reason: NotLoaded) -> TestCase:
    case = TestCase(reason.file, classname="settings files")
    case.add_failure_info(sentence(gate_sentence(reason)), reason.effect, "notLoaded")
    return case


def _properties(run: RunResult, report: CiReport) -> Iterator[tuple[str, str]]:
    yield "runId", run.run_id
    yield "trial", str(run.trial)
    yield "status", run.status.value
    commit = report.tested or (run.source.commit if run.source else None)
    if commit:
        yield "commit", commit
    for metric, result in sorted(run.evaluations.items()):
        spec = own_measure(metric)
        if (number := spec.number(result)) is not None:
            yield str(metric), written(spec.unit.write, number)
    if use := used(run):
        yield "costUsd", f"{use.cost_usd:.6f}"
        yield "tokens", str(use.tokens.total)
    if run.judge:
        yield "judgeCostUsd", f"{run.judge.cost_usd:.6f}"


def _marked(run: RunResult, gate: GateResult) -> Iterator[TestCase]:
    """No case is green of a run in which nothing could fail, and none is red for what the gate does not count."""
    measured = Outcome.MEASURED is run_outcome(run) is correctness_outcome(run)
    uncounted = _uncounted(run, gate)
    for case in _cases(run):
        if measured and not (case.is_failure() or case.is_error() or case.is_skipped()):
            case.add_skipped_info(MEASURED)
        if case.is_failure() and case.name in uncounted:
            _skip_failure(case, uncounted[case.name])
        yield case


def _uncounted(run: RunResult, gate: GateResult) -> dict[str, str]:
    """By name, the cases of a run whose failure the gate lists and does not count, and why it does not."""
    findings = [(each.reason, BECAUSE[each.because]) for each in gate.uncounted]
    findings += [(each.reason, f"accepted by {each.acceptance.by}") for each in gate.accepted]
    uncounted = {name: why for reason, why in findings for name in _cases_of(reason, run)}
    # What is proven to be worse than on the base is counted, although it fails there, too.
    proven = {name for reason in gate.reasons for name in _cases_of(reason, run)}
    return {name: why for name, why in uncounted.items() if name not in proven}


def _cases_of(reason: GateReason, run: RunResult) -> list[str]:
    """The names of the cases of a run that a finding is about."""
    if reason.suite != run.suite:
        return []
    match reason:
        case CriterionFailed(criterion=name) | Regression(delta=CriterionDelta(criterion=name)):
            return [shown for known, shown in _criterion_names(run).items() if known == name]
        case BelowMinimum(measure=Measure.REQUIREMENT_FULFILLMENT):
            return [*_criterion_names(run).values()]
        case EndedAtLimit(status=run.status):
            return [SESSION]
        case CommandsFailed():
            return [BUILD, TESTS, COVERAGE, _score_name(Metric.FUNCTIONAL_CORRECTNESS)]
        case _:
            return []


def _skip_failure(case: TestCase, why: str) -> None:
    """As test runners report an expected failure: not green, since it fails, and not red, since nobody is to blame."""
    (failure,) = case.failures
    case.failures = []
    case.add_skipped_info(sentence(f"{why}: {failure['message']}"), failure["output"])


def _cases(run: RunResult) -> Iterator[TestCase]:
    yield _session(run)
    details = run.details(FulfillmentDetails)
    for number, judged in enumerate(details.criteria if details else (), start=1):
        yield _criterion(run, number, judged)
    yield from _commands(run)
    for metric in Metric:
        if result := run.evaluations.get(metric):
            yield _metric(run, result)


def _case(run: RunResult, name: str, seconds: float | None = None, output: str = "") -> TestCase:
    elapsed = seconds if seconds is not None and 0 <= seconds <= A_WEEK else None
    return TestCase(name, classname=run.suite or "unknown", elapsed_sec=elapsed, stdout=output or None)


def _session(run: RunResult) -> TestCase:
    case = _case(run, SESSION, run.phase_seconds.get("session"))
    message = run.failure.message if run.failure else ""
    why = message.strip() or f"The session {STATUS_WORDS[run.status]}."
    match run.status:
        case SessionStatus.COMPLETED:
            pass
        case SessionStatus.INTERRUPTED:
            case.add_skipped_info(why)
        case SessionStatus.FAILED:
            case.add_error_info(sentence(why), why, run.failure.code if run.failure else None)
        case _:
            case.add_failure_info(sentence(why), why, run.status.value)
    return case


def _criterion_names(run: RunResult) -> dict[str, str]:
    """By the name under which the gate knows it, the case of each criterion."""
    details = run.details(FulfillmentDetails)
    criteria = details.by_name.items() if details else ()
    return {name: _criterion_name(number, judged) for number, (name, judged) in enumerate(criteria, start=1)}


def _criterion_name(number: int, judged: CriterionJudgement) -> str:
    return f"{number}. {sentence(judged.criterion)}"


def _criterion(run: RunResult, number: int, judged: CriterionJudgement) -> TestCase:
    text = "\n".join([judged.reasoning, *(citation_place(cited) for cited in judged.evidence)])
    passed = judged.verdict is CriterionVerdict.PASS
    case = _case(run, _criterion_name(number, judged), output=text if passed else "")
    match judged.verdict:
        case CriterionVerdict.PASS:
            pass
        case CriterionVerdict.FAIL:
            case.add_failure_info(sentence(judged.reasoning) or "The criterion is not met.", text, "criterion")
        case CriterionVerdict.UNDECIDED if run.config.undecided == "ignore":
            case.add_skipped_info(sentence(f"undecided: {judged.reasoning}"))
        case CriterionVerdict.UNDECIDED:
            case.add_failure_info(sentence(f"undecided: {judged.reasoning}"), text, "undecided")
        case CriterionVerdict.NOT_JUDGED:
            case.add_error_info(sentence(f"not judged: {judged.reasoning}"), text, "notJudged")
    return case


def _commands(run: RunResult) -> Iterator[TestCase]:
    if run.setup:
        yield _command(run, "setup", run.setup)
    details = run.details(CorrectnessDetails)
    if details is None:
        return
    if details.build:
        yield _command(run, BUILD, details.build)
    if details.test:
        yield _tests(run, details.test, details)
    elif "tests" in details.parts:
        case = _case(run, TESTS)
        case.add_skipped_info("not run: the build failed")
        yield case
    if details.coverage or "coverage" in details.parts:
        yield _coverage(run, details)


def _command(run: RunResult, name: str, command: CommandResult) -> TestCase:
    case = _case(run, name, command.seconds, command.output)
    if command.exit_code != 0:
        how = "timed out" if command.exit_code is None else f"exit code {command.exit_code}"
        case.add_failure_info(sentence(f"{how}: {command.command}"), command.output, "command")
    return case


def _tests(run: RunResult, command: CommandResult, details: CorrectnessDetails) -> TestCase:
    case = _command(run, TESTS, command)
    tests = details.tests
    if tests and tests.recognised and (tests.failed + tests.errored or not tests.ran):
        counts = f"{tests.failed} failed, {tests.errored} errored, {tests.passed} passed, {tests.skipped} skipped"
        case.add_failure_info(counts, "\n".join(tests.failures) or command.output, "tests")
    return case


def _coverage(run: RunResult, details: CorrectnessDetails) -> TestCase:
    lines = details.coverage.lines if details.coverage else None
    threshold = details.coverage_threshold
    covered = f"{lines:g}% of lines" if lines is not None else ""
    case = _case(run, COVERAGE, output=covered)
    if threshold is not None and (lines is None or lines < threshold):
        case.add_failure_info(
            f"{covered or 'not known'}, at least {threshold:g}% of lines required", failure_type="coverage"
        )
    elif lines is None:
        case.add_skipped_info("not known")
    return case


def _score_name(metric: Metric) -> str:
    return f"score: {label(metric)}"


def _metric(run: RunResult, result: EvalResult) -> TestCase:
    spec = own_measure(result.metric)
    number = spec.number(result)
    value = "" if number is None else written(spec.unit.write, number)
    text = " ".join(filter(None, (value and f"{value}{' of 100' * (result.metric in SCORES)}.", result.reasoning)))
    case = _case(run, _score_name(result.metric), output=text if value else "")
    if result.failed:
        case.add_error_info(sentence(text) or "not evaluated", text, "evaluation")
    elif result.metric is Metric.FUNCTIONAL_CORRECTNESS and correctness_outcome(run) is Outcome.FAILED:
        case.add_failure_info(sentence(text) or "not correct", text, "correctness")
    elif not value:
        case.add_skipped_info(sentence(text) or "unscored")
    return case


def _comparison(report: CiReport) -> TestSuite:
    """A case per suite: did it regress?"""
    compared = report.comparison.suites if report.comparison else ()
    properties = {"baseline": report.baseline.commit} if report.baseline.commit else None
    return TestSuite(
        "comparison with the baseline",
        [_compared(suite, report) for suite in compared],
        timestamp=f"{report.batch.started_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}",
        properties=properties,
    )


def _compared(suite: SuiteComparison, report: CiReport) -> TestCase:
    case = TestCase(suite.suite, classname="comparison")
    reasons = _regressions(suite.suite, report)
    if reasons:
        case.add_failure_info(sentence(reasons[0]), "\n".join(reasons), "regression")
    elif suite.verdict is Verdict.REGRESSED:
        accepted = [each.acceptance.by for each in report.gate.accepted if each.reason.suite == suite.suite]
        by = f"accepted by {', '.join(dict.fromkeys(accepted))}" if accepted else "the gate does not count it"
        case.add_skipped_info(sentence(f"{by}: {verdict_words(suite.verdict)}"))
    elif suite.verdict in {Verdict.CHANGED, Verdict.INCONCLUSIVE, Verdict.NEW, Verdict.REMOVED}:
        why = "; ".join(suite.reasons or (NOT_PROVEN,) * (suite.verdict is Verdict.CHANGED))
        words = verdict_words(suite.verdict)
        case.add_skipped_info(sentence(f"{words}: {why}" if why else words))
    return case


def _regressions(suite: str, report: CiReport) -> Sequence[str]:
    return [
        gate_sentence(reason) for reason in report.gate.reasons if (reason.kind, reason.suite) == ("regression", suite)
    ]
