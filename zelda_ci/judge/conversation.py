"""What is said between Zelda and a judge's model for one question: blocks, tools, look-ups, the answer. No network.

The model answers by calling a strict tool whose schema is the form. Only the input of that call is an answer: a text
may quote what the session wrote, and a session may write verdicts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

from pydantic import BaseModel, ValidationError

from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import CHARS_PER_TOKEN, A, JudgeQuestion, problems_of
from zelda_ci.judge.images import TOKENS_OF_ONE
from zelda_ci.judge.prompts import render
from zelda_ci.judge.replies import ModelReply
from zelda_ci.redact import Redactor, SafeText

CACHED: Mapping[str, str] = {"type": "ephemeral"}

# What a gateway or a model may not know, and by which words a refusal shows it. The form is in the tool all the same.
IMAGES = "images"
OPTIONAL = {
    "strict": ("strict", "too complex", "grammar"),
    "tool_choice": ("tool_choice", "tool choice"),
    IMAGES: ("image", "vision", "multimodal"),
}


class InvalidAnswerError(Exception):
    """Why a reply is no answer, in words for the model."""


@dataclass(frozen=True)
class LookupLimits:
    """What a judge may look up for one question."""

    calls: int = 20
    characters: int = 200_000
    usd: float = 1.0
    """That the requests after the first may cost."""


@dataclass
class Conversation(Generic[A]):
    """One question, up to its answer."""

    question: JudgeQuestion
    form: type[A]
    schemas: Mapping[type[BaseModel], Mapping[str, Any]]
    """JSON Schemas of the form and of those that others answer in who share what is cached."""
    limits: LookupLimits
    redact: Redactor
    looked_up: int = 0
    _characters: int = 0
    _refusals: int = 0
    _corrected: bool = False
    _messages: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._images = self.question.common.images if self.question.common else None
        self._room = self._images.later() if self._images else None
        self._messages.append({"role": "user", "content": self._opening()})

    def request(self, left_out: set[str]) -> dict[str, Any]:
        """Keys of the next request, without what the other side does not know."""
        common = self.question.common
        body: dict[str, Any] = {
            "system": self.redact(common.system if common else self.question.system),
            "messages": self._without_images() if IMAGES in left_out else self._messages,
            "tools": [*self._lookup_tools(), *self._answer_tools(is_strict="strict" not in left_out)],
        }
        if "tool_choice" not in left_out:
            # A choice that changes costs the cached prefix: it is changed only where words did not help.
            is_forced = self._refusals > 1
            body["tool_choice"] = {"type": "tool", "name": tool_name(self.form)} if is_forced else {"type": "any"}
        return body

    @property
    def has_images(self) -> bool:
        """Whether the next request shows any."""
        return any(_has_image(block) for message in self._messages for block in message["content"])

    def look_up(self, reply: ModelReply, spent_usd: float) -> bool:
        """Look up what the reply asks for and note it for the next request; False where it asks for nothing."""
        calls = [call for call in reply.calls if call.name in self._offered()]
        lookups = self.question.lookups
        if lookups is None or not calls or any(call.name == tool_name(self.form) for call in reply.calls):
            return False
        results = [self._looked_up(call.id, *self._found(call.name, call.input, spent_usd)) for call in reply.calls]
        if not self._is_open(spent_usd):
            self._refusals += 1
        # The end of what the next request shares with this one.
        results[-1]["cache_control"] = CACHED
        self._forget_marks()
        self._messages += [self._said(reply), {"role": "user", "content": results}]
        return True

    def answer(self, reply: ModelReply) -> A:
        """Return the input of the one call that answers.

        Raises:
            InvalidAnswerError: There is no such call, there are several, or the input does not fit the form.
        """
        name = tool_name(self.form)
        given = [call.input for call in reply.calls if call.name == name]
        if len(given) != 1:
            raise InvalidAnswerError(f"it has {len(given)} calls of {name}, and exactly one is needed")
        try:
            return self.form.model_validate(self.redact.json(given[0]))
        except ValidationError as problem:
            raise InvalidAnswerError(problems_of(problem)) from None

    def correct(self, reply: ModelReply, problem: InvalidAnswerError) -> None:
        """Tell once what is wrong with an answer.

        Raises:
            JudgeError: It has been told before: a judge that is wrong twice would be wrong a third time, for money.
        """
        if self._corrected:
            raise _invalid(self.redact(str(problem)))
        self._corrected = True
        words = f"That answer cannot be used: {problem}. Give it again, whole, by calling {tool_name(self.form)} once."
        results = [self._result(call.id, self.redact(words), is_error=True) for call in reply.calls]
        self._messages += [self._said(reply), {"role": "user", "content": results or [_block(words)]}]

    def _opening(self) -> list[dict[str, Any]]:
        question = self.question
        common = self._shown([self.redact(text) for text in question.common.blocks if text]) if question.common else []
        # Behind what is common, the task of this judge is no part of the system prompt.
        own = [question.system, *question.shared] if question.common else question.shared
        shared = [_block(self.redact(text)) for text in own if text]
        for blocks in (common, shared):
            # What several questions of a run begin with is written into the cache once, at the last block they share.
            if blocks:
                blocks[-1]["cache_control"] = CACHED
        offered = [tool.name for tool in self._offers()]
        remark = question.lookups.remark if question.lookups else ""
        how = render("answering", tool=tool_name(self.form), offered=offered, limits=self.limits, remark=remark)
        return [*common, *shared, _block(self.redact(f"{question.body}\n\n{how}"))]

    def _shown(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """Texts with the images that they name."""
        if self._images is None:
            return [_block(text) for text in texts]
        return [block for blocks in self._images.blocks(texts, self._images.at_first()) for block in blocks]

    def _without_images(self) -> list[dict[str, Any]]:
        if self._images is None or not self.has_images:
            return self._messages
        return [{**message, "content": self._images.without(message["content"])} for message in self._messages]

    def _offers(self) -> Sequence[Any]:
        return self.question.lookups.tools if self.question.lookups and self.limits.calls else ()

    def _offered(self) -> set[str]:
        return {tool.name for tool in self._offers()}

    def _lookup_tools(self) -> Iterator[dict[str, Any]]:
        for tool in self._offers():
            yield {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}

    def _answer_tools(self, *, is_strict: bool) -> Iterator[dict[str, Any]]:
        for form, schema in self.schemas.items():
            tool = {"name": tool_name(form), "description": _first_sentence(form), "input_schema": dict(schema)}
            yield {**tool, "strict": True} if is_strict else tool

    def _is_open(self, spent_usd: float) -> bool:
        limits = self.limits
        return self.looked_up < limits.calls and self._characters < limits.characters and spent_usd < limits.usd

    def _found(self, name: str, values: Mapping[str, Any], spent_usd: float) -> tuple[SafeText, bool]:
        lookups = self.question.lookups
        if lookups is None or name not in self._offered():
            return self.redact("There is no tool of this name."), True
        if not self._is_open(spent_usd):
            return self.redact(render("answer-now", tool=tool_name(self.form))), True
        self.looked_up += 1
        found = lookups.run(name, values)
        room = self.limits.characters - self._characters
        self._characters += len(found)
        if len(found) > room:
            return self.redact("That is more than is left to be looked up: ask for less of it, or answer now."), True
        return found, False

    def _looked_up(self, call_id: str, text: SafeText, is_error: bool) -> dict[str, Any]:  # noqa: FBT001
        """A result with the images that it names."""
        result = self._result(call_id, text, is_error)
        if self._images and self._room:
            (result["content"],) = self._images.blocks([text], self._room)
            shown = sum(block["type"] == "image" for block in result["content"])
            self._characters += int(shown * TOKENS_OF_ONE * CHARS_PER_TOKEN)
        return result

    @staticmethod
    def _result(call_id: str, text: SafeText, is_error: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": [_block(text)]}
        return {**result, "is_error": True} if is_error else result

    def _said(self, reply: ModelReply) -> dict[str, Any]:
        """The reply as the API wants to see it again; it refuses an empty message."""
        return {"role": "assistant", "content": [*_again(reply, self.redact)] or [_block("{}")]}

    def _forget_marks(self) -> None:
        """Of the four places at which a request may be cached, look-ups take one: the latest."""
        for message in self._messages[1:]:
            for block in message["content"]:
                block.pop("cache_control", None)


def tool_name(form: type[BaseModel]) -> str:
    """The tool by which a form is given."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", form.__name__).lower().strip("_")
    return f"answer_{words}"


def _again(reply: ModelReply, redact: Redactor) -> Iterator[dict[str, Any]]:
    for block in reply.content:
        match block.get("type"):
            case "text" if block.get("text"):
                yield _block(redact(str(block["text"])))
            case "tool_use":
                yield {**block, "input": redact.json(block["input"])}
            case "thinking" | "redacted_thinking":
                # Signed: it goes back as it came, or the API refuses it.
                yield dict(block)
            case _:
                pass


def _has_image(block: Mapping[str, Any]) -> bool:
    inner = block.get("content")
    return block.get("type") == "image" or (isinstance(inner, list) and any(map(_has_image, inner)))


def _block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _first_sentence(form: type[BaseModel]) -> str:
    return f"Give your answer: {(form.__doc__ or form.__name__).strip().splitlines()[0]}"


def _invalid(problems: str) -> JudgeError:
    message = f"The judge's answer is not in the required form, even after a second request: {problems}"
    return JudgeError(message, hint="Try again, or choose another judgeModel.", code="JUDGE_ANSWER_INVALID")
