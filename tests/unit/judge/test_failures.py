"""What a refusal of the judge's API means."""

import pytest

from tests.builders import safe
from zelda_ci.judge.base import PromptTooLongError
from zelda_ci.judge.conversation import failure_of_status

STATUSES: dict[int, str] = {
    302: "JUDGE_NOT_AN_API",
    399: "JUDGE_NOT_AN_API",
    400: "JUDGE_REQUEST_REFUSED",
    401: "JUDGE_AUTHENTICATION_FAILED",
    402: "JUDGE_BILLING_FAILED",
    403: "JUDGE_ACCESS_DENIED",
    404: "JUDGE_MODEL_NOT_FOUND",
    408: "JUDGE_API_FAILED",
    409: "JUDGE_API_FAILED",
    413: "JUDGE_PROMPT_TOO_LONG",
    422: "JUDGE_REQUEST_REFUSED",
    429: "JUDGE_RATE_LIMITED",
    499: "JUDGE_REQUEST_REFUSED",
    500: "JUDGE_API_FAILED",
    529: "JUDGE_OVERLOADED",
    599: "JUDGE_API_FAILED",
}


def test_each_status_has_its_code_and_quotes_the_server() -> None:
    for status, code in STATUSES.items():
        found = failure_of_status(status, safe("the server's own words"))
        assert found.code == code
        assert f"(HTTP {status}): the server's own words" in found.message


@pytest.mark.parametrize(
    "words",
    [
        "prompt is too long: 225850 tokens > 200,000 maximum",
        "input length and `max_tokens` exceed context limit: 225850 + 8192 > 200000",
        "Input is too long for requested model.",
    ],
)
def test_a_prompt_that_is_too_long_is_told_by_the_phrases_of_the_api(words: str) -> None:
    assert isinstance(failure_of_status(400, safe(words)), PromptTooLongError)
    assert failure_of_status(422, safe(words)).code == "JUDGE_REQUEST_REFUSED"


@pytest.mark.parametrize("words", ["context_management: Extra inputs are not permitted", "thinking is too long ago"])
def test_another_refusal_that_speaks_of_context_or_length_is_a_refusal(words: str) -> None:
    assert failure_of_status(400, safe(words)).code == "JUDGE_REQUEST_REFUSED"
