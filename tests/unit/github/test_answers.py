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


def test_what_github_says_is_told_with_its_details() -> None:
    errors = [{"code": "unprocessable", "message": "Body is too long"}, {"code": "other"}, "odd"]
    error = refused(422, {"message": "Validation Failed", "errors": errors})
    assert error.detail == "Validation Failed: Body is too long"
    assert error.detail in error.message


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b'{"message": 5, "errors": {}}'])
def test_an_answer_without_words_is_told_by_its_number(body: bytes) -> None:
    assert refused(400, body).message == "GET api.github.com/x was answered with 400."


def test_hostile_words_are_one_short_line_without_secrets() -> None:
    message = f"first\r\n::error::second \x1b[31m\u202e {TOKEN} {'x' * 10_000}"
    error = refused(400, {"message": message})
    assert error.detail.isprintable()
    assert error.detail.startswith("first ::error::second [31m *** xxx")
    assert len(error.message) < 400
