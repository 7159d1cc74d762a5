"""All suites together: each measure over the suites that can be compared."""

from collections.abc import Mapping, Sequence

from zelda_ci.compare.answers import Answer, Key
from zelda_ci.compare.deltas import describe
from zelda_ci.compare.questions import Question, Sample, ask_overall
from zelda_ci.compare.scales import SCALES
from zelda_ci.compare.suites import SuiteQuestions
from zelda_ci.domain.comparison import Measure, MeasureDelta, SuiteComparison, Verdict


def ask_all(suites: Sequence[SuiteQuestions]) -> dict[Key, Question]:
    """One question per measure that at least two suites can answer; a single suite speaks for itself."""
    questions = {}
    for measure in Measure:
        samples = _answerable(measure, suites)
        if len(samples) > 1:
            questions[Key(None, measure.value)] = ask_overall(SCALES[measure], samples)
    return questions


def conclude_overall(
    questions: Mapping[Key, Question],
    answers: Mapping[Key, Answer],
    suites: Sequence[SuiteComparison],
) -> tuple[MeasureDelta, ...]:
    """The overall rows, in the order of the measures."""
    rows = (_tested(measure, questions, answers) or _only(measure, suites) for measure in Measure)
    return tuple(row for row in rows if row)


def _answerable(measure: Measure, suites: Sequence[SuiteQuestions]) -> list[Sample]:
    samples = (asked.samples.get(measure) for asked in suites)
    return [sample for sample in samples if sample and sample.answerable]


def _tested(measure: Measure, questions: Mapping[Key, Question], answers: Mapping[Key, Answer]) -> MeasureDelta | None:
    key = Key(None, measure.value)
    if key not in questions:
        return None
    question = questions[key]
    fields = describe(question, answers[key])
    firm = question.method == "signFlip" and not question.sample.mixed
    return MeasureDelta(measure=measure, gates=firm and fields["verdict"] is Verdict.REGRESSED, **fields)


def _only(measure: Measure, suites: Sequence[SuiteComparison]) -> MeasureDelta | None:
    """The row of the one suite that can be compared; the gate already counts it there."""
    rows = (delta for suite in suites for delta in suite.measures if delta.measure is measure)
    only = next((row for row in rows if row.change is not None), None)
    return only.model_copy(update={"gates": False}) if only else None
