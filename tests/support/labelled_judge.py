"""A judge that answers from the labels of a case: honestly, or as one that has fallen for a trap, or lies.

What it is asked, it reads from the question, and the form is given with it: so it can stand behind
the scripted API, too.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.judge_cases import BuiltCase, Criterion, Place, UsageLabel
from zelda_ci.domain.base import Record
from zelda_ci.domain.details import ToolUsageDetails
from zelda_ci.judge.base import A, JudgeQuestion
from zelda_ci.judge.rendering import OPENING

NOWHERE = "judge cases of Zelda: this sentence stands nowhere at all"
"""What a judge quotes that makes it up."""


@dataclass(frozen=True)
class Said:
    """On one criterion."""

    verdict: str
    reasoning: str
    evidence: Sequence[Mapping[str, Any]] = ()


# What is said of a criterion, and how often that was asked before.
Reply = Callable[[Criterion, int], Said]

# What is said of a tool or a rule.
UsageReply = Callable[[UsageLabel], Said]


def honest(built: BuiltCase) -> Reply:
    """Says what is true, and cites what proves it."""

    def reply(criterion: Criterion, _: int) -> Said:
        return Said(criterion.verdict, criterion.why, [built.place(place) for place in criterion.proof])

    return reply


def citing(built: BuiltCase, *places: Place) -> Reply:
    """Says PASS of everything, and cites the same each time."""

    def reply(criterion: Criterion, _: int) -> Said:
        return Said("PASS", "It is met.", [built.place(place) for place in places])

    return reply


@dataclass
class LabelledJudge:
    """Implements `judge.base.Judge`."""

    built: BuiltCase
    reply: Reply
    of_usage: UsageReply | None = None
    context_tokens: int = 200_000
    model: str = "claude-judge-1"
    asked: list[JudgeQuestion] = field(default_factory=list)
    _times: dict[str, int] = field(default_factory=dict)

    async def ask(self, question: JudgeQuestion, form: type[A]) -> A:
        self.asked.append(question)
        given = self.answer(text_of(question), form.model_json_schema())
        return form.model_validate(given)

    def answer(self, question: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Fill in a form.

        Args:
            question: All that was sent.
            schema: Of the form.
        """
        is_part = "This is part" in question
        if "criteria" not in schema["properties"]:
            return self._of_tools(question, is_part=is_part)
        return {"criteria": [self._entry(*asked, question, is_part=is_part) for asked in self._asked(question)]}

    def _asked(self, question: str) -> Iterator[tuple[int, Criterion]]:
        """Criteria with the numbers under which they are asked about: behind what is fenced, which may list others."""
        own = question.partition("You have answered")[0]
        own = own.rpartition("</evidence-")[2] if OPENING in own else own
        for number, criterion in enumerate(self.built.case.criteria, start=1):
            if f"{number}. {criterion.text}" in own:
                yield number, criterion

    def _entry(self, number: int, criterion: Criterion, question: str, *, is_part: bool) -> dict[str, Any]:
        if is_part:
            return {"number": number, **_found(self.reply(criterion, 0), question)}
        said = self.reply(criterion, self._times_asked(criterion.text))
        return {"number": number, "evidence": said.evidence, "reasoning": said.reasoning, "verdict": said.verdict}

    def _times_asked(self, what: str) -> int:
        """How often it was asked before."""
        self._times[what] = self._times.get(what, -1) + 1
        return self._times[what]

    def _of_tools(self, question: str, *, is_part: bool) -> dict[str, Any]:
        reply = self.of_usage or honest_on_tools(self.built)
        said = {label.of: reply(label) for label in self.built.case.usage}
        numbers = {of: _number_of(of, question) for of in said}
        entries = [
            {
                "number": numbers[of],
                "evidence": one.evidence,
                "reasoning": one.reasoning,
                "verdict": one.verdict,
            }
            for of, one in said.items()
            if numbers[of] and (not is_part or _found(one, question)["evidence"])
        ]
        return {"findings": entries}


def _number_of(of: str, question: str) -> int | None:
    """The number under which a tool or a rule is asked about."""
    match = re.search(rf"^(\d+)\. (?:tool |rules in )?{re.escape(of)}(?=[ ,\[]|$)", question, re.MULTILINE)
    return int(match[1]) if match else None


def honest_on_tools(built: BuiltCase) -> UsageReply:
    """Says what is true of tools and rules."""
    return lambda label: Said(label.verdict, label.why, [built.place(place) for place in label.proof])


def found_of_tools(details: Record | None) -> dict[str, str]:
    """What counts of tools and rules, by name, in the words of the labels."""
    if not isinstance(details, ToolUsageDetails):
        return {}
    kinds = {
        "MISSED": details.missed,
        "MISUSED": details.misused,
        "INSTRUCTIONS_IGNORED": details.instructions_ignored,
        "USED_WELL": details.used_well,
        "NOT_APPLICABLE": details.not_applicable,
    }
    rules = {"followed": "FOLLOWED", "broken": "BROKEN", "notApplicable": "NOT_APPLICABLE"}
    remarks = [(str(remark.tool), word) for word, found in kinds.items() for remark in found]
    remarks += [(str(one.rule), rules.get(one.verdict, "")) for one in details.rules]
    return {name: word for name, word in remarks if word}


def text_of(question: JudgeQuestion) -> str:
    """All that a question sends."""
    return "\n".join([*question.common.blocks, question.system, *question.shared, question.body])


def _found(said: Said, part: str) -> dict[str, Any]:
    """What a part of a long transcript shows: of what would be cited, that which stands in it."""
    here = [place for place in said.evidence if plain(place["quote"]) in plain(part)]
    if not here or said.verdict == "UNDECIDED":
        return {"evidence": [], "reasoning": "", "verdict": "NO_EVIDENCE"}
    return {"evidence": here, "reasoning": said.reasoning, "verdict": said.verdict}


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
