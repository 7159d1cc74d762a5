"""What a refusal tells the user."""

import json
from typing import Any

import pytest

from zelda_ci.errors import GitHubError
from zelda_ci.github.schemas import ApiResponse, refusal
from zelda_ci.redact import Redactor, Secret

TOKEN = "token-of-the-workflow"


def refused(status: int, body: Any = b"", **headers: str) -> GitHubError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return refusal(ApiResponse(status, named, data, "GET api.github.com/x"), Redactor([Secret(TOKEN)]))


@pytest.mark.parametrize(
    ("status", "body", "headers", "code"),
    [
        (401, {"message": "Bad credentials"}, {}, "GITHUB_NOT_PERMITTED"),
        (403, {"message": "Resource not accessible by integration"}, {}, "GITHUB_NOT_PERMITTED"),
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
    error = refused(status, body, **headers)
    assert (error.code, error.status) == (code, status)


def test_a_missing_permission_is_named() -> None:
    error = refused(
        403, {"message": "no"}, x_accepted_github_permissions="issues=write,contents=read; pull_requests=write"
    )
    assert error.hint is not None
    assert "issues: write and contents: read or pull_requests: write" in error.hint


def test_the_end_of_a_limit_is_told() -> None:
    limited = refused(403, {"message": "no"}, x_ratelimit_remaining="0", x_ratelimit_reset="1800000000")
    assert limited.hint == "GitHub limits how often it may be asked; run the job again after 08:00 UTC."
    for odd in ("soon", "9" * 30, ""):
        error = refused(403, {"message": "no"}, x_ratelimit_remaining="0", x_ratelimit_reset=odd)
        assert "again later" in str(error.hint)


def test_a_permission_that_is_no_permission_is_not_printed() -> None:
    error = refused(403, {"message": "no"}, x_accepted_github_permissions="::error::x=y\x1b[31m")
    assert error.hint is not None
    assert "::" not in error.hint
    assert "\x1b" not in error.hint


def test_what_github_says_is_told_with_its_details() -> None:
    errors = [{"code": "unprocessable", "message": "Body is too long"}, {"code": "other"}, "odd"]
    error = refused(422, {"message": "Validation Failed", "errors": errors})
    assert error.detail == "Validation Failed: Body is too long"
    assert error.detail in error.message


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"[]", b'{"message": 5, "errors": {}}', b'{"message": "a", "message": "b"}']
)
def test_an_answer_without_words_is_told_by_its_number(body: bytes) -> None:
    assert refused(400, body).message == "GET api.github.com/x was answered with 400."


def test_hostile_words_are_one_short_line_without_secrets() -> None:
    message = f"first\r\n::error::second \x1b[31m\u202e {TOKEN} {'x' * 10_000}"
    error = refused(400, {"message": message})
    assert error.detail.isprintable()
    assert error.detail.startswith("first ::error::second [31m *** xxx")
    assert len(error.message) < 400


def test_an_answer_that_is_no_json_says_so() -> None:
    with pytest.raises(GitHubError, match=r"The answer to GET api\.github\.com/x cannot be used: not JSON"):
        ApiResponse(200, {}, b"<html>", "GET api.github.com/x").json()
