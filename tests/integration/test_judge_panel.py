"""Several models as one judge: `judge.models` through the real command."""

import json
from pathlib import Path

from tests.support.command import zelda
from tests.support.judging import asked, verdict
from tests.support.projects import repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, text, tool_call

MODELS = ["claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-4-5"]
SUITE = f"""\
prompt: Add a greeting.
acceptanceCriteria: [There is a greeting., It is polite.]
judge: {{timeoutSeconds: 300, models: {json.dumps(MODELS)}}}
metrics: {{toolUsage: false}}
"""
WORK = [tool_call("Write", {"file_path": "greeting.txt", "content": "hello"}), text("Done.")]
HELLO = [{"where": "greeting.txt:1", "quote": "hello"}]
NOWHERE = [{"where": "greeting.txt:1", "quote": "good morning"}]


def script(request: ApiRequest) -> Reply:
    """The second model finds it rude, and the third cites what is not there when it is asked first."""
    if request.answer_tool is None:
        said: Reply = WORK[sum(message["role"] == "assistant" for message in request.messages)]
        return said
    model, numbers = request.body["model"], asked(request)
    evidence = NOWHERE if model == MODELS[2] and len(numbers) == 2 else HELLO
    given = {1: verdict(1, evidence=HELLO), 2: verdict(2, evidence=evidence)}
    if model == MODELS[1]:
        given[2] = verdict(2, "FAIL", [])
    return tool_call(request.answer_tool, {"criteria": [given[number] for number in numbers]})


def test_different_models_vote_and_their_disagreement_is_in_the_result(tmp_path: Path) -> None:
    project = repository(tmp_path, {"README.md": "# Sample\n", "zelda/test-greeting.yaml": SUITE})
    with ScriptedApi(script) as api:
        done = zelda(project, "run", api=api.url)
        questions = [request.body["model"] for request in api.requests if request.answer_tool]
    assert done.returncode == 0, done.stdout + done.stderr
    # What does not count is asked again, of the same model.
    assert sorted(questions) == sorted([*MODELS, MODELS[2]])
    (file,) = project.results.glob("runs/greeting-*/result.json")
    result = json.loads(file.read_bytes())
    details = result["evaluations"]["requirementFulfillment"]["details"]
    assert details["judge"]["model"] == " + ".join(MODELS)
    assert details["votes"] == 3
    assert [one["verdict"] for one in details["criteria"]] == ["PASS", "PASS"]
    assert [one.get("split") for one in details["criteria"]] == [None, {"PASS": 2, "FAIL": 1}]
    told = f"The models disagree on 2: {MODELS[0]} says PASS; {MODELS[1]} says FAIL; {MODELS[2]} says PASS."
    assert told in details["notes"]
    assert set(result["judge"]["models"]) == set(MODELS)

    # Who names one model gets that one.
    with ScriptedApi(script) as api:
        zelda(project, "rejudge", "latest", "--judge-model", MODELS[1], api=api.url)
    assert [request.body["model"] for request in api.requests] == [MODELS[1]]
