"""The judge from the developer's chair: `zelda run` and `zelda rejudge`, the real command, a scripted API."""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

from tests.support.command import KEY, after, ended, results, started, zelda
from tests.support.judging import answer, verdict
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, hang, http_error, text, tool_call

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
    return request.answer_tool is not None and "acceptance criteria" in json.dumps(request.body)


def works(request: ApiRequest) -> Reply:
    """The session, whatever the suite."""
    said: Reply = WORK[sum(message["role"] == "assistant" for message in request.messages)]
    return said


def project_with(tmp_path: Path) -> Project:
    return repository(tmp_path, {"README.md": "# Sample\n", "zelda/test-greeting.yaml": SUITE})


SHOWN = [
    verdict(1, evidence=HELLO[1:]),
    verdict(2, evidence=[{"where": "turn 1 call 1", "quote": "echo hello > greeting.txt"}]),
]


class Judged:
    """One stored run, before the judge again and again."""

    def __init__(self, project: Project, suite: str) -> None:
        self.project = project
        (self.file,) = project.results.glob(f"runs/{suite}-*/result.json")
        self.name = self.file.parent.name

    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.file.read_bytes())
        return found

    def fulfillment(self) -> dict[str, Any]:
        found: dict[str, Any] = self.result()["evaluations"]["requirementFulfillment"]
        return found

    def verdicts(self) -> list[str]:
        return [one["verdict"] for one in self.fulfillment()["details"]["criteria"]]

    def again(self, *judgements: Reply) -> tuple[int, str, list[ApiRequest]]:
        """Exit code, what was printed and what the judge was asked; nobody but the judge is."""
        with ScriptedApi(judgements) as api:
            done = zelda(self.project, "rejudge", self.name[:-4], api=api.url)
            assert all(map(is_judge, api.requests))
            assert len(api.requests) == len(judgements)
        return done.returncode, done.stdout + done.stderr, api.requests


def test_a_judge_that_fails_costs_its_metric_only_and_is_asked_again_about_the_stored_run(tmp_path: Path) -> None:
    """One session; what each kind of answer makes of it is seen without another."""
    project = project_with(tmp_path)
    done = a_gateway_gets_its_own_key_and_routing_and_never_that_of_sessions(project)
    assert done.returncode == 2, done.stdout + done.stderr
    run = Judged(project, "greeting")
    broken = run.result()
    assert broken["evaluations"]["requirementFulfillment"]["failed"] is True
    assert "score" in broken["evaluations"]["efficiency"]
    assert f"zelda rejudge {broken['runId']}" in done.stdout

    verdicts_that_cite_what_does_not_exist_are_asked_for_again_and_then_do_not_count(run)
    a_criterion_that_is_not_met_fails_it_and_says_why(run)

    code, output, _ = run.again(answer(*SHOWN))
    assert code == 0, output
    mended = run.result()
    assert run.fulfillment()["score"] == 100.0
    assert mended["evaluations"]["efficiency"] == broken["evaluations"]["efficiency"]
    assert {key for key in mended if mended[key] != broken.get(key)} == {"evaluations", "judge"}
    # Four questions have been answered and paid for, each alike, and none of them is forgotten.
    (used,) = mended["judge"]["models"].values()
    assert (mended["judge"]["requests"], used["outputTokens"] % 4) == (5, 0)

    # A failure to judge again does not replace a verdict, and a run that is not there is named.
    assert run.again(http_error(401))[0] == 2
    assert run.result() == mended
    absent = zelda(project, "rejudge", "../x", api="http://127.0.0.1:1")
    assert (absent.returncode, absent.stderr.startswith("error: There is no ")) == (2, True)


def test_what_a_judge_has_cost_before_a_kill_is_known(tmp_path: Path) -> None:
    project, asked = project_with(tmp_path), list[ApiRequest]()

    def model(request: ApiRequest) -> Reply:
        if not is_judge(request):
            return works(request)
        asked.append(request)
        # What cites nothing that exists is asked for again.
        return hang() if asked[1:] else answer(verdict(1, evidence=NOWHERE), verdict(2, evidence=NOWHERE))

    with ScriptedApi(model) as api, started(project, "run", api=api.url) as zelda_:
        after(lambda: len(asked) == 2)
        os.kill(zelda_.pid, signal.SIGKILL)
        ended(zelda_)
    with ScriptedApi(lambda _: http_error(401)) as api:
        zelda(project, "run", api=api.url)
    killed = results(project)[0]
    (used,) = killed["judge"]["models"].values()
    assert (killed["status"], killed["judge"]["requests"], used["costUsd"] > 0) == ("interrupted", 1, True)
    assert "efficiency" in killed["evaluations"]


def a_gateway_gets_its_own_key_and_routing_and_never_that_of_sessions(
    project: Project,
) -> subprocess.CompletedProcess[str]:
    with ScriptedApi(works) as api, ScriptedApi([http_error(403, "no such right")]) as gateway:
        routing = {"PORTKEY_GATEWAY_URL": f"{gateway.url}/v1", "PORTKEY_PROVIDER": "@anthropic-prod"}
        keyless = zelda(project, "run", api=api.url, **routing)
        assert (keyless.returncode, len(api.requests)) == (2, 0)
        assert "PORTKEY_API_KEY is not set" in keyless.stderr
        done = zelda(project, "run", api=api.url, PORTKEY_API_KEY=GATEWAY_KEY, **routing)
    (asked,) = gateway.requests
    assert asked.headers["x-portkey-api-key"] == GATEWAY_KEY
    assert asked.headers["x-portkey-provider"] == "@anthropic-prod"
    assert not {"x-api-key", "authorization"} & asked.headers.keys()
    assert KEY not in json.dumps(dict(asked.headers))
    assert all(GATEWAY_KEY not in json.dumps(dict(request.headers)) for request in api.requests)
    return done


def verdicts_that_cite_what_does_not_exist_are_asked_for_again_and_then_do_not_count(run: Judged) -> None:
    cited = answer(verdict(1, evidence=NOWHERE), verdict(2, evidence=NOWHERE))
    code, output, (_, again) = run.again(cited, cited)
    assert code == 2, output
    assert "The cited place 'src/ghost.py:1' does not exist." in again.messages[0]["content"][-1]["text"]
    assert "score" not in run.fulfillment()
    assert run.verdicts() == ["notJudged", "notJudged"]


def a_criterion_that_is_not_met_fails_it_and_says_why(run: Judged) -> None:
    code, output, _ = run.again(answer(verdict(1, evidence=HELLO), verdict(2, "FAIL", [])))
    assert code == 1, output
    assert (run.fulfillment()["score"], run.verdicts()) == (50.0, ["PASS", "FAIL"])
    for shown in ("PASS · There is a greeting.", "FAIL · It is polite.", "greeting.txt:1: hello", "Not met: It is"):
        assert shown in output


FORGOTTEN = SUITE.replace("It is polite.", "It is kind.")
BATCH = {"lenient": SUITE + "undecided: ignore\n", "unjudged": FORGOTTEN}


def test_a_run_is_as_its_judge_finds_it_and_incomplete_where_a_criterion_was_left_out(tmp_path: Path) -> None:
    files = {f"zelda/test-{name}.yaml": suite for name, suite in BATCH.items()}
    project = repository(tmp_path, {"README.md": "# Sample\n", **files})
    left_out = iter((answer(verdict(1, evidence=HELLO)), answer()))

    def script(request: ApiRequest) -> Reply:
        if not is_judge(request):
            return works(request)
        body = json.dumps(request.messages)
        if "It is kind." in body:
            return next(left_out)
        return answer(verdict(1, evidence=HELLO), verdict(2, "UNDECIDED", []))

    with ScriptedApi(script) as api:
        done = zelda(project, "run", "--verbose", "--jobs", "2", api=api.url)
        (asked,) = [each for each in api.requests if is_judge(each) and "It is polite." in json.dumps(each.messages)]
    lenient, unjudged = (Judged(project, name) for name in BATCH)
    listed = json.loads(zelda(project, "list", "--json").stdout)["runs"]
    outcomes = {run["suite"]: run["outcome"] for run in listed}
    assert outcomes == {"lenient": "passed", "unjudged": "incomplete"}

    # What the evidence cannot decide is left out of the score where the suite says so.
    assert (lenient.fulfillment()["score"], lenient.verdicts()) == (100.0, ["PASS", "undecided"])
    assert "undecided" in done.stdout

    result = lenient.result()
    assert (result["judge"]["requests"], result["api"]["requests"]) == (1, 2)
    assert asked.headers["x-api-key"] == KEY
    prompt = json.dumps(asked.messages)
    assert "1 | hello" in prompt
    assert "hello > greeting.txt" in prompt

    assert done.returncode == 2, done.stdout + done.stderr
    assert "PASS  unjudged" not in done.stdout
    whoever_looks_is_told_that_it_is_incomplete(unjudged, done.stdout)


def whoever_looks_is_told_that_it_is_incomplete(run: Judged, printed: str) -> None:
    evaluation = run.fulfillment()
    assert "score" not in evaluation
    assert evaluation["failed"] is True
    assert run.verdicts() == ["PASS", "notJudged"]
    assert "It is kind." in evaluation["reasoning"]
    for page in (printed, zelda(run.project, "list").stdout, zelda(run.project, "show", run.name).stdout):
        assert "INCOMPLETE" in page
    compared = zelda(run.project, "compare", run.name, run.name)
    assert compared.returncode == 2, compared.stdout + compared.stderr
    assert "It is kind." in compared.stdout


def test_a_run_that_two_judge_at_once_keeps_the_last_verdict_and_what_both_have_cost(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    with ScriptedApi([*WORK, answer(*SHOWN)]) as api:
        assert zelda(project, "run", api=api.url).returncode == 0
    run = Judged(project, "greeting")
    (once,) = run.result()["judge"]["models"].values()
    is_over = threading.Event()

    def slow_first(request: ApiRequest) -> Reply:
        if request.index == 0:
            assert is_over.wait(PATIENCE)
        return answer(verdict(1, evidence=HELLO), verdict(2, "FAIL", [])) if request.index else answer(*SHOWN)

    with ScriptedApi(slow_first) as api, started(project, "rejudge", run.name, api=api.url) as slow:
        after(lambda: len(api.requests) == 1)
        assert zelda(project, "rejudge", run.name, api=api.url).returncode == 1
        assert run.verdicts() == ["PASS", "FAIL"]
        is_over.set()
        assert ended(slow)[0] == 0
    assert run.verdicts() == ["PASS", "PASS"]
    (thrice,) = run.result()["judge"]["models"].values()
    assert (run.result()["judge"]["requests"], thrice["inputTokens"]) == (3, 3 * once["inputTokens"])


def test_what_a_judge_has_cost_that_was_interrupted_is_not_forgotten(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    with ScriptedApi([*WORK, answer(*SHOWN)]) as api:
        assert zelda(project, "run", api=api.url).returncode == 0
    run = Judged(project, "greeting")
    # The first answer is asked for again, and in the middle of that somebody has enough.
    cited = answer(verdict(1, evidence=NOWHERE), verdict(2, evidence=NOWHERE))
    with ScriptedApi([cited, hang()]) as api, started(project, "rejudge", run.name, api=api.url) as process:
        after(lambda: len(api.requests) == 2)
        os.kill(process.pid, signal.SIGINT)
        assert ended(process)[0] == 130
    assert run.verdicts() == ["PASS", "PASS"]
    assert run.result()["judge"]["requests"] == 3
