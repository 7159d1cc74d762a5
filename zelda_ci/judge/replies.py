"""Replies of the judge's model, and why there was none: in sentences, with whether asking again may help."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from zelda_ci.domain.session import Usage
from zelda_ci.errors import JudgeError
from zelda_ci.redact import SafeText

MAX_QUOTE_LENGTH = 300


class AttemptFailed(Exception):  # noqa: N818 - what went wrong, not a kind of error
    """One request brought nothing.

    Args:
        error: What to tell if this was the last attempt.
        again: Whether another attempt may help.
        wait_seconds: What the server asks to wait first, if it does.
    """

    def __init__(self, error: JudgeError, *, again: bool, wait_seconds: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.again = again
        self.wait_seconds = wait_seconds


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


def of_status(status: int, headers: Mapping[str, str], words: SafeText) -> AttemptFailed:
    """The failure that an HTTP status means; `said` is what the server wrote about it."""
    if status == 400 and ("too long" in words or "context" in words):
        kind = _KINDS[413]
    else:
        kind = _KINDS.get(status, _SERVER if status >= 500 else _REQUEST if status >= 400 else _MOVED)
    quoted = f": {_shortened(words)}" if words else ""
    error = JudgeError(f"{kind.sentence} (HTTP {status}){quoted}", hint=kind.hint, code=kind.code)
    again = kind.again and headers.get("x-should-retry") != "false"
    return AttemptFailed(error, again=again, wait_seconds=_retry_after(headers))


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


def of_stop(reason: str) -> AttemptFailed | None:
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
    return AttemptFailed(JudgeError(sentence, hint=hint, code=code), again=False)


def too_late(seconds: float, last: JudgeError | None) -> JudgeError:
    """The deadline passed; the last failure before it, if any, tells most."""
    before = f" The last attempt: {last.message}" if last else ""
    message = f"The judge gave no answer within {seconds:g} s.{before}"
    return JudgeError(message, hint="Raise judge.timeoutSeconds, or try again later.", code="JUDGE_TIMEOUT")


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
class ModelReply:
    """What counts of one answer."""

    text: str
    stop_reason: str
    usage: Mapping[str, Any]

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


def read_reply(data: bytes) -> ModelReply | None:
    """The reply, or nothing where this is no message of the API."""
    try:
        message = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(message, dict) or not isinstance(content := message.get("content"), list):
        return None
    texts = [block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"]
    usage = message.get("usage")
    return ModelReply(
        "".join(text for text in texts if isinstance(text, str)),
        str(message.get("stop_reason")),
        usage if isinstance(usage, dict) else {},
    )
