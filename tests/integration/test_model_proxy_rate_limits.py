"""Refusals of the API for the rate of requests: all wait, nobody fails, and all of it is counted as it should be."""

import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import AnyByteStream

from tests.support.claude_sessions import with_more_time
from tests.support.command import the_result, zelda
from tests.support.patience import PATIENCE
from tests.support.projects import repository
from tests.support.proxied import BODY, REDACT, ask, client, listening, open_run, until, upstream
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, Tokens, hang, http_error, text, tool_call
from zelda_ci.model_proxy import live
from zelda_ci.model_proxy.cassettes import load
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.model_proxy.rate_limits import RateLimits, UpstreamPause

pytestmark = pytest.mark.anyio

PAUSE = 1.5
RUN: dict[str, Any] = {"run_label": "a", "budget_usd": None, "placeholders": {}}


def limited(pause: float = PAUSE) -> Reply:
    """A refusal of the API."""
    return http_error(429, "slow down", headers={"retry-after": str(pause)})


@dataclass
class Limit:
    """A script that refuses the first request once so many are there, and notes when each came."""

    together: int = 1
    times: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, _: ApiRequest) -> Reply:
        with self._lock:
            self.times.append(time.monotonic())
            number = len(self.times)
        if number > 1:
            return text("Fine.")
        deadline = time.monotonic() + PATIENCE
        while len(self.times) < self.together and time.monotonic() < deadline:
            time.sleep(0.01)
        return limited()

    @property
    def silence(self) -> tuple[int, float]:
        """After how many requests nobody asked for longest, and for how many seconds."""
        gaps = [(after - before, number) for number, (before, after) in enumerate(pairwise(self.times), 1)]
        seconds, number = max(gaps)
        return number, seconds


class Job:
    """The proxies of one job, of sessions and of judges, which share the pauses."""

    def __init__(self, url: str) -> None:
        self.told: list[str] = []
        rate_limits: RateLimits = defaultdict(lambda: UpstreamPause(self.told.append))
        self.sessions, self.judges = [ModelProxy(upstream(url), REDACT, rate_limits=rate_limits) for _ in range(2)]


@asynccontextmanager
async def job(url: str) -> AsyncIterator[Job]:
    made = Job(url)
    async with made.sessions, made.judges:
        yield made


async def all_at_once(*meters: Meter) -> list[httpx2.Response]:
    """One request of each."""
    answers: list[httpx2.Response] = []

    async def one(meter: Meter) -> None:
        answers.append(await ask(meter))

    async with anyio.create_task_group() as group:
        for meter in meters:
            group.start_soon(one, meter)
    return answers


async def test_one_refusal_makes_all_sessions_and_judges_wait_and_none_hears_of_it() -> None:
    limit = Limit(together=3)
    with ScriptedApi(limit) as api:
        async with job(api.url) as made, AsyncExitStack() as stack:
            runs = [each.session(**RUN) for each in (made.sessions, made.sessions, made.judges)]
            meters = [await stack.enter_async_context(run) for run in runs]
            answers = await all_at_once(*meters)
            more = [await ask(meter) for meter in meters]
    assert {answer.status_code for answer in (*answers, *more)} == {200}
    # The three of them, and in the pause nobody; then the one that was refused, and three more.
    assert len(limit.times) == 7
    number, seconds = limit.silence
    assert number == 3
    assert seconds >= PAUSE
    assert made.told == [f"{api.url} refuses requests for their rate (HTTP 429): all requests wait for 1.5 s"]
    counted = [meter.usage() for meter in meters]
    assert [(used.requests, used.retries, used.errors) for used in counted] == [(2, 0, {})] * 3
    assert sorted(used.throttled for used in counted) == [0, 0, 1]
    waited = [used.wait_seconds for used in counted]
    assert max(waited) >= PAUSE
    # What was waited is not the API's time.
    assert all(used.api_seconds < PAUSE for used in counted)


async def test_a_check_waits_for_nothing() -> None:
    with ScriptedApi([], check=limited(60)) as api:
        async with job(api.url) as made:
            found = await made.sessions.probe("claude-sonnet-5-5", lambda _: None)
    assert (found.status, found.message) == (429, "slow down")


async def test_a_refusal_that_cannot_be_waited_for_is_passed_on_as_the_last_one() -> None:
    refusal = http_error(429, "slow down", headers={"retry-after": "60", "x-should-retry": "true"})
    with ScriptedApi([refusal]) as api:
        async with ModelProxy(upstream(api.url), REDACT) as proxy, proxy.session(**RUN) as meter:
            meter.wait.max_seconds = 1
            answer = await ask(meter)
            assert (answer.status_code, answer.headers.get_list("x-should-retry")) == (429, ["false"])
            later = await ask(meter)
    assert later.json()["error"]["message"].endswith("longer than the 1.0 s that one run may")
    assert (meter.usage().requests, meter.usage().errors) == (1, {"429": 1})


async def test_a_refused_token_count_holds_up_nobody() -> None:
    async def serve(stream: AnyByteStream) -> None:
        async with stream:
            is_count = b"count_tokens" in await stream.receive()
            head = "HTTP/1.1 429 Slow\r\nretry-after: 60" if is_count else "HTTP/1.1 200 OK"
            await stream.send(f"{head}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}".encode())

    async with listening(serve) as url, open_run(upstream(url)) as meter, client(meter) as http:
        count = await http.post("/v1/messages/count_tokens", json=BODY)
        assert (count.status_code, (await ask(meter)).status_code) == (429, 200)


async def test_what_waited_is_not_asked_once_the_budget_is_spent() -> None:
    gate, spent = threading.Event(), Tokens(1000, 100)
    with ScriptedApi([text("Dear.", tokens=spent, gate=gate), limited(1)]) as api:
        async with open_run(upstream(api.url), budget_usd=0.0025) as meter, anyio.create_task_group() as group:
            statuses = []

            async def one() -> None:
                statuses.append((await ask(meter)).status_code)

            group.start_soon(one)
            await until(lambda: len(api.requests) == 1)
            group.start_soon(one)
            await until(lambda: meter.wait.throttled == 1)
            gate.set()
    assert statuses == [200, 402]
    assert (len(api.requests), meter.usage().requests) == (2, 1)


async def test_a_recording_has_neither_the_refusal_nor_the_waiting(tmp_path: Path) -> None:
    with ScriptedApi(Limit()) as api:
        async with open_run(upstream(api.url), cassettes=tmp_path) as meter:
            assert (await ask(meter)).status_code == 200
    assert meter.usage().throttled == 1
    (exchange,) = load(tmp_path / "run.json").exchanges
    assert exchange.status == 200
    async with open_run(None, cassettes=tmp_path) as meter:
        began = time.monotonic()
        replayed = await ask(meter)
        assert time.monotonic() - began < PAUSE
    assert b'"Fine."' in replayed.content
    used = meter.usage()
    assert (used.requests, used.throttled, used.wait_seconds) == (1, 0, 0)
    assert (meter.cassette.failure, meter.cassette.remarks) == (None, [])


async def test_an_api_that_says_nothing_is_given_up_and_its_answer_has_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claude Code waits for those who wait; so the proxy has to notice."""
    monkeypatch.setattr(live, "HEAD_SECONDS", 0.3)
    with ScriptedApi([hang()]) as api:
        async with open_run(upstream(api.url), budget_usd=1.0) as meter:
            answer = await ask(meter)
            assert sum(exchange.estimated_usd for exchange in meter._exchanges) > 0
    assert answer.status_code == 502
    assert answer.json()["error"]["message"] == f"Zelda's model proxy got no answer from {api.url} within 0.3 s"
    assert meter.usage().errors == {"connection": 1}


SUITE = """\
prompt: Add a greeting and commit it.
execution: {{maxTurns: 6, timeoutSeconds: {limit}}}
metrics: {{toolUsage: false}}
"""


def test_waiting_takes_nothing_of_a_suites_time_and_is_told(tmp_path: Path) -> None:
    def is_told(place: Path, limit: int) -> bool:
        first, work, second = limit // 3, limit // 4, limit * 5 // 12
        project = repository(place, {"README.md": "# Sample\n", "zelda/test-greeting.yaml": SUITE.format(limit=limit)})
        script: list[Reply] = [
            limited(first),
            tool_call("Bash", {"command": f"sleep {work} && echo hello > greeting.txt"}),
            limited(second),
            text("Done."),
        ]
        with ScriptedApi(script) as api:
            done = zelda(project, "run", "--verbose", api=api.url)
        result = the_result(project)
        if result["status"] == "timedOut":
            return False
        assert done.returncode == 0, done.stdout + done.stderr
        assert result["status"] == "completed"
        api_usage = result["api"]
        assert (api_usage["requests"], api_usage["throttled"], api_usage["errors"]) == (2, 2, {})
        assert first + second <= api_usage["waitSeconds"] < limit
        # Together they took longer than the session may.
        assert result["phaseSeconds"]["session"] > limit
        details = result["evaluations"]["efficiency"]["details"]
        assert work <= details["wallSeconds"] < result["phaseSeconds"]["session"] - first - second
        output = done.stdout + done.stderr
        assert output.count("refuses requests for their rate (HTTP 429): all requests wait for") == 2
        assert "waited for the API's rate limit: " in output
        return True

    with_more_time(is_told, tmp_path, 12, 48, 144)
