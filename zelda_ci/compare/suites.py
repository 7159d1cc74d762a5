"""One suite of a comparison: its questions, and its record once they are answered."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from zelda_ci.compare.answers import Answer, Key
from zelda_ci.compare.calibration import criterion_noise, measure_noise
from zelda_ci.compare.compatibility import notes
from zelda_ci.compare.deltas import describe
from zelda_ci.compare.questions import Question, Sample, ask_number, ask_pass_rate
from zelda_ci.compare.samples import Pair, criterion_samples, measure_samples
from zelda_ci.compare.scales import scale_of
from zelda_ci.compare.sides import Side
from zelda_ci.domain.comparison import (
    Calibration,
    CriterionDelta,
    Measure,
    MeasureDelta,
    SuiteComparison,
    ToolChange,
    ToolDelta,
    Verdict,
)
from zelda_ci.domain.judgement import CriterionJudgement

GRAVITY = (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.INCONCLUSIVE)


@dataclass(frozen=True)
class SuiteQuestions:
    """What is asked about one suite."""

    pair: Pair
    calibration: Calibration | None
    obstacles: tuple[str, ...]
    samples: dict[Measure, Sample]
    measures: dict[Key, Question]
    criteria: dict[Key, Question]


def ask_suite(pair: Pair, calibration: Calibration | None) -> SuiteQuestions:
    """Every question about one suite."""
    known = calibration or Calibration(suite=pair.suite, trials=pair.present[0].trials, hypotheses=0)
    obstacles = pair.obstacles()
    samples = measure_samples(pair, obstacles)
    measures = {
        Key(pair.suite, measure.value): replace(
            ask_number(scale_of(measure, pair.tolerance), sample), noise=measure_noise(known, measure)
        )
        for measure, sample in samples.items()
    }
    criteria = {
        Key(pair.suite, name, criterion=True): replace(ask_pass_rate(sample), noise=criterion_noise(known, name))
        for name, sample in criterion_samples(pair, obstacles).items()
    }
    return SuiteQuestions(pair, calibration, obstacles, samples, measures, criteria)


def conclude_suite(asked: SuiteQuestions, answers: Mapping[Key, Answer]) -> SuiteComparison:
    """The suite's record."""
    pair = asked.pair
    measures = tuple(_measure(key, question, answers[key]) for key, question in asked.measures.items())
    criteria = tuple(_criterion(pair, key, question, answers[key]) for key, question in asked.criteria.items())
    return SuiteComparison(
        suite=pair.suite,
        file=pair.present[-1].file,
        verdict=_suite_verdict(pair, asked.obstacles, (*measures, *criteria)),
        baseline=pair.baseline.trials if pair.baseline else None,
        candidate=pair.candidate.trials if pair.candidate else None,
        reasons=asked.obstacles,
        notes=notes(pair.readings),
        measures=measures,
        criteria=criteria,
        tools=_tools(pair),
        calibration=asked.calibration,
    )


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for many: a regression outweighs all, and doubt outweighs calm."""
    found = set(verdicts)
    return next((verdict for verdict in GRAVITY if verdict in found), Verdict.UNCHANGED)


def _suite_verdict(
    pair: Pair, obstacles: tuple[str, ...], deltas: tuple[MeasureDelta | CriterionDelta, ...]
) -> Verdict:
    if pair.baseline is None:
        return Verdict.NEW
    if pair.candidate is None:
        return Verdict.REMOVED
    if obstacles and not pair.mixed:
        return Verdict.INCONCLUSIVE
    return gravest(delta.verdict for delta in deltas)


def _measure(key: Key, question: Question, answer: Answer) -> MeasureDelta:
    fields = describe(question, answer)
    return MeasureDelta(measure=Measure(key.name), gates=_gates(question, fields["verdict"]), **fields)


def _criterion(pair: Pair, key: Key, question: Question, answer: Answer) -> CriterionDelta:
    fields = describe(question, answer)
    telling = fields["verdict"] is not Verdict.UNCHANGED
    # Who tolerates a lower score tolerates that single criteria fail.
    counts = pair.tolerance.requirement_fulfillment is None
    return CriterionDelta(
        criterion=key.name,
        gates=counts and _gates(question, fields["verdict"]),
        baseline_judgement=_typical(pair.baseline, key.name, question.sample.baseline) if telling else None,
        candidate_judgement=_typical(pair.candidate, key.name, question.sample.candidate) if telling else None,
        **fields,
    )


def _gates(question: Question, verdict: Verdict) -> bool:
    return verdict is Verdict.REGRESSED and not question.sample.obstacles


def _typical(side: Side | None, criterion: str, outcomes: tuple[float, ...]) -> CriterionJudgement | None:
    """The newest judgement with the more frequent verdict; of a tie, a failure, which tells more."""
    if side is None:
        return None
    found = [reading for reading in reversed(side.readings) if criterion in reading.judgements]
    usual = 100.0 if 2 * sum(outcomes) > 100 * len(outcomes) else 0.0
    typical = (reading for reading in found if reading.outcomes.get(criterion) == usual)
    chosen = next(typical, found[0] if found else None)
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


def _appeared(old: Counter[str], new: Counter[str]) -> tuple[ToolChange, ...]:
    return tuple(
        ToolChange(tool=tool, baseline_trials=0, candidate_trials=new[tool]) for tool in sorted(new) if not old[tool]
    )


def _disappeared(old: Counter[str], new: Counter[str]) -> tuple[ToolChange, ...]:
    return tuple(
        ToolChange(tool=tool, baseline_trials=old[tool], candidate_trials=0) for tool in sorted(old) if not new[tool]
    )
