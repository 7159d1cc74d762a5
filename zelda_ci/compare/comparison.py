"""The story of a comparison."""

from collections import Counter
from collections.abc import Iterable, Mapping

from zelda_ci.compare.answers import settle
from zelda_ci.compare.overall import ask_all, conclude_overall
from zelda_ci.compare.samples import Pair
from zelda_ci.compare.sides import Side, sides
from zelda_ci.compare.suites import ask_suite, conclude_suite, gravest
from zelda_ci.domain.comparison import Calibration, Comparison, Counts, SuiteComparison
from zelda_ci.domain.run import RunResult


def compare(
    baseline: Iterable[RunResult],
    candidate: Iterable[RunResult],
    *,
    allow_mixed: bool = False,
    calibrations: Mapping[str, Calibration] | None = None,
) -> Comparison:
    """Compare the runs of any number of suites, several trials each; their order does not matter.

    Args:
        baseline: What the candidate is measured against.
        candidate: What is judged.
        allow_mixed: Give verdicts even where the sides differ in prompt, models or versions; they never gate.
        calibrations: By suite: quoted, and what single trials are measured against.
    """
    pairs = _pairs(sides(baseline), sides(candidate), mixed=allow_mixed)
    known = calibrations or {}
    asked = [ask_suite(pair, known.get(pair.suite)) for pair in pairs]
    overall = ask_all(asked)
    questions = {key: question for suite in asked for key, question in (suite.measures | suite.criteria).items()}
    answers, family = settle(questions | overall)
    suites = tuple(conclude_suite(suite, answers) for suite in asked)
    rows = conclude_overall(overall, answers, suites)
    return Comparison(
        verdict=gravest([*(suite.verdict for suite in suites), *(row.verdict for row in rows)]),
        counts=_counts(suites),
        single_trial=any(question.method == "threshold" for question in questions.values()),
        mixed=any(question.sample.mixed and question.sample.obstacles for question in questions.values()),
        family=family.model_copy(update={"detectable_drop": _smallest(suites)}),
        overall=rows,
        suites=suites,
    )


def _pairs(old: Mapping[str, Side], new: Mapping[str, Side], *, mixed: bool) -> list[Pair]:
    return [Pair(suite, old.get(suite), new.get(suite), mixed) for suite in sorted({*old, *new})]


def _smallest(suites: Iterable[SuiteComparison]) -> float | None:
    return min((d.detectable for suite in suites for d in suite.criteria if d.detectable is not None), default=None)


def _counts(suites: Iterable[SuiteComparison]) -> Counts:
    verdicts = Counter(delta.verdict.value for suite in suites for delta in (*suite.measures, *suite.criteria))
    return Counts(**verdicts)
