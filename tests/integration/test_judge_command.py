"""The judge from the developer's chair: `zelda run` and `zelda rejudge`, the real command, a scripted API."""

import json
from pathlib import Path

import pytest

from tests.support.command import KEY, the_result, zelda
from tests.support.judging import answer, verdict
from tests.support.projects import Project, repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, http_error, text, tool_call

SUITE = """\
prompt: Add a greeting.
acceptanceCriteria: [There is a greeting., It is polite.]
judge: {timeoutSeconds: 300}
metrics: {toolUsage: false}
"""
WORK = [tool_call("Bash", {"command": "echo hello > greeting.txt && cat greeting.txt"}), text("Done.")]
HELLO = [{"where": "greeting.txt:1", "quote": "hello"}, {"where": "patch:greeting.txt", "quote": "+hello"}]
NOWHERE = [{"where": "src/ghost.py:1", "quote": "def ghost(): pass"}]
GATEWAY_KEY = "pk-fake-of-the-gateway"


def is_judge(request: ApiRequest) -> bool:
    return "output_config" in request.body and "acceptance criteria" in str(request.body.get("system"))


def script_with(*judgements: Reply):
    """A session, and a judge who gives these answers one after the other."""
    left = iter(judgements)

    def script(request: ApiRequest) -> Reply:
        if is_judge(request):
            return next(left)
        said: Reply = WORK[sum(message["role"] == "assistant" for message in request.messages)]
        return said

    return script


def project_with(tmp_path: Path, suite: str = SUITE) -> Project:
    return repository(tmp_path, {"README.md": "# Sample\n", "zelda/test-greeting.yaml": suite})


def test_a_criterion_that_is_not_met_fails_the_run_and_says_why(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    judged = answer(verdict(1, evidence=HELLO), verdict(2, "FAIL", []))
    with ScriptedApi(script_with(judged)) as api:
        done = zelda(project, "run", api=api.url)
        (asked,) = [request for request in api.requests if is_judge(request)]
    assert done.returncode == 1, done.stdout + done.stderr
    result = the_result(project)
    evaluation = result["evaluations"]["requirementFulfillment"]
    assert evaluation["score"] == 50.0
    assert [one["verdict"] for one in evaluation["details"]["criteria"]] == ["PASS", "FAIL"]
    assert result["judge"]["requests"] == 1
    assert result["api"]["requests"] == 2
    for shown in (
        "PASS · There is a greeting.",
        "FAIL · It is polite.",
        "greeting.txt:1: hello",
        "Not met: It is polite",
    ):
        assert shown in done.stdout
    assert asked.headers["x-api-key"] == KEY
    prompt = json.dumps(asked.messages)
    assert "1 | hello" in prompt
    assert "hello > greeting.txt" in prompt


def test_a_judge_that_fails_costs_its_metric_only_and_can_be_asked_again_later(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    good = answer(verdict(1, evidence=HELLO[1:]), verdict(2, evidence=[{"where": "turn 1 call 1", "quote": "hello"}]))
    with ScriptedApi(script_with(http_error(403, "no such right"), good)) as api:
        done = zelda(project, "run", api=api.url)
        assert done.returncode == 2, done.stdout + done.stderr
        broken = the_result(project)
        assert broken["evaluations"]["requirementFulfillment"]["failed"] is True
        assert "score" in broken["evaluations"]["efficiency"]
        assert f"zelda rejudge {broken['runId']}" in done.stdout
        again = zelda(project, "rejudge", "latest", api=api.url)
        assert len([request for request in api.requests if not is_judge(request)]) == 2
    assert again.returncode == 0, again.stdout + again.stderr
    mended = the_result(project)
    assert mended["evaluations"]["requirementFulfillment"]["score"] == 100.0
    assert mended["evaluations"]["efficiency"] == broken["evaluations"]["efficiency"]
    assert {key for key in mended if mended[key] != broken.get(key)} == {"evaluations", "judge"}


def test_a_failure_to_judge_again_does_not_replace_a_verdict(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    good = answer(verdict(1, evidence=HELLO), verdict(2, evidence=HELLO))
    with ScriptedApi(script_with(good, http_error(401))) as api:
        assert zelda(project, "run", api=api.url).returncode == 0
        before = the_result(project)
        again = zelda(project, "rejudge", before["runId"][:12], api=api.url)
    assert again.returncode == 2
    assert the_result(project) == before


def test_a_run_that_is_not_there_is_named(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    for name in ("latest", "other", "../x"):
        done = zelda(project, "rejudge", name, api="http://127.0.0.1:1")
        assert done.returncode == 2
        assert done.stderr.startswith("error: There is no ")


def test_the_judge_is_recorded_and_replayed_without_key_and_network(tmp_path: Path) -> None:
    project = project_with(tmp_path, SUITE.replace("timeoutSeconds: 300", "timeoutSeconds: 300, votes: 3"))
    judged = answer(verdict(1, evidence=HELLO), verdict(2, evidence=HELLO))
    cassettes = tmp_path / "cassettes"
    with ScriptedApi(script_with(judged, judged, judged)) as api:
        recorded = zelda(project, "run", "--record", str(cassettes), api=api.url)
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    assert sorted(file.name for file in cassettes.iterdir()) == ["greeting.json", "greeting.judge.json"]
    replayed = zelda(project, "run", "--replay", str(cassettes), "--json")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    (run,) = json.loads(replayed.stdout)["runs"]
    assert run["evaluations"]["requirementFulfillment"]["score"] == 100.0
    (cassettes / "greeting.judge.json").unlink()
    without = zelda(project, "run", "--replay", str(cassettes))
    assert without.returncode == 2
    assert "there is no recording" in without.stdout


def test_asking_again_is_recorded_and_replayed_vote_by_vote(tmp_path: Path) -> None:
    project = project_with(tmp_path, SUITE.replace("judge: {", "judge: {votes: 3, "))
    good = answer(verdict(1, evidence=HELLO), verdict(2, evidence=HELLO))
    one, two = answer(verdict(1, evidence=NOWHERE), verdict(2, evidence=HELLO)), answer(verdict(1, evidence=HELLO))
    again: dict[str, Reply] = {
        "does not exist": answer(verdict(1, evidence=HELLO)),
        "gave no verdict on it": answer(verdict(2, "FAIL", [])),
    }
    first = iter((good, one, two))

    def script(request: ApiRequest) -> Reply:
        if not is_judge(request):
            worked: Reply = WORK[sum(message["role"] == "assistant" for message in request.messages)]
            return worked
        body = request.messages[0]["content"][-1]["text"]
        asked_again = [reply for words, reply in again.items() if words in body]
        return asked_again[0] if asked_again else next(first)

    cassettes = tmp_path / "cassettes"
    with ScriptedApi(script) as api:
        recorded = zelda(project, "run", "--record", str(cassettes), "--json", api=api.url)
        assert len([request for request in api.requests if is_judge(request)]) == 5
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    replays = [zelda(project, "run", "--replay", str(cassettes), "--json") for _ in range(2)]
    kept = [
        json.loads(done.stdout)["runs"][0]["evaluations"]["requirementFulfillment"] for done in (recorded, *replays)
    ]
    assert kept[0] == kept[1] == kept[2]
    assert [one["split"] for one in kept[0]["details"]["criteria"] if "split" in one] == [{"PASS": 2, "FAIL": 1}]


def test_a_gateway_gets_its_own_key_and_routing_and_never_that_of_sessions(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    judged = answer(verdict(1, evidence=HELLO), verdict(2, evidence=HELLO))
    with ScriptedApi(script_with()) as api, ScriptedApi(script_with(judged)) as gateway:
        routing = {"PORTKEY_GATEWAY_URL": f"{gateway.url}/v1", "PORTKEY_PROVIDER": "@anthropic-prod"}
        keyless = zelda(project, "run", api=api.url, **routing)
        assert (keyless.returncode, len(api.requests)) == (2, 0)
        assert "PORTKEY_API_KEY is not set" in keyless.stderr
        done = zelda(project, "run", api=api.url, PORTKEY_API_KEY=GATEWAY_KEY, **routing)
    assert done.returncode == 0, done.stdout + done.stderr
    (asked,) = gateway.requests
    assert asked.headers["x-portkey-api-key"] == GATEWAY_KEY
    assert asked.headers["x-portkey-provider"] == "@anthropic-prod"
    assert not {"x-api-key", "authorization"} & asked.headers.keys()
    assert KEY not in json.dumps(dict(asked.headers))
    assert all(GATEWAY_KEY not in json.dumps(dict(request.headers)) for request in api.requests)


def test_a_criterion_that_the_judge_leaves_out_makes_the_run_incomplete(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    with ScriptedApi(script_with(answer(verdict(1, evidence=HELLO)), answer())) as api:
        done = zelda(project, "run", api=api.url)
    assert done.returncode == 2, done.stdout + done.stderr
    evaluation = the_result(project)["evaluations"]["requirementFulfillment"]
    assert "score" not in evaluation
    assert evaluation["failed"] is True
    assert [one["verdict"] for one in evaluation["details"]["criteria"]] == ["PASS", "notJudged"]
    assert "It is polite." in evaluation["reasoning"]
    for command in (("list",), ("show", "latest")):
        shown = zelda(project, *command)
        assert "INCOMPLETE" in shown.stdout, shown.stdout
    assert "INCOMPLETE" in done.stdout
    assert "PASS  " not in done.stdout
    compared = zelda(project, "compare", "latest", "latest")
    assert compared.returncode == 2, compared.stdout + compared.stderr
    assert "It is polite." in compared.stdout


def test_verdicts_that_cite_what_does_not_exist_are_asked_for_again_and_then_do_not_count(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    judged = answer(verdict(1, evidence=NOWHERE), verdict(2, evidence=NOWHERE))
    with ScriptedApi(script_with(judged, judged)) as api:
        done = zelda(project, "run", api=api.url)
        _, again = [request for request in api.requests if is_judge(request)]
    assert done.returncode == 2, done.stdout + done.stderr
    assert "The cited place 'src/ghost.py:1' does not exist." in again.messages[0]["content"][-1]["text"]
    evaluation = the_result(project)["evaluations"]["requirementFulfillment"]
    assert "score" not in evaluation
    assert [one["verdict"] for one in evaluation["details"]["criteria"]] == ["notJudged", "notJudged"]


@pytest.mark.parametrize(("setting", "code", "score"), [("", 1, 50.0), ("undecided: ignore\n", 0, 100.0)])
def test_what_the_evidence_cannot_decide_is_not_met_unless_the_suite_ignores_it(
    tmp_path: Path, setting: str, code: int, score: float
) -> None:
    project = project_with(tmp_path, SUITE + setting)
    with ScriptedApi(script_with(answer(verdict(1, evidence=HELLO), verdict(2, "UNDECIDED", [])))) as api:
        done = zelda(project, "run", api=api.url)
    assert done.returncode == code, done.stdout + done.stderr
    evaluation = the_result(project)["evaluations"]["requirementFulfillment"]
    assert evaluation["score"] == score
    assert [one["verdict"] for one in evaluation["details"]["criteria"]] == ["PASS", "undecided"]
    assert "undecided" in done.stdout
    assert "Because of 2." in done.stdout
