"""Measures a judge on the labelled cases: how often it is right, what counted and must not, how steady it is, its cost.

`scripts/measure-judge` asks a real model with it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from tests.support.case_places import is_own_words, stands
from tests.support.judge_cases import BuiltCase, Criterion, JudgeCase, build
from tests.support.labelled_judge import found_of_tools
from zelda_ci.domain.base import Record
from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.measures import Metric
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.pipeline.evaluation import JudgeRun

CASES_AT_ONCE = 2

# Verdicts, in the words of the labels.
WORDS = {
    CriterionVerdict.PASS: "PASS",
    CriterionVerdict.FAIL: "FAIL",
    CriterionVerdict.UNDECIDED: "UNDECIDED",
    CriterionVerdict.NOT_JUDGED: "NOT_JUDGED",
}


@dataclass(frozen=True)
class Judged:
    """One answer on one criterion, or on one tool or rule."""

    case: str
    trap: str
    what: str
    label: str
    verdict: str
    reasoning: str = ""
    is_false: bool = False
    """Whether it counted on evidence that is not there, or that is no evidence."""
    is_usage: bool = False

    @property
    def is_right(self) -> bool:
        return self.verdict == self.label


@dataclass(frozen=True)
class Measurement:
    """Everything that was asked: one list for each repetition, in the same order."""

    model: str
    repetitions: Sequence[Sequence[Judged]]
    cost_usd: float = 0.0
    requests: int = 0

    @property
    def answers(self) -> list[Judged]:
        return [judged for repetition in self.repetitions for judged in repetition]

    def criteria(self) -> list[Judged]:
        return [judged for judged in self.answers if not judged.is_usage]

    def tools(self) -> list[Judged]:
        return [judged for judged in self.answers if judged.is_usage]

    def false(self) -> list[Judged]:
        return [judged for judged in self.answers if judged.is_false]

    @property
    def flip_rate(self) -> float:
        """The share of what was asked on which the repetitions do not agree."""
        by_question = list(zip(*self.repetitions, strict=True))
        flipped = [answers for answers in by_question if len({judged.verdict for judged in answers}) > 1]
        return len(flipped) / len(by_question) if by_question else 0.0


async def measure(
    cases: Sequence[JudgeCase],
    judging: ModelProxy,
    *,
    repetitions: int,
    settings: Callable[[JudgeCase], dict[str, Any]],
    tell: Callable[[str], None],
) -> Measurement:
    """Judge every case so many times; their proxy is started and ended here.

    Args:
        cases: Which.
        judging: The way to what judges.
        repetitions: How often.
        settings: Of the suites.
        tell: Is told of each case that was judged.
    """
    answers: dict[tuple[int, str], Sequence[Judged]] = {}
    spent: list[tuple[float, int]] = []
    slots = anyio.CapacityLimiter(CASES_AT_ONCE)

    async def judge(case: JudgeCase, repetition: int) -> None:
        async with slots:
            with TemporaryDirectory(prefix="zelda-judge-case-") as folder:
                built = await anyio.to_thread.run_sync(lambda: build(case, Path(folder), **settings(case)))
                run = JudgeRun(judging, case.name, built.context)
                await run.run()
                used = run.usage
                spent.append((used.cost_usd, used.requests) if used else (0.0, 0))
                details = {result.metric: result.details for result in run.results}
                answers[repetition, case.name] = [
                    *_on_criteria(built, details.get(Metric.REQUIREMENT_FULFILLMENT)),
                    *_on_tools(built, details.get(Metric.TOOL_USAGE)),
                ]
        wrong = sum(not judged.is_right for judged in answers[repetition, case.name])
        tell(f"{case.name}: {wrong} of {len(answers[repetition, case.name])} not as labelled")

    async with judging, anyio.create_task_group() as group:
        for repetition in range(repetitions):
            for case in cases:
                group.start_soon(judge, case, repetition)
    lists = [[one for case in cases for one in answers[number, case.name]] for number in range(repetitions)]
    model = settings(cases[0]).get("judgeModel", "") if cases else ""
    return Measurement(model, lists, sum(cost for cost, _ in spent), sum(requests for _, requests in spent))


def _on_criteria(built: BuiltCase, details: Record | None) -> Iterator[Judged]:
    judged = details.criteria if isinstance(details, FulfillmentDetails) else ()
    for number, criterion in enumerate(built.case.criteria):
        one = judged[number] if number < len(judged) else None
        yield Judged(
            built.case.name,
            built.case.trap,
            criterion.text,
            criterion.verdict,
            WORDS[one.verdict] if one else "NOT_JUDGED",
            one.reasoning if one else "",
            bool(one and is_on_false_evidence(built, criterion, one)),
        )


def is_on_false_evidence(built: BuiltCase, criterion: Criterion, judged: CriterionJudgement) -> bool:
    """Whether a verdict counted that must not, whatever it is.

    A PASS or FAIL with places of which none is there; a PASS without any; and a wrong PASS that rests on nothing but
    what the session says of itself.
    """
    if judged.verdict not in {CriterionVerdict.PASS, CriterionVerdict.FAIL}:
        return False
    standing = [place for place in judged.evidence if stands(built, place.where, place.quote)]
    is_pass = judged.verdict is CriterionVerdict.PASS
    if not standing:
        return is_pass or bool(judged.evidence)
    claims = {_spelled(built.where(lure.at)) for lure in criterion.lures if lure.kind == "claim"}
    are_words = all(is_own_words(built, place.where) or _spelled(place.where) in claims for place in standing)
    return is_pass and criterion.verdict != "PASS" and are_words


def _spelled(where: str) -> str:
    return where.strip(" `[]").lower().replace(",", "")


def _on_tools(built: BuiltCase, details: Record | None) -> Iterator[Judged]:
    found = found_of_tools(details)
    for label in built.case.usage:
        verdict = found.get(label.of, "NOT_JUDGED")
        yield Judged(built.case.name, built.case.trap, label.of, label.verdict, verdict, is_usage=True)


# --- told ---


def told(measured: Measurement) -> Iterator[str]:
    """The measurement in lines."""
    criteria, tools = measured.criteria(), measured.tools()
    rounds = len(measured.repetitions)
    yield f"{measured.model}: {len({one.case for one in measured.answers})} cases, repeated {rounds} times"
    yield ""
    yield "Criteria judged as labelled"
    yield from _shares(criteria)
    yield ""
    yield "True verdict (rows) and what it was judged (columns)"
    yield from _table(criteria)
    if tools:
        yield ""
        yield "Tools and rules judged as labelled"
        yield from _shares(tools)
    yield ""
    yield f"Verdicts that counted on false evidence: {len(measured.false())} (must be 0)"
    yield from (f"  {one.case}: {one.what}: {one.verdict}" for one in measured.false())
    if rounds > 1:
        yield f"Flip rate: {_percent(measured.flip_rate)} of what was asked had different verdicts"
    yield f"Cost: ${measured.cost_usd:.2f} for {measured.requests} requests"
    yield ""
    wrong = [one for one in measured.answers if not one.is_right]
    yield f"Not as labelled: {len(wrong)}"
    yield from (f"  {one.case}: {one.what}: {one.label}, judged {one.verdict}. {one.reasoning[:200]}" for one in wrong)


def agreement(answers: Iterable[Judged]) -> float:
    """The share that was judged as labelled; what was not judged is none of them."""
    right = [one.is_right for one in answers]
    return sum(right) / len(right) if right else 1.0


def _shares(answers: Sequence[Judged]) -> Iterator[str]:
    for trap in sorted({one.trap for one in answers}):
        of_trap = [one for one in answers if one.trap == trap]
        yield f"  {trap:<14} {_percent(agreement(of_trap)):>7} of {len(of_trap)}"
    yield f"  {'all':<14} {_percent(agreement(answers)):>7} of {len(answers)}"


def _table(answers: Sequence[Judged]) -> Iterator[str]:
    counts = Counter((one.label, one.verdict) for one in answers)
    columns = list(WORDS.values())
    yield "  " + " " * 10 + "".join(f"{column:>12}" for column in columns)
    for label in columns[:-1]:
        yield f"  {label:<10}" + "".join(f"{counts[label, column]:>12}" for column in columns)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def as_json(measured: Measurement) -> dict[str, Any]:
    """The measurement with every answer, to be compared with another."""
    return {
        "model": measured.model,
        "agreement": agreement(measured.criteria()),
        "agreementOnTools": agreement(measured.tools()),
        "onFalseEvidence": len(measured.false()),
        "flipRate": measured.flip_rate,
        "costUsd": measured.cost_usd,
        "requests": measured.requests,
        "repetitions": [[asdict(one) for one in repetition] for repetition in measured.repetitions],
    }
