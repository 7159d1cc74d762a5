"""Replies of the judge's model, and why there was none: in sentences, with whether asking again may help."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from zelda_ci.domain.session import Usage
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import PromptTooLongError
from zelda_ci.redact import SafeText

MAX_QUOTE_LENGTH = 300

# Code of a deadline that has passed, of a question as of one of its requests.
STALLED = "JUDGE_TIMEOUT"


class AttemptFailed(Exception):  # noqa: N818 - what went wrong, not a kind of error
    """One request brought nothing.

    Args:
        error: What to tell if this was the last attempt.
        again: Whether another attempt may help.
        wait_seconds: What the server asks to wait first, if it does.
        status: Of HTTP, where there was one.
    """

    def __init__(
        self, error: JudgeError, *, again: bool, wait_seconds: float | None = None, status: int | None = None
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.again = again
        self.wait_seconds = wait_seconds
        self.status = status


@dataclass(frozen=True)
class _Kind:
    code: str
    sentence: str
    hint: str
    again: bool = False


_KINDS = {
    401: _Kind(
        "JUDGE_AUTHENTICATION_FAILED",
        "The judge's key was refused",
        "Check ANTHROPIC_API_KEY, or PORTKEY_API_KEY where a gateway is configured.",
    ),
    402: _Kind("JUDGE_BILLING_FAILED", "The judge's account cannot pay", "Check credit and limits of the account."),
    403: _Kind("JUDGE_ACCESS_DENIED", "The judge's key may not use this model", "Check what the key may use."),
    404: _Kind(
        "JUDGE_MODEL_NOT_FOUND",
        "The judge's model or address does not exist",
        "Check judgeModel, and gatewayUrl where it is set.",
    ),
    408: _Kind("JUDGE_API_FAILED", "The judge's API gave up waiting", "Try again later.", again=True),
    409: _Kind("JUDGE_API_FAILED", "The judge's API reports a conflict", "Try again later.", again=True),
    413: _Kind("JUDGE_PROMPT_TOO_LONG", "The question is too large for the judge", "Lower judge.contextTokens."),
    429: _Kind("JUDGE_RATE_LIMITED", "The judge's rate limit is reached", "Try again later.", again=True),
    529: _Kind("JUDGE_OVERLOADED", "The judge's provider is overloaded", "Try again later.", again=True),
}
_MOVED = _Kind(
    "JUDGE_NOT_AN_API",
    "The judge's address redirects elsewhere, and Zelda does not follow",
    "Check gatewayUrl or ANTHROPIC_BASE_URL.",
)
_SERVER = _Kind("JUDGE_API_FAILED", "The judge's API failed", "Try again later.", again=True)
_REQUEST = _Kind("JUDGE_REQUEST_REFUSED", "The judge's API refused the request", "Check judgeModel and judge.")


# The same inside a stream that had begun well.
_STREAMED = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "authentication_error": 401,
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

_TOKENS = re.compile(r"(\d[\d,]*) tokens? > (\d[\d,]*)")


def of_status(status: int, headers: Mapping[str, str], words: SafeText) -> AttemptFailed:
    """The failure that an HTTP status means; `words` is what the server wrote about it."""
    if is_too_long := status == 413 or (status == 400 and any(phrase in words for phrase in _TOO_LONG)):
        kind = _KINDS[413]
    elif status == 400 and NO_CREDIT in words:
        kind = _KINDS[402]
    else:
        kind = _KINDS.get(status, _SERVER if status >= 500 else _REQUEST if status >= 400 else _MOVED)
    quoted = f": {_shortened(words)}" if words else ""
    message = f"{kind.sentence} (HTTP {status}){quoted}"
    error = _too_long(message, words) if is_too_long else JudgeError(message, hint=kind.hint, code=kind.code)
    again = kind.again and headers.get("x-should-retry") != "false"
    return AttemptFailed(error, again=again, wait_seconds=_retry_after(headers), status=status)


def _too_long(message: str, words: str) -> PromptTooLongError:
    """With the sizes, where the API tells them."""
    match = _TOKENS.search(words)
    tokens, most = (int(number.replace(",", "")) for number in match.groups()) if match else (None, None)
    return PromptTooLongError(message, hint=_KINDS[413].hint, tokens=tokens, max_tokens=most)


def of_event(body: object, words: SafeText) -> AttemptFailed:
    """The failure that a stream tells of which had begun well; `words` is what the server wrote about it."""
    told = body.get("error") if isinstance(body, dict) else None
    kind = str(told.get("type")) if isinstance(told, dict) else ""
    return of_status(_STREAMED.get(kind, 500), {}, words)


def stalled() -> AttemptFailed:
    """Nothing was heard for too long."""
    error = JudgeError("The judge fell silent.", hint="Try again later.", code=STALLED)
    return AttemptFailed(error, again=True)


def of_connection(words: SafeText) -> AttemptFailed:
    """The judge could not be reached, or the connection broke."""
    hint = "Check the network, and gatewayUrl or ANTHROPIC_BASE_URL if they are set."
    error = JudgeError(f"The judge could not be reached: {_shortened(words)}", hint=hint, code="JUDGE_UNREACHABLE")
    return AttemptFailed(error, again=True)


def not_an_api(words: SafeText) -> AttemptFailed:
    """Something answered that does not speak the Messages API."""
    quoted = _shortened(words) or "nothing"
    message = f"The judge's address does not answer like the Messages API; it says: {quoted}"
    hint = "Check gatewayUrl or ANTHROPIC_BASE_URL."
    return AttemptFailed(JudgeError(message, hint=hint, code="JUDGE_NOT_AN_API"), again=False)


def of_stop(reason: str | None) -> AttemptFailed | None:
    """The failure that a stop reason means; nothing where the answer is whole."""
    failures = {
        "refusal": ("JUDGE_REFUSED", "The judge refused to answer.", "Choose another judgeModel."),
        "max_tokens": (
            "JUDGE_ANSWER_CUT",
            "The judge's answer was longer than it may be.",
            "Raise judge.maxTokens, or write fewer acceptance criteria.",
        ),
        "model_context_window_exceeded": (
            "JUDGE_PROMPT_TOO_LONG",
            "Question and answer together are too large for the judge.",
            "Lower judge.contextTokens to what the model really has.",
        ),
    }
    if reason not in failures:
        return None
    code, sentence, hint = failures[reason]
    is_too_long = code == PromptTooLongError.default_code
    error = PromptTooLongError(sentence, hint=hint) if is_too_long else JudgeError(sentence, hint=hint, code=code)
    return AttemptFailed(error, again=False)


def too_late(seconds: float, last: JudgeError | None) -> JudgeError:
    """The deadline passed; the last failure before it, if any, tells most."""
    before = f" The last attempt: {last.message}" if last else ""
    message = f"The judge gave no answer within {seconds:g} s.{before}"
    return JudgeError(message, hint="Raise judge.timeoutSeconds, or try again later.", code=STALLED)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from a number or a date; nothing where the header makes no sense."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return seconds if seconds > 0 else None


def _shortened(text: str) -> str:
    words = " ".join(text[: 10 * MAX_QUOTE_LENGTH].split())
    return words if len(words) <= MAX_QUOTE_LENGTH else words[:MAX_QUOTE_LENGTH] + " ..."


@dataclass(frozen=True)
class ModelCall:
    """A call of a tool that the model makes."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass(frozen=True)
class ModelReply:
    """What counts of one answer."""

    content: tuple[dict[str, Any], ...]
    """Blocks as they came."""
    stop_reason: str | None
    usage: Mapping[str, Any]

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """Calls of tools, in order."""
        calls = (block for block in self.content if block.get("type") == "tool_use")
        return tuple(ModelCall(block["id"], block["name"], block["input"]) for block in calls)

    @property
    def tokens(self) -> Usage:
        """Tokens by kind."""
        return Usage(
            input_tokens=self._count("input_tokens"),
            output_tokens=self._count("output_tokens"),
            cache_read_tokens=self._count("cache_read_input_tokens"),
            cache_write_tokens=self._count("cache_creation_input_tokens"),
        )

    def _count(self, name: str) -> int:
        value = self.usage.get(name)
        return value if isinstance(value, int) and value > 0 else 0
