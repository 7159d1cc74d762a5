"""Whether and when a request is sent again. Pure."""

from email.utils import parsedate_to_datetime

from zelda_ci.github.answer import QUOTA_WORDS, RATE_LIMIT_WORDS, Answer

MOST_ATTEMPTS = 5
LONGEST_PAUSE = 30.0
SECONDARY_PAUSE = 60.0
PASSING = frozenset({408, 500, 502, 503, 504})
"""Answers of a server that may be well again in a moment, whether or not it carried the request out."""


def after_answer(answer: Answer, attempt: int, now: float) -> float | None:
    """Seconds to wait before the next attempt, or None where the answer is final.

    Args:
        answer: What came.
        attempt: How many there were before this one.
        now: Unix time, for limits that end at a certain time.
    """
    if (answer.status < 400 and not answer.is_limited) or QUOTA_WORDS in answer.said.lower():
        return None
    told = _retry_after(answer.headers.get("retry-after", ""), now)
    if answer.is_limited:
        return _limit_pause(answer, attempt, now) if told is None else told
    if answer.status in PASSING:
        return after_silence(attempt) if told is None else told
    return None


def after_silence(attempt: int) -> float:
    """Seconds to wait where nothing came."""
    return min(2.0**attempt, LONGEST_PAUSE)


def _limit_pause(answer: Answer, attempt: int, now: float) -> float:
    reset = answer.headers.get("x-ratelimit-reset", "")
    if answer.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        # A second more, since clocks differ.
        return max(0.0, int(reset[:15]) - now) + 1
    exponential = SECONDARY_PAUSE * 2.0**attempt
    secondary = RATE_LIMIT_WORDS in answer.said.lower() or answer.status == 403
    return exponential if secondary else min(exponential, after_silence(attempt + 2))


def _retry_after(value: str, now: float) -> float | None:
    if value.isdecimal():
        return float(value[:15])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):  # it is a server's, and may be anything
        return None
