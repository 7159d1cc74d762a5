"""What an answer of the judge's API means: each status, and what was counted."""

import pytest

from tests.builders import safe
from zelda_ci.judge.base import PromptTooLongError
from zelda_ci.judge.replies import ModelReply, of_status

STATUSES: dict[int, tuple[str, bool]] = {
    302: ("JUDGE_NOT_AN_API", False),
    399: ("JUDGE_NOT_AN_API", False),
    400: ("JUDGE_REQUEST_REFUSED", False),
    401: ("JUDGE_AUTHENTICATION_FAILED", False),
    402: ("JUDGE_BILLING_FAILED", False),
    403: ("JUDGE_ACCESS_DENIED", False),
    404: ("JUDGE_MODEL_NOT_FOUND", False),
    408: ("JUDGE_API_FAILED", True),
    409: ("JUDGE_API_FAILED", True),
    413: ("JUDGE_PROMPT_TOO_LONG", False),
    422: ("JUDGE_REQUEST_REFUSED", False),
    429: ("JUDGE_RATE_LIMITED", True),
    499: ("JUDGE_REQUEST_REFUSED", False),
    500: ("JUDGE_API_FAILED", True),
    529: ("JUDGE_OVERLOADED", True),
    599: ("JUDGE_API_FAILED", True),
}


def test_each_status_has_its_code_and_is_tried_again_where_that_may_help() -> None:
    for status, (code, again) in STATUSES.items():
        found = of_status(status, {}, safe("the server's own words"))
        assert (found.error.code, found.again, found.status) == (code, again, status)
        assert f"(HTTP {status}): the server's own words" in found.error.message
        assert not of_status(status, {"x-should-retry": "false"}, safe("")).again


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        ("prompt is too long: 225850 tokens > 200,000 maximum", (225_850, 200_000)),
        ("input length and `max_tokens` exceed context limit: 225850 + 8192 > 200000", (None, None)),
        ("Input is too long for requested model.", (None, None)),
    ],
)
def test_a_prompt_that_is_too_long_is_told_by_the_phrases_of_the_api(
    words: str, sizes: tuple[int | None, int | None]
) -> None:
    error = of_status(400, {}, safe(words)).error
    assert isinstance(error, PromptTooLongError)
    assert (error.code, error.tokens, error.max_tokens) == ("JUDGE_PROMPT_TOO_LONG", *sizes)
    assert of_status(422, {}, safe(words)).error.code == "JUDGE_REQUEST_REFUSED"


@pytest.mark.parametrize("words", ["context_management: Extra inputs are not permitted", "thinking is too long ago"])
def test_another_refusal_that_speaks_of_context_or_length_is_a_refusal(words: str) -> None:
    assert of_status(400, {}, safe(words)).error.code == "JUDGE_REQUEST_REFUSED"


@pytest.mark.parametrize(("told", "counted"), [(2, 2), (1, 1), (0, 0), (-1, 0), ("5", 0), (None, 0)])
def test_what_is_no_number_of_tokens_counts_as_none(told: object, counted: int) -> None:
    assert ModelReply((), "end_turn", {"cache_read_input_tokens": told}).tokens.cache_read_tokens == counted
