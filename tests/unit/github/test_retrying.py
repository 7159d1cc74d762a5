"""When a request is sent again, and what a refusal tells the user."""

import io
import json
from dataclasses import replace
from typing import Any

import pytest

from zelda_ci.errors import GitHubError
from zelda_ci.github.api import MAX_ATTEMPTS, Answer, HttpRequest, refused

NOW = 1_800_000_000.0
TOKEN = "token-of-the-workflow"
GET = HttpRequest("GET", "https://api.github.com/x", {"Authorization": f"Bearer {TOKEN}"})


def answer(status: int, body: Any = b"", **headers: str) -> Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(GET, status, named, io.BytesIO(data))


def pause_after(outcome: Answer, attempts: int = 1) -> float | None:
    """Seconds before the next attempt after so many, None where the answer is final."""
    return refused(outcome, attempts, NOW)[1]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422, 501])
def test_a_final_answer_is_final(status: int) -> None:
    assert pause_after(answer(status, {"message": "Resource not accessible by integration"})) is None


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
def test_a_server_in_trouble_gets_time(status: int) -> None:
    assert [pause_after(answer(status), attempts) for attempts in range(1, MAX_ATTEMPTS)] == [1, 2, 4, 8]
    assert pause_after(answer(status, retry_after="7"), 3) == 7


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
def test_what_may_have_happened_is_not_done_again(status: int) -> None:
    lost = replace(answer(status), request=HttpRequest("POST", GET.url))
    assert pause_after(lost) is None
    assert refused(lost, 1, NOW)[0].code == "GITHUB_ANSWER_LOST"
    assert pause_after(replace(answer(status), request=HttpRequest("POST", GET.url, repeatable=True))) == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("status", [403, 429])
def test_a_limit_means_that_nothing_happened(method: str, status: int) -> None:
    assert pause_after(replace(answer(status, retry_after="7"), request=HttpRequest(method, GET.url)), 3) == 7


@pytest.mark.parametrize("garbage", ["soon", "-1", "", "1e3", "²", "99 bottles", "9" * 5000, "Wed, 99 Oct 99999 99:99"])
def test_a_retry_after_that_makes_no_sense_is_no_reason_to_hurry(garbage: str) -> None:
    pause = pause_after(answer(429, {"message": "rate limit"}, retry_after=garbage))
    assert pause is not None
    assert pause >= 4


def test_the_hours_limit_is_waited_for_until_it_ends() -> None:
    ends = {"x_ratelimit_remaining": "0", "x_ratelimit_reset": str(int(NOW) + 100)}
    assert pause_after(answer(403, {"message": "API rate limit exceeded"}, **ends)) == 101
    past = {**ends, "x_ratelimit_reset": str(int(NOW) - 100)}
    assert pause_after(answer(403, {"message": "API rate limit exceeded"}, **past)) == 1


def test_a_used_up_quota_is_not_waited_for() -> None:
    quota = b'{"code": "resource_exhausted", "msg": "insufficient usage to create artifact"}'
    assert pause_after(answer(429, quota)) is None


def told(status: int, body: Any = b"", **headers: str) -> GitHubError:
    return refused(answer(status, body, **headers), 1, NOW)[0]


@pytest.mark.parametrize(
    ("status", "body", "headers", "code"),
    [
        (401, {"message": "Bad credentials"}, {}, "GITHUB_NOT_PERMITTED"),
        (403, {"message": "Resource not accessible by integration"}, {}, "GITHUB_NOT_PERMITTED"),
        (403, {"message": "Unable to create comment because issue is locked."}, {}, "GITHUB_REFUSED"),
        (403, {"message": "This workflow is already running"}, {}, "GITHUB_REFUSED"),
        (403, {"message": "no"}, {"x_ratelimit_remaining": "0"}, "GITHUB_RATE_LIMITED"),
        (403, {"message": "no"}, {"retry_after": "5"}, "GITHUB_RATE_LIMITED"),
        (403, {"message": "You have exceeded a secondary rate limit."}, {}, "GITHUB_RATE_LIMITED"),
        (403, b"<html>forbidden</html>", {}, "GITHUB_NOT_PERMITTED"),
        (429, b"", {}, "GITHUB_RATE_LIMITED"),
        (404, {"message": "Not Found"}, {}, "GITHUB_NOT_FOUND"),
        (410, b"", {}, "GITHUB_GONE"),
        (422, {"message": "Validation Failed"}, {}, "GITHUB_REFUSED"),
        (502, b"<html>", {}, "GITHUB_UNREACHABLE"),
    ],
)
def test_a_refusal_has_a_code(status: int, body: Any, headers: dict[str, str], code: str) -> None:
    error = told(status, body, **headers)
    assert (error.code, error.status) == (code, status)


def test_what_github_says_is_told_with_its_details() -> None:
    errors = [{"code": "unprocessable", "message": "Body is too long"}, {"code": "other"}, "odd"]
    error = told(422, {"message": "Validation Failed", "errors": errors})
    assert error.detail == "Validation Failed: Body is too long"
    assert error.detail in error.message


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b'{"message": 5, "errors": {}}'])
def test_an_answer_without_words_is_told_by_its_number(body: bytes) -> None:
    assert told(400, body).message == "GET api.github.com/x was answered with 400."


def test_hostile_words_are_one_short_line_without_secrets() -> None:
    message = f"first\r\n::error::second \x1b[31m\u202e {TOKEN} {'x' * 10_000}"
    error = told(400, {"message": message})
    assert error.detail.isprintable()
    assert error.detail.startswith("first ::error::second [31m *** xxx")
    assert len(error.message) < 400
