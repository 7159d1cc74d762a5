"""A comparison of two sides: suite by suite, then over all suites."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from zelda_ci.compare.compatibility import notes
from zelda_ci.compare.deltas import HypothesisResult, QuestionKey, describe, resolve_questions
from zelda_ci.compare.figures import figure_deltas
from zelda_ci.compare.questions import (
    Pair,
    Question,
    Sample,
    ask_criterion,
    ask_measure,
    ask_overall,
    criterion_samples,
    is_fact,
    measure_samples,
)
from zelda_ci.compare.sides import SuiteSide, sides
from zelda_ci.domain.comparison import (
    Comparison,
    Counts,
    CriterionDelta,
    FigureDelta,
    MeasureDelta,
    SuiteComparison,
    ToolChange,
    ToolDelta,
    Verdict,
)
from zelda_ci.domain.details import CriterionJudgement
from zelda_ci.domain.measures import Measure
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.suite import ScoreLimits

GRAVITY = (Verdict.REGRESSED, Verdict.CHANGED, Verdict.IMPROVED, Verdict.INCONCLUSIVE)


@dataclass(frozen=True)
class SuiteQuestions:
    """What is asked about one suite."""

    pair: Pair
    obstacles: tuple[str, ...]
    samples: dict[Measure, Sample]
    measures: dict[QuestionKey, Question]
    criteria: dict[QuestionKey, Question]


def ask_suite(pair: Pair) -> SuiteQuestions:
    """Every question about one suite."""
    obstacles = pair.obstacles()
    samples = measure_samples(pair, obstacles)
    measures = {
        QuestionKey(pair.suite, measure.value): replace(
            ask_measure(measure, sample, pair.tolerance), is_fact=is_fact(pair, measure)
        )
        for measure, sample in samples.items()
    }
    criteria = {
        QuestionKey(pair.suite, name, criterion=True): ask_criterion(sample, pair.tolerance)
        for name, sample in criterion_samples(pair, obstacles).items()
    }
    return SuiteQuestions(pair, obstacles, samples, measures, criteria)


def finish_suite(suite: SuiteQuestions, answers: Mapping[QuestionKey, HypothesisResult]) -> SuiteComparison:
    """The suite's record."""
    pair = suite.pair
    measures = tuple(_measure(key, question, answers[key]) for key, question in suite.measures.items())
    criteria = tuple(_criterion(pair, key, question, answers[key]) for key, question in suite.criteria.items())
    return SuiteComparison(
        suite=pair.suite,
        file=pair.present[-1].file,
        verdict=_suite_verdict(pair, suite.obstacles, (*measures, *criteria)),
        baseline=pair.baseline.trials if pair.baseline else None,
        candidate=pair.candidate.trials if pair.candidate else None,
        reasons=suite.obstacles,
        notes=notes(pair.readings),
        measures=measures,
        criteria=criteria,
        figures=_figures(pair, suite.obstacles),
        tools=_tools(pair),
    )


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for many: a regression outweighs all, and doubt outweighs calm."""
    occurring = set(verdicts)
    return next((verdict for verdict in GRAVITY if verdict in occurring), Verdict.UNCHANGED)


def _suite_verdict(
    pair: Pair, obstacles: tuple[str, ...], deltas: tuple[MeasureDelta | CriterionDelta, ...]
) -> Verdict:
    if pair.baseline is None:
        return Verdict.NEW
    if pair.candidate is None:
        return Verdict.REMOVED
    if obstacles and not pair.mixed:
        return Verdict.INCONCLUSIVE
    return gravest(delta.verdict for delta in deltas if delta.is_tested)


def _measure(key: QuestionKey, question: Question, answer: HypothesisResult) -> MeasureDelta:
    fields = describe(question, answer)
    return MeasureDelta(measure=Measure(key.name), gates=_gates(question, fields["verdict"]), **fields)


def _criterion(pair: Pair, key: QuestionKey, question: Question, answer: HypothesisResult) -> CriterionDelta:
    fields = describe(question, answer)
    is_notable = fields["verdict"] is not Verdict.UNCHANGED
    return CriterionDelta(
        criterion=key.name,
        gates=_gates(question, fields["verdict"]),
        baseline_judgement=_typical(pair.baseline, key.name, question.sample.baseline) if is_notable else None,
        candidate_judgement=_typical(pair.candidate, key.name, question.sample.candidate) if is_notable else None,
        **fields,
    )


def _gates(question: Question, verdict: Verdict) -> bool:
    return verdict is Verdict.REGRESSED and not question.sample.obstacles and not question.sample.doubts


def _typical(side: SuiteSide | None, criterion: str, outcomes: tuple[float, ...]) -> CriterionJudgement | None:
    """The newest judgement with the more frequent verdict; of a tie, a failure, which tells more."""
    if side is None:
        return None
    judged = [reading for reading in reversed(side.readings) if criterion in reading.judgements]
    usual = 100.0 if 2 * sum(outcomes) > 100 * len(outcomes) else 0.0
    typical = (reading for reading in judged if reading.outcomes.get(criterion) == usual)
    chosen = next(typical, judged[0] if judged else None)
    return chosen.judgements[criterion] if chosen else None


def _tools(pair: Pair) -> ToolDelta:
    if len(pair.present) < 2 or not all(side.readings for side in pair.present):
        return ToolDelta()
    old, new = pair.present
    return ToolDelta(
        newly_used=_appeared(old.tools_used, new.tools_used),
        no_longer_used=_disappeared(old.tools_used, new.tools_used),
        newly_missed=_appeared(old.tools_missed, new.tools_missed),
        no_longer_missed=_disappeared(old.tools_missed, new.tools_missed),
    )


def _figures(pair: Pair, obstacles: tuple[str, ...]) -> tuple[FigureDelta, ...]:
    if not (pair.baseline and pair.candidate and pair.baseline.readings and pair.candidate.readings):
        return ()
    comparable = pair.mixed or not obstacles
    return figure_deltas(pair.baseline.readings, pair.candidate.readings, comparable=comparable)


def _appeared(old: Counter[str], new: Counter[str]) -> tuple[ToolChange, ...]:
    return tuple(
        ToolChange(tool=tool, baseline_trials=0, candidate_trials=new[tool]) for tool in sorted(new) if not old[tool]
    )


def _disappeared(old: Counter[str], new: Counter[str]) -> tuple[ToolChange, ...]:
    return tuple(
        ToolChange(tool=tool, baseline_trials=old[tool], candidate_trials=0) for tool in sorted(old) if not new[tool]
    )


def ask_all(suites: Sequence[SuiteQuestions]) -> dict[QuestionKey, Question]:
    """One question per measure that at least two suites can answer; a single suite speaks for itself."""
    questions = {}
    for measure in Measure:
        samples = _answerable(measure, suites)
        if len(samples) > 1:
            questions[QuestionKey(None, measure.value)] = ask_overall(measure, samples)
    return questions


def finish_overall(
    questions: Mapping[QuestionKey, Question],
    answers: Mapping[QuestionKey, HypothesisResult],
    suites: Sequence[SuiteComparison],
) -> tuple[MeasureDelta, ...]:
    """The overall rows, in the order of the measures."""
    rows = (tested_row(measure, questions, answers) or _only(measure, suites) for measure in Measure)
    return tuple(row for row in rows if row)


def _answerable(measure: Measure, suites: Sequence[SuiteQuestions]) -> list[tuple[Sample, ScoreLimits]]:
    samples = ((suite.samples.get(measure), suite.pair.tolerance) for suite in suites)
    return [(sample, tolerance) for sample, tolerance in samples if sample and sample.answerable]


def tested_row(
    measure: Measure, questions: Mapping[QuestionKey, Question], answers: Mapping[QuestionKey, HypothesisResult]
) -> MeasureDelta | None:
    """The row of a measure over all suites, if it was asked for."""
    key = QuestionKey(None, measure.value)
    if key not in questions:
        return None
    question = questions[key]
    fields = describe(question, answers[key])
    firm = question.tails is not None and not question.sample.mixed and not question.sample.doubts
    return MeasureDelta(measure=measure, gates=firm and fields["verdict"] is Verdict.REGRESSED, **fields)


def _only(measure: Measure, suites: Sequence[SuiteComparison]) -> MeasureDelta | None:
    """The row of the one suite that can be compared; the gate already counts it there."""
    rows = (delta for suite in suites for delta in suite.measures if delta.measure is measure)
    only = next((row for row in rows if row.change is not None), None)
    return only.replace(gates=False) if only else None


def compare(
    baseline: Iterable[RunResult],
    candidate: Iterable[RunResult],
    *,
    allow_mixed: bool = False,
    pair_suites: bool = False,
    side_by_side: bool = False,
) -> Comparison:
    """Compare the runs of any number of suites, several trials each; their order does not matter.

    Args:
        baseline: What the candidate is measured against.
        candidate: What is judged.
        allow_mixed: Give verdicts even where the sides differ in prompt, models or versions; they never gate.
        pair_suites: Compare the only suite of one side with the only suite of the other even if they are not the
            same; such verdicts never gate either.
        side_by_side: The baseline's trials were run beside the candidate's, on the same platform.
    """
    old, new = sides(baseline), sides(candidate)
    pairs = [Pair(suite, old.get(suite), new.get(suite), allow_mixed, side_by_side) for suite in sorted({*old, *new})]
    if pair_suites and len(old) == len(new) == 1 and len(pairs) == 2:
        pairs = [_unlike(*old.values(), *new.values())]
    suites_asked = list(map(ask_suite, pairs))
    overall = ask_all(suites_asked)
    questions = {key: question for suite in suites_asked for key, question in (suite.measures | suite.criteria).items()}
    answers, family = resolve_questions(questions | overall)
    suites = tuple(finish_suite(suite, answers) for suite in suites_asked)
    rows = finish_overall(overall, answers, suites)
    return Comparison(
        verdict=gravest([*(suite.verdict for suite in suites), *(row.verdict for row in rows if row.is_tested)]),
        counts=count_verdicts(suites),
        single_trial=any(question.method == "threshold" for question in questions.values()),
        mixed=any(q.sample.mixed and (q.sample.obstacles or q.sample.doubts) for q in questions.values()),
        family=family,
        overall=rows,
        suites=suites,
    )


def _unlike(old: SuiteSide, new: SuiteSide) -> Pair:
    """Two suites that have different names: what both have in numbers can be compared all the same."""
    return Pair(f"{old.suite} -> {new.suite}", old, new, mixed=True)


def count_verdicts(suites: Iterable[SuiteComparison]) -> Counts:
    """Criteria and measures of all suites by verdict."""
    verdicts = Counter(delta.verdict.value for suite in suites for delta in (*suite.measures, *suite.criteria))
    return Counts(**verdicts)
