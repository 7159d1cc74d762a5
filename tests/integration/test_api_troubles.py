"""An API that misbehaves, through the real command and the real CLI: what it costs, and what is said of it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_judge_command import is_judge
from tests.support.claude_sessions import with_more_time
from tests.support.command import results, zelda
from tests.support.judging import answer, verdict
from tests.support.projects import Project, repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, Tokens, hang, http_error, raw, text, tool_call
from tests.support.scripted_replies import Wire, events, sse

ALONE = "metrics: {requirementFulfillment: false, toolUsage: false}\n"
JUDGED = "prompt: Greet.\nacceptanceCriteria: [It greets.]\nmetrics: {toolUsage: false}\n"
HTML = raw(b"<!DOCTYPE html><html><body>Please log in</body></html>", headers={"content-type": "text/html"})


def project(tmp_path: Path, *names: str, more: str = "", alone: str = ALONE) -> Project:
    suites = {f"zelda/test-{name}.yaml": f"prompt: Say {name}.\n{alone}{more}" for name in names}
    return repository(tmp_path, suites)


def by_suite(of: Project) -> dict[str, dict[str, Any]]:
    return {result["suite"]: result for result in results(of)}


def failed(tmp_path: Path, reply: Reply) -> tuple[str, str, str]:
    """Address of an API that answers like this alone, and code and message of the run's failure."""
    tested = project(tmp_path, "one")
    with ScriptedApi([reply]) as api:
        assert zelda(tested, "run", api=api.url).returncode == 2
    failure = by_suite(tested)["one"]["failure"]
    return api.url, failure["code"], failure["message"]


def judged_once(tmp_path: Path, refusal: Reply) -> tuple[Project, str]:
    """A project of two suites, of which the second did not begin once the judge refused, and what was printed."""
    tested = repository(tmp_path, {"zelda/test-one.yaml": JUDGED, "zelda/test-two.yaml": JUDGED})
    with ScriptedApi(lambda request: refusal if is_judge(request) else text("Hello.")) as api:
        done = zelda(tested, "run", api=api.url)
    assert (done.returncode, [is_judge(each) for each in api.requests]) == (2, [False, True])
    assert "judge" in done.stdout.partition("Not run")[2]
    return tested, " ".join(done.stdout.split())


def test_a_session_whose_time_ends_while_the_api_fails_is_broken_and_no_failure_of_its_suite(tmp_path: Path) -> None:
    expected = {
        "failing": ("failed", "API_FAILED"),
        "silent": ("failed", "API_UNREACHABLE"),
        "slow": ("timedOut", "SESSION_TIMED_OUT"),
    }

    def script(request: ApiRequest) -> Reply:
        said = request.messages[0]["content"]
        if "Say failing." in json.dumps(said):
            return http_error(500, "busy")
        return (
            hang()
            if "Say silent." in json.dumps(said)
            else tool_call("Bash", {"command": "while true; do sleep 1; done"})
        )

    def are_told_apart(place: Path, seconds: int) -> bool:
        tested = project(place, "failing", "silent", "slow", more=f"execution: {{timeoutSeconds: {seconds}}}\n")
        with ScriptedApi(script) as api:
            done = zelda(tested, "run", api=api.url, ZELDA_JOBS="3")
        found = by_suite(tested)
        ends = {name: (run["status"], run["failure"]["code"]) for name, run in found.items()}
        limit = f"The session did not end within its limit of {seconds} s (timeoutSeconds)."
        assert done.returncode == 2
        return (
            ends == expected
            and found["failing"]["failure"]["message"] == f"{limit} The API kept failing (500)."
            and found["silent"]["failure"]["message"] == f"{limit} The API gave no usable answer."
        )

    with_more_time(are_told_apart, tmp_path, 20, 100)


def test_a_page_of_html_that_uses_up_the_budget_is_a_failure_of_the_api(tmp_path: Path) -> None:
    tested = project(tmp_path, "one", more="execution: {maxCostUsd: 0.001}\n")
    with ScriptedApi(lambda _: HTML) as api:
        assert zelda(tested, "run", api=api.url).returncode == 2
    assert by_suite(tested)["one"]["failure"]["code"] == "API_UNREACHABLE"


@pytest.mark.parametrize(
    ("reply", "why"),
    [(http_error(402, "pay", kind="billing_error"), "could not pay"), (http_error(403, "no"), "denied access")],
    ids=["402", "403"],
)
def test_no_other_session_begins_where_the_api_would_refuse_each(tmp_path: Path, reply: Reply, why: str) -> None:
    tested = project(tmp_path, "one", "two")
    with ScriptedApi(lambda _: reply) as api:
        done = zelda(tested, "run", api=api.url)
    assert (done.returncode, len(api.requests)) == (2, 1)
    assert why in done.stdout.partition("Not run")[2]


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_no_other_session_is_paid_where_no_judge_would_judge_it(tmp_path: Path, status: int) -> None:
    judged_once(tmp_path, http_error(status, "no"))


@pytest.mark.parametrize("who", ["session", "judge"])
def test_a_batch_ends_once_the_api_has_failed_three_runs_in_a_row_and_keeps_what_is_done(
    tmp_path: Path, who: str
) -> None:
    names = ["a-lost", "b-fine", "c-lost", "d-lost", "e-lost", "f-left"]
    tested = repository(tmp_path, {f"zelda/test-{it}.yaml": JUDGED.replace("Greet", it) for it in names})

    def script(request: ApiRequest) -> Reply:
        judges = is_judge(request)
        if judges == (who == "judge") and "-lost" in json.dumps(request.body):
            return http_error(500, "busy", headers={"x-should-retry": "false"})
        return answer(verdict(1, "FAIL", [])) if judges else text("Hello.")

    with ScriptedApi(script) as api:
        done = zelda(tested, "run", api=api.url)
    assert (done.returncode, list(by_suite(tested))) == (2, names[:5])
    assert by_suite(tested)["b-fine"]["evaluations"]["requirementFulfillment"]["score"] == 0
    assert "f-left: the API failed 3 runs in a row" in " ".join(done.stdout.partition("Not run")[2].split())


@pytest.mark.parametrize("kind", ["authentication_error", "billing_error", "permission_error", "not_found_error"])
def test_a_judge_that_is_refused_in_the_middle_of_its_answer_is_asked_once(tmp_path: Path, kind: str) -> None:
    tested, said = judged_once(tmp_path, Interrupted(kind))
    (judged,) = results(tested)
    (used,) = judged["judge"]["models"].values()
    assert used["inputTokens"] == Tokens().input
    assert f"zelda rejudge {judged['runId']}" in said


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("max_tokens", "Raise `judge.maxTokens`, or write fewer criteria, and run the suite again."),
        ("refusal", "another model: `zelda rejudge {run} --judge-model MODEL`."),
    ],
)
def test_what_is_advised_of_a_judge_that_would_answer_alike_again_is_no_plain_rejudge(
    tmp_path: Path, reason: str, advice: str
) -> None:
    tested = repository(tmp_path, {"zelda/test-one.yaml": JUDGED})
    with ScriptedApi(lambda request: text("No.", stop_reason=reason) if is_judge(request) else text("Hello.")) as api:
        done = zelda(tested, "run", api=api.url)
    (run,) = results(tested)
    assert (done.returncode, run["status"]) == (2, "completed")
    assert run["judge"]["models"]["claude-sonnet-5-5"]["outputTokens"] == Tokens().output
    assert advice.format(run=run["runId"]) in " ".join(done.stdout.split())


@dataclass
class Interrupted:
    """An answer that an error ends."""

    kind: str

    def send(self, request: ApiRequest, wire: Wire) -> None:
        wire.start(200, {"content-type": "text/event-stream"}, chunked=True)
        first = next(events(text("Done.").as_json(request), Tokens()))
        wire.write(sse(first) + sse({"type": "error", "error": {"type": self.kind, "message": "no more"}}))
        wire.finish_reply()


def test_a_refusal_for_a_day_names_the_day(tmp_path: Path) -> None:
    _, code, message = failed(tmp_path, http_error(429, "slow", headers={"retry-after": "86400"}))
    assert code == "RATE_LIMITED"
    assert message.startswith("The API refused requests for their rate (429). ")
    assert message.endswith(" slow. The API asks to wait for 24h 00m.")


def test_an_address_that_ends_in_v1_is_named_as_the_cause_and_the_model_is_not(tmp_path: Path) -> None:
    tested = project(tmp_path, "one")
    with ScriptedApi([]) as api:
        done = zelda(tested, "run", api=f"{api.url}/v1")
        checked = zelda(tested, "check", api=f"{api.url}/v1")
    failure = by_suite(tested)["one"]["failure"]
    cause = f"{api.url}/v1 ends in /v1, which is added to it"
    assert (done.returncode, failure["code"]) == (2, "API_UNREACHABLE")
    assert cause in failure["message"]
    assert "model" not in failure["message"]
    assert cause in " ".join(checked.stdout.split())


def test_a_session_whose_model_only_paused_is_not_taken_for_complete(tmp_path: Path) -> None:
    tested = project(tmp_path, "one")
    with ScriptedApi([text("I am looking.", stop_reason="pause_turn")]) as api:
        done = zelda(tested, "run", api=api.url)
    failed = by_suite(tested)["one"]
    assert (done.returncode, failed["status"], failed["failure"]["code"]) == (2, "failed", "TURN_PAUSED")


def test_a_sub_agent_that_the_api_failed_is_told_of_where_the_session_goes_on(tmp_path: Path) -> None:
    tested = project(tmp_path, "one", more="execution: {allowedTools: [Agent]}\n")
    call = tool_call("Agent", {"description": "Look", "prompt": "Look.", "subagent_type": "general-purpose"})
    lost = http_error(500, "busy", headers={"x-should-retry": "false"})
    main = lambda request: text("Done without.") if request.tool_results else call  # noqa: E731 - two lines of it
    with ScriptedApi(main, agents=[[lost]]) as api:
        assert zelda(tested, "run", api=api.url).returncode == 0
    run = by_suite(tested)["one"]
    assert (run["status"], run["api"]["lostAgents"]) == ("completed", 1)
    shown = zelda(tested, "show", run["runId"])
    assert "1 sub-agent that the API failed" in shown.stdout


class Reporting:
    """An answer with a usage of its own making."""

    def __init__(self, usage: dict[str, Any] | None) -> None:
        self._usage = usage

    def send(self, request: ApiRequest, wire: Wire) -> None:
        wire.start(200, {"content-type": "text/event-stream"}, chunked=True)
        for event in events(text("Done.").as_json(request), Tokens()):
            for place in (event, event.get("message", {})):
                if place.pop("usage", None) and self._usage is not None:
                    place["usage"] = self._usage
            wire.write(sse(event))
        wire.finish_reply()


@pytest.mark.parametrize(
    ("usage", "least_usd"),
    [
        (None, 0.0001),
        ({"input_tokens": 0, "output_tokens": 0}, 0.0001),
        ({"input_tokens": 10**30, "output_tokens": 10**30}, 1e6),
    ],
    ids=["nothing", "zeros", "absurd"],
)
def test_what_an_answer_does_not_say_or_exaggerates_never_counts_as_nothing(
    tmp_path: Path, usage: dict[str, Any] | None, least_usd: float
) -> None:
    tested = project(tmp_path, "one")
    with ScriptedApi([Reporting(usage)]) as api:
        assert zelda(tested, "run", api=api.url).returncode == 0
    run = by_suite(tested)["one"]
    (used,) = run["api"]["models"].values()
    assert used["costUsd"] > least_usd
    assert used["costKnown"] is (least_usd > 1)
    details = run["evaluations"]["efficiency"]["details"]
    assert details["costUsd"] > least_usd
    assert details["costKnown"] is (least_usd > 1)


def test_a_negative_usage_neither_pays_back_nor_keeps_the_session_from_its_end(tmp_path: Path) -> None:
    tested = project(tmp_path, "one", more="execution: {timeoutSeconds: 60}\n")
    with ScriptedApi([Reporting({"input_tokens": -5, "output_tokens": -9})]) as api:
        done = zelda(tested, "run", api=api.url)
    assert done.returncode == 0, done.stdout
    assert by_suite(tested)["one"]["api"]["models"]["claude-sonnet-5-5"]["costUsd"] > 0


def test_an_answer_in_an_encoding_that_zelda_cannot_read_is_refused_and_not_called_forged(tmp_path: Path) -> None:
    encoded = raw(b"\x1b\x00", headers={"content-type": "text/event-stream", "content-encoding": "br"})
    url, code, message = failed(tmp_path, encoded)
    assert code == "API_UNREACHABLE"
    assert message == f"{url} answers (200) in the encoding br, which Zelda cannot read."


def test_an_api_that_fails_is_named_as_it_was_configured(tmp_path: Path) -> None:
    url, code, message = failed(tmp_path, http_error(500, "busy", headers={"x-should-retry": "false"}))
    assert code == "API_FAILED"
    assert url.partition("//")[2] in message
