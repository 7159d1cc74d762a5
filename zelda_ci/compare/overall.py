"""Numbers over all suites of a comparison.

They are tested once. Where trials are added as they are needed, that is on everybody's first trials against as many of
the base in the same job: who goes on does so because of what it showed. Stored trials only say whether the base is to
run for it; what they say costs no error.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from zelda_ci.compare.looks import SuiteLooks
from zelda_ci.compare.questions import Pair, Question, QuestionKey, ask_overall
from zelda_ci.domain.measures import MEASURES, Measure

# The chance by itself below which a number that is worse than the stored ones is tested beside the base.
SUSPICION = 0.1

NOT_BESIDE = "not tested: the base did not run beside the first trials of every suite"


def overall_questions(
    pairs: Sequence[Pair], not_tested: str = "", measures: Iterable[Measure] = Measure
) -> dict[QuestionKey, Question]:
    """One question per measure that at least two suites can answer; a single suite speaks for itself.

    Args:
        pairs: Of every suite.
        not_tested: Why the numbers are only shown.
        measures: Those that are asked about.
    """
    found = {}
    for measure in measures:
        having = (pair for pair in pairs if pair.values(measure).answerable)
        samples = [(sample, pair.tolerance) for pair in having if (sample := pair.sample(measure)).answerable]
        if len(samples) > 1:
            question = ask_overall(measure, samples)
            shown = replace(question, method=None, not_tested=not_tested) if not_tested else question
            found[QuestionKey(None, measure.value)] = shown
    return found


def first_trials(suites: Sequence[SuiteLooks]) -> dict[QuestionKey, Question]:
    """The questions on everybody's first trials: tested where the base ran beside them, otherwise only shown."""
    is_beside = _are_made(suites) and not any(map(missing_of_base, suites))
    pairs = [_first(looks, beside=is_beside) for looks in suites if looks.completed]
    return overall_questions(pairs, "" if is_beside else NOT_BESIDE)


def look_worse(suites: Sequence[SuiteLooks]) -> bool:
    """Whether a number that differs in every session is worse than the stored trials lead to expect."""
    if not _are_made(suites):
        return False
    asked = (measure for measure, spec in MEASURES.items() if spec.scale.varies and not spec.scale.of_the_hour)
    questions = overall_questions([_first(looks, beside=False) for looks in suites], measures=asked)
    return any(
        question.is_tested and question.is_worse and question.tail(worse=True).p <= SUSPICION
        for question in questions.values()
    )


def missing_of_base(looks: SuiteLooks) -> int:
    """How many trials of the base a suite has less than first ones of the head."""
    return max(0, looks.looks[0].head - len(looks.base.readings))


def _are_made(suites: Sequence[SuiteLooks]) -> bool:
    return bool(suites) and all(looks.completed for looks in suites)


def _first(looks: SuiteLooks, *, beside: bool) -> Pair:
    first = looks.looks[0].head
    base = looks.base.first(first) if beside else looks.stored
    # What else differs from stored trials does not matter to a suspicion, and keeps nothing from being shown.
    return Pair(looks.suite, base, looks.head.first(first), side_by_side=True, limits=looks.tolerance)
