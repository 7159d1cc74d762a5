"""All questions of a comparison settled together, because each hypothesis costs the others certainty."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from zelda_ci.compare.detectable import trials_for_pass_rates
from zelda_ci.compare.fisher import OneSided, Tails
from zelda_ci.compare.multiplicity import ALPHA, Family, Hypothesis
from zelda_ci.compare.questions import Question
from zelda_ci.compare.scales import Scale
from zelda_ci.domain.comparison import FamilySize


class Key(NamedTuple):
    """Which number of which suite; the overall numbers have no suite."""

    suite: str | None
    name: str
    criterion: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """Adjusted p-values of both directions; absent where nothing was tested."""

    worse: float | None = None
    better: float | None = None
    level: float = ALPHA
    """What a p-value of a worsening must reach in this comparison."""
    eventual_level: float = ALPHA
    """The same once every hypothesis has trials enough to count."""


def settle(questions: Mapping[Key, Question]) -> tuple[dict[Key, Answer], FamilySize]:
    """Correct the two directions apart: a family of regressions, whose error is promised, and one of improvements."""
    tested = {key: question for key, question in questions.items() if question.tails is not None}
    worse, better = _family(tested.values(), worse=True), _family(tested.values(), worse=False)
    answers = dict.fromkeys(questions, Answer())
    for index, (key, question) in enumerate(tested.items()):
        answers[key] = Answer(
            worse.adjusted[index],
            better.adjusted[index],
            worse.level(index, question.floor),
            worse.eventual_level(index),
        )
    size = FamilySize(
        hypotheses=len(tested),
        testable=len(worse.testable),
        alpha=ALPHA,
        trials_needed=trials_for_pass_rates(1.0, 0.0, ALPHA / max(1.0, _eventual_weight(questions.values()))),
    )
    return answers, size


def _eventual_weight(questions: Iterable[Question]) -> float:
    """Weight of the hypotheses once there are trials: those of a single trial may turn out to vary."""
    single = sum(question.scale.weight for question in questions if question.method == "threshold")
    varying = (q.scale.weight for q in questions if q.tails and min(q.tails.lower.floor, q.tails.higher.floor) < 1)
    return single + sum(varying)


def _family(tested: Iterable[Question], *, worse: bool) -> Family:
    return Family(
        tuple(
            Hypothesis(tail(question.scale, question.tails, worse=worse), question.scale.weight)
            for question in tested
            if question.tails
        )
    )


def tail(scale: Scale, tails: Tails, *, worse: bool) -> OneSided:
    """The test for a change in the worse, or better, direction."""
    return tails.lower if (scale.better == "higher") == worse else tails.higher
