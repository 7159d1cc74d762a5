"""What is said between Zelda and a judge's model for one question, and why there was no answer. No network.

The model answers by calling a strict tool whose schema is the form. Only the input of that call is an answer: a text
may quote what the session wrote, and a session may write verdicts.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import lt
from typing import Any, Generic

from pydantic import BaseModel, ValidationError

from zelda_ci.domain.suite import JudgeSettings
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import A, JudgeQuestion, PromptTooLongError, text_block
from zelda_ci.judge.rendering import problems_of, render
from zelda_ci.redact import Redactor, SafeText

Block = dict[str, Any]

CACHED: Mapping[str, str] = {"type": "ephemeral"}
# What a gateway or a model may not know, and by which words a refusal shows it. The form is in the tool all the same.
IMAGES = "images"
OPTIONAL = {
    "strict": ("strict", "too complex", "grammar"),
    "tool_choice": ("tool_choice", "tool choice"),
    IMAGES: ("image", "vision", "multimodal"),
}


MAX_QUOTE_LENGTH = 300
LATER = "Try again later."
ADDRESS = "Check gatewayUrl or ANTHROPIC_BASE_URL."
KEY = "Check ANTHROPIC_API_KEY, or PORTKEY_API_KEY where a gateway is configured."
FEWER = "Raise judge.maxTokens, or write fewer acceptance criteria."
MODEL = "Check judgeModel, and gatewayUrl where it is set."
# Code, sentence and hint by HTTP status; the full hundreds stand for the others.
_BY_STATUS = {
    300: ("JUDGE_NOT_AN_API", "The judge's address redirects elsewhere, and Zelda does not follow", ADDRESS),
    400: ("JUDGE_REQUEST_REFUSED", "The judge's API refused the request", "Check judgeModel and judge."),
    401: ("JUDGE_AUTHENTICATION_FAILED", "The judge's key was refused", KEY),
    402: ("JUDGE_BILLING_FAILED", "The judge's account cannot pay", "Check credit and limits of the account."),
    403: ("JUDGE_ACCESS_DENIED", "The judge's key may not use this model", "Check what the key may use."),
    404: ("JUDGE_MODEL_NOT_FOUND", "The judge's model or address does not exist", MODEL),
    408: ("JUDGE_API_FAILED", "The judge's API gave up waiting", LATER),
    409: ("JUDGE_API_FAILED", "The judge's API reports a conflict", LATER),
    413: ("JUDGE_PROMPT_TOO_LONG", "The question is too large for the judge", "Lower judge.contextTokens."),
    429: ("JUDGE_RATE_LIMITED", "The judge's rate limit is reached", LATER),
    500: ("JUDGE_API_FAILED", "The judge's API failed", LATER),
    529: ("JUDGE_OVERLOADED", "The judge's provider is overloaded", LATER),
}

# The same by the type of an error inside a stream that had begun well; 500 for others.
STREAMED = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "invalid_request_error": 400,
    "request_too_large": 413,
}

# By which the API, and Bedrock, say in a 400 that a question is larger than the model's context.
_TOO_LONG = (
    "prompt is too long",
    "input length and `max_tokens` exceed context limit",
    "Input is too long for requested model",
)

# By which the API says in a 400 that nothing is left to pay with.
NO_CREDIT = "credit balance is too low"
# By the reason why an answer stopped.
BY_STOP = {
    "refusal": ("JUDGE_REFUSED", "The judge refused to answer.", "Choose another judgeModel."),
    "max_tokens": ("JUDGE_ANSWER_CUT", "The judge's answer was longer than it may be.", FEWER),
    "model_context_window_exceeded": (
        "JUDGE_PROMPT_TOO_LONG",
        "Question and answer together are too large for the judge.",
        "Lower judge.contextTokens to what the model really has.",
    ),
}


@dataclass
class Conversation(Generic[A]):
    """One question, up to its answer."""

    question: JudgeQuestion
    form: type[A]
    schemas: Mapping[type[BaseModel], Mapping[str, Any]]
    """JSON Schemas of the form and of others that are answered in by who shares what is cached."""
    settings: JudgeSettings
    redact: Redactor
    _looked_up: int = 0
    _characters: int = 0
    _refusals: int = 0
    _corrected: bool = False
    _messages: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._tool = tool_name(self.form)
        lookups = self.question.lookups
        self._offered: Sequence[Mapping[str, Any]] = lookups.tools if lookups and self.settings.max_lookups else ()
        self._messages.append({"role": "user", "content": self._opening()})

    def request(self, left_out: Collection[str]) -> dict[str, Any]:
        """Keys of the next request, without what the other side does not know."""
        common = self.question.common
        if IMAGES in left_out and self.has_images and common.images:
            common.images.is_refused = True
            self._messages[0]["content"] = self._opening()
        *before, last = self._messages
        if before:
            # The end of what the next request shares with this one; of four places that may be cached, the third.
            last = {**last, "content": [*last["content"][:-1], {**last["content"][-1], "cache_control": CACHED}]}
        body: dict[str, Any] = {
            "system": self.redact(common.system),
            "messages": [*before, last],
            "tools": [*map(dict, self._offered), *self._answer_tools(left_out)],
        }
        if "tool_choice" not in left_out:
            # A choice that changes costs the cached prefix: it is changed only where words did not help.
            body["tool_choice"] = {"type": "tool", "name": self._tool} if self._refusals > 1 else {"type": "any"}
        return body

    @property
    def has_images(self) -> bool:
        return any(block["type"] == "image" for block in self._messages[0]["content"])

    def take(self, content: Sequence[Block], spent_usd: float) -> A | None:
        """Return the input of the one call in a reply that answers; without one, note what the next request says.

        Raises JudgeError where that was told before: a judge that is wrong twice would be wrong again, for money.
        """
        calls = [block for block in content if block.get("type") == "tool_use"]
        given = [call["input"] for call in calls if call["name"] == self._tool]
        if not given and {call["name"] for call in calls} & {tool["name"] for tool in self._offered}:
            self._go_on(content, [_result(call["id"], *self._found(call, spent_usd)) for call in calls])
            self._refusals += not self._is_open(spent_usd)
            return None
        problem = f"it has {len(given)} calls of {self._tool}, and exactly one is needed"
        if len(given) == 1:
            try:
                return self.form.model_validate(self.redact.json(given[0]))
            except ValidationError as invalid:
                problem = problems_of(invalid)
        if self._corrected:
            message = f"The judge's answer is not in the required form, even after a second request: {problem}"
            hint = "Try again, or choose another judgeModel."
            raise JudgeError(self.redact(message), hint=hint, code="JUDGE_ANSWER_INVALID")
        self._corrected = True
        again = f"Give it again, whole, by calling {self._tool} once."
        words = self.redact(f"That answer cannot be used: {problem}. {again}")
        self._go_on(content, [_result(call["id"], words, is_error=True) for call in calls] or [text_block(words)])
        return None

    def _opening(self) -> list[Block]:
        question, images = self.question, self.question.common.images
        shown = self._blocks(question.common.blocks)
        shown = images.blocks([block["text"] for block in shown]) if images else shown
        # Behind what is common: the task of this judge is no part of the system prompt.
        shared = self._blocks([question.system, *question.shared])
        for blocks in (shown, shared):
            # What several questions of a run begin with is written into the cache once, at the last block they share.
            if blocks:
                blocks[-1]["cache_control"] = CACHED
        offered = [tool["name"] for tool in self._offered]
        remark = question.lookups.remark if question.lookups else ""
        how = render("answering", tool=self._tool, offered=offered, settings=self.settings, remark=remark)
        return [*shown, *shared, *self._blocks([f"{question.body}\n\n{how}"])]

    def _blocks(self, texts: Iterable[str]) -> list[Block]:
        return [text_block(self.redact(text)) for text in texts if text]

    def _answer_tools(self, left_out: Collection[str]) -> Iterator[Block]:
        strict = {} if "strict" in left_out else {"strict": True}
        for form, schema in self.schemas.items():
            described = f"Give your answer: {(form.__doc__ or form.__name__).strip().splitlines()[0]}"
            yield {"name": tool_name(form), "description": described, "input_schema": dict(schema), **strict}

    def _is_open(self, spent_usd: float) -> bool:
        """Whether it may look up more; the cost is that of the requests after the first."""
        its, spent = self.settings, (self._looked_up, self._characters, spent_usd)
        return all(map(lt, spent, (its.max_lookups, its.max_lookup_characters, its.max_lookup_cost_usd)))

    def _found(self, call: Block, spent_usd: float) -> tuple[SafeText, bool]:
        """What a look-up found, and whether that is a refusal."""
        lookups = self.question.lookups
        if lookups is None or call["name"] not in {tool["name"] for tool in self._offered}:
            return self.redact("There is no tool of this name."), True
        if not self._is_open(spent_usd):
            return self.redact(render("answer-now", tool=self._tool)), True
        self._looked_up += 1
        found = lookups.run(call["name"], call["input"])
        self._characters += len(found)
        if self._characters > self.settings.max_lookup_characters:
            return self.redact("That is more than is left to be looked up: ask for less of it, or answer now."), True
        return found, False

    def _go_on(self, content: Sequence[Block], words: list[Block]) -> None:
        """Note a reply as the API wants to see it again, which refuses an empty message, and what is said to it."""
        said = [*_again(content, self.redact)] or [text_block("{}")]
        self._messages += [{"role": "assistant", "content": said}, {"role": "user", "content": words}]


def tool_name(form: type[BaseModel]) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", form.__name__).lower().strip("_")
    return f"answer_{words}"


def _again(content: Sequence[Block], redact: Redactor) -> Iterator[Block]:
    for block in content:
        match block.get("type"):
            case "text" if block.get("text"):
                yield text_block(redact(str(block["text"])))
            case "tool_use":
                yield {**block, "input": redact.json(block["input"])}
            case "thinking" | "redacted_thinking":
                # Signed: it goes back as it came, or the API refuses it.
                yield dict(block)
            case _:
                pass


def _result(call_id: str, text: SafeText, is_error: bool = False) -> Block:  # noqa: FBT001, FBT002
    result: Block = {"type": "tool_result", "tool_use_id": call_id, "content": [text_block(text)]}
    return {**result, "is_error": True} if is_error else result


def failure(code: str, message: str, hint: str) -> JudgeError:
    """An error; that a question is too long is one of its own."""
    is_too_long = code == PromptTooLongError.default_code
    return PromptTooLongError(message, hint=hint) if is_too_long else JudgeError(message, hint=hint, code=code)


def failure_of_status(status: int, words: SafeText) -> JudgeError:
    """The failure that an HTTP status means; `words` is what the server wrote about it."""
    meant = status
    if status == 400:
        meant = 413 if any(phrase in words for phrase in _TOO_LONG) else 402 if NO_CREDIT in words else 400
    code, sentence, hint = _BY_STATUS.get(meant) or _BY_STATUS[min(meant // 100, 5) * 100]
    return failure(code, f"{sentence} (HTTP {status}){f': {_shortened(words)}' if words else ''}", hint)


def unreachable(words: SafeText) -> JudgeError:
    hint = "Check the network, and gatewayUrl or ANTHROPIC_BASE_URL if they are set."
    return JudgeError(f"The judge could not be reached: {_shortened(words)}", hint=hint, code="JUDGE_UNREACHABLE")


def _shortened(text: str) -> str:
    words = " ".join(text[: 10 * MAX_QUOTE_LENGTH].split())
    return words if len(words) <= MAX_QUOTE_LENGTH else words[:MAX_QUOTE_LENGTH] + " ..."
