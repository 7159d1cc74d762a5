"""When a request is sent again."""

import json

import pytest

from zelda_ci.github.http import after_answer, after_silence
from zelda_ci.github.schemas import ApiResponse

NOW = 1_800_000_000.0


def answer(status: int, message: str = "", **headers: str) -> ApiResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ApiResponse(status, named, json.dumps({"message": message}).encode(), "GET api")


@pytest.mark.parametrize("status", [200, 201, 302, 304, 400, 401, 403, 404, 409, 410, 422, 501])
def test_a_final_answer_is_final(status: int) -> None:
    assert after_answer(answer(status, "Resource not accessible by integration"), 0, NOW) is None


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
def test_a_server_in_trouble_gets_time(status: int) -> None:
    assert [after_answer(answer(status), attempt, NOW) for attempt in range(6)] == [1, 2, 4, 8, 16, 30]


@pytest.mark.parametrize("status", [403, 429, 503])
def test_retry_after_is_obeyed(status: int) -> None:
    assert after_answer(answer(status, retry_after="7"), 3, NOW) == 7


def test_retry_after_may_be_a_date() -> None:
    assert after_answer(answer(429, retry_after="Fri, 15 Jan 2027 08:00:30 GMT"), 0, NOW) == 30
    assert after_answer(answer(429, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), 0, NOW) == 0


@pytest.mark.parametrize("garbage", ["soon", "-1", "", "1e3", "²", "99 bottles"])
def test_a_retry_after_that_makes_no_sense_is_no_reason_to_hurry(garbage: str) -> None:
    pause = after_answer(answer(429, "rate limit", retry_after=garbage), 0, NOW)
    assert pause is not None
    assert pause >= 4


def test_the_hours_limit_is_waited_for_until_it_ends() -> None:
    ends = {"x_ratelimit_remaining": "0", "x_ratelimit_reset": str(int(NOW) + 100)}
    assert after_answer(answer(403, "API rate limit exceeded", **ends), 0, NOW) == 101
    past = {**ends, "x_ratelimit_reset": str(int(NOW) - 100)}
    assert after_answer(answer(403, "API rate limit exceeded", **past), 0, NOW) == 1


def test_the_secondary_limit_gets_a_minute_and_then_more() -> None:
    limited = answer(403, "You have exceeded a secondary rate limit.", x_ratelimit_remaining="4000")
    assert [after_answer(limited, attempt, NOW) for attempt in range(3)] == [60, 120, 240]


def test_a_used_up_quota_is_not_waited_for() -> None:
    told = ApiResponse(
        429, {}, b'{"code": "resource_exhausted", "msg": "insufficient usage to create artifact"}', "POST x"
    )
    assert after_answer(told, 0, NOW) is None


def test_silence_gets_more_time_each_time() -> None:
    assert [after_silence(attempt) for attempt in range(7)] == [1, 2, 4, 8, 16, 30, 30]
