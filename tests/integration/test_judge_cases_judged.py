"""Labelled cases before the real evaluators, with judges that answer from the labels, honestly or not."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.case_places import is_own_words
from tests.support.judge_cases import BuiltCase, Criterion, Place, all_cases, build
from tests.support.labelled_judge import (
    NOWHERE,
    LabelledJudge,
    Reply,
    Said,
    UsageReply,
    citing,
    found_of_tools,
    honest,
    honest_on_tools,
    plain,
    text_of,
)
from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict, FulfillmentDetails
from zelda_ci.judge.rendering import OPENING, mark_of, new_nonce
from zelda_ci.metrics.base import JudgeServices, run_evaluator
from zelda_ci.metrics.evidence import CitedPlace
from zelda_ci.metrics.requirement_fulfillment import RequirementFulfillment
from zelda_ci.metrics.tool_usage import ToolUsage
from zelda_ci.redact import Redactor

NONCE = new_nonce()
CASES = {case.name: case for case in all_cases()}
TRAPS = sorted({case.trap for case in CASES.values()})
VERDICTS = {"PASS": CriterionVerdict.PASS, "FAIL": CriterionVerdict.FAIL, "UNDECIDED": CriterionVerdict.UNDECIDED}
INVENTED = Place(at="turn 1", quote=NOWHERE)


def judged(built: BuiltCase, reply: Reply) -> Sequence[CriterionJudgement]:
    """What the real evaluator makes of it."""
    evaluator = RequirementFulfillment(JudgeServices(LabelledJudge(built, reply), NONCE, Redactor()))
    result = anyio.run(run_evaluator, evaluator, built.context, Redactor())
    assert isinstance(result.details, FulfillmentDetails)
    criteria = result.details.criteria
    assert len(criteria) == len(built.case.criteria), result.reasoning
    return criteria


# --- honest judges: what is true counts ---


def not_as_labelled(built: BuiltCase) -> Iterator[str]:
    """Verdicts of an honest judge that are not the label's, and places it cites that do not become evidence."""
    for criterion, judgement in zip(built.case.criteria, judged(built, honest(built)), strict=True):
        if judgement.verdict is not VERDICTS[criterion.verdict]:
            yield f"{built.case.name}: {criterion.text} is {criterion.verdict}: {judgement.reasoning}"
        accepted = {(place.where, place.quote) for place in judgement.evidence}
        for place in map(built.place, criterion.proof):
            if (CitedPlace.model_validate(place).where, place["quote"]) not in accepted:
                yield f"{built.case.name}: {place} was not accepted: {judgement.reasoning}"


def out_of_sight(built: BuiltCase) -> Iterator[str]:
    """What proves a label and is neither shown to the judge nor to be had with its look-ups."""
    judge = LabelledJudge(built, honest(built))
    anyio.run(run_evaluator, RequirementFulfillment(JudgeServices(judge, NONCE, Redactor())), built.context, Redactor())
    question = judge.asked[-1]
    for place in (place for criterion in built.case.criteria for place in criterion.proof):
        # Letters that look like others are shown with their numbers.
        lines = [line for line in place.quote.splitlines() if line.isascii()]
        lookups, shown = getattr(question, "lookups", None), plain(text_of(question))
        missing = [line for line in lines if plain(line) not in shown]
        if any(line not in looked_up(lookups, built.where(place.at), line) for line in missing):
            yield f"{built.case.name}: {place}"


def looked_up(lookups: Any, where: str, quote: str) -> str:
    """What a judge reads that looks for a place."""
    if lookups is None:
        return ""
    if where.startswith("turn"):
        found = lookups.run("search_transcript", {"pattern": quote})
        return str(found) if where in found else ""
    return str(lookups.run("search_files", {"pattern": quote, "glob": where.rpartition(":")[0]}))


# --- dishonest judges: nothing passes ---


def one_by_one(built: BuiltCase, places: Callable[[Criterion], Sequence[Place]]) -> Iterator[Reply]:
    """Judges that say PASS, each with another of the places; where there is none left, they know nothing."""
    lists = {criterion.text: places(criterion) for criterion in built.case.criteria}
    for number in range(max(map(len, lists.values()), default=0)):
        yield partial(_nth, built, number, lists)


def _nth(built: BuiltCase, number: int, lists: dict[str, Sequence[Place]], criterion: Criterion, times: int) -> Said:
    given = lists[criterion.text][number : number + 1]
    return citing(built, *given)(criterion, times) if given else Said("UNDECIDED", "Nothing is known.")


def labelled(kind: str, criterion: Criterion) -> list[Place]:
    return [Place(at=lure.at, quote=lure.quote) for lure in criterion.lures if lure.kind == kind]


def inventing(built: BuiltCase) -> Iterator[Reply]:
    """Quotes that stand nowhere, at places that are there, and those that the labels name."""
    return one_by_one(
        built,
        lambda criterion: [
            INVENTED,
            *(Place(at=place.at, quote=NOWHERE) for place in criterion.proof if not place.at.startswith("absent:")),
            *labelled("invented", criterion),
        ],
    )


def boasting(built: BuiltCase) -> Iterator[Reply]:
    """What the session itself says; except where a criterion is about what it says."""
    said = [turn for turn in built.context.transcript.turns if turn.text and not turn.text.startswith("Next I look at")]
    words = [Place(at=f"turn {turn.index}", quote=turn.text or "") for turn in said]

    def claims(criterion: Criterion) -> list[Place]:
        is_about_words = any(is_own_words(built, place.at) for place in criterion.proof)
        return [] if is_about_words else [*labelled("claim", criterion), *words]

    return one_by_one(built, claims)


def citing_what_was_removed(built: BuiltCase) -> Iterator[Reply]:
    return one_by_one(built, partial(labelled, "removed"))


def citing_marks(built: BuiltCase) -> Iterator[Reply]:
    """Headings of patches, and Zelda's own marks."""
    headings = re.findall(r"^(?:diff --git .*|index .*|@@ -\S+ \+\S+ @@|--- .*|\+\+\+ .*)$", built.patch, re.MULTILINE)
    path = next(iter(built.context.changes.files if built.context.changes else ()), "README.md")
    fences = (f'{OPENING}{NONCE} kind="patch">', f"[{mark_of(NONCE)} turn 1 call 1", "[ turn 1 call 1: ", "[ returned]")
    places = [
        *(Place(at=f"patch:{path}", quote=heading) for heading in headings[:5]),
        *(Place(at=at, quote=fence) for fence in fences for at in ("turn 1", f"patch:{path}")),
    ]
    return one_by_one(built, lambda _: places)


DISHONEST: dict[str, Callable[[BuiltCase], Iterable[Reply]]] = {
    "invented": inventing,
    "claims": boasting,
    "removed lines": citing_what_was_removed,
    "marks": citing_marks,
}


def passed(built: BuiltCase, attitude: str) -> Iterator[str]:
    # To look for a quote in megabytes takes a while.
    attempts = islice(DISHONEST[attitude](built), 1 if built.case.trap == "long" else None)
    for number, reply in enumerate(attempts, start=1):
        for criterion, judgement in zip(built.case.criteria, judged(built, reply), strict=True):
            if judgement.verdict is CriterionVerdict.PASS:
                evidence = [(place.where, place.quote[:80]) for place in judgement.evidence]
                yield f"{built.case.name}: {criterion.text} passed in attempt {number} with {evidence}"


# --- tools and rules ---


def found(built: BuiltCase, reply: UsageReply) -> dict[str, str]:
    """What the real evaluator of tool usage makes of it."""
    evaluator = ToolUsage(JudgeServices(LabelledJudge(built, honest(built), reply), NONCE, Redactor()))
    result = anyio.run(run_evaluator, evaluator, built.context, Redactor())
    return found_of_tools(result.details)


def tools_not_as_labelled(built: BuiltCase) -> Iterator[str]:
    counted = found(built, honest_on_tools(built)) if built.case.usage else {}
    for label in built.case.usage:
        if counted.get(label.of) != label.verdict:
            yield f"{built.case.name}: {label.of} is {label.verdict}, and was judged {counted.get(label.of)}"


def tools_on_invented_quotes(built: BuiltCase) -> Iterator[str]:
    """What has happened can be shown; so what is said to have happened and cannot be shown does not count."""
    for verdict in ("USED_WELL", "FOLLOWED", "BROKEN"):
        said = Said(verdict, "It is so.", [built.place(INVENTED)])
        counted = found(built, lambda _, said=said: said) if built.case.usage else {}  # type: ignore[misc]
        yield from (f"{built.case.name}: {of} counts as {word}" for of, word in counted.items() if word == verdict)


CHECKS: dict[str, Callable[[BuiltCase], Iterable[str]]] = {
    "honest": not_as_labelled,
    "in sight": out_of_sight,
    **{name: partial(passed, attitude=name) for name in DISHONEST},
    "tools": tools_not_as_labelled,
    "tools, invented": tools_on_invented_quotes,
}


@pytest.mark.parametrize("trap", TRAPS)
def test_labelled_cases(trap: str, tmp_path: Path) -> None:
    """Every check looks at a case once it is built, which takes longer than most of them."""
    cases = [build(case, tmp_path / case.name) for case in CASES.values() if case.trap == trap]
    found = {name: [problem for built in cases for problem in check(built)] for name, check in CHECKS.items()}
    assert {name: problems for name, problems in found.items() if problems} == {}
