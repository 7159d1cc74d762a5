"""Judges that look things up, and several models as one judge: run, replayed, and judged again."""

import json
from pathlib import Path
from typing import Any

from tests.support.command import KEY, zelda
from tests.support.judging import asked, verdict
from tests.support.projects import Project, repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, text, tool_call, tool_calls

MODELS = ["claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-4-5"]
LOOKS = """\
prompt: Add a greeting.
acceptanceCriteria: [The licence is still MIT., The last line of the long output tells of 3 rows.]
judge: {timeoutSeconds: 300, maxLookups: 5}
metrics: {toolUsage: false}
"""
PANEL = f"""\
prompt: Add a greeting.
acceptanceCriteria: [There is a greeting., It is polite.]
judge: {{timeoutSeconds: 300, models: {json.dumps(MODELS)}}}
metrics: {{toolUsage: false}}
"""
WORK = [tool_call("Bash", {"command": "echo hello > greeting.txt; cat import.log"}), text("Done.")]
LICENCE = [{"where": "LICENSE:1", "quote": "MIT License"}]
ROWS = [{"where": "turn 1 call 1", "quote": "lost 3 rows"}]
HELLO = [{"where": "greeting.txt:1", "quote": "hello"}]
NOWHERE = [{"where": "greeting.txt:1", "quote": "good morning"}]


def script(request: ApiRequest) -> Reply:
    """The session; and judges."""
    position = sum(message["role"] == "assistant" for message in request.messages)
    if request.answer_tool is None:
        said: Reply = WORK[position]
        return said
    return of_panel(request) if "It is polite." in json.dumps(request.messages) else looking(request, position)


def looking(request: ApiRequest, position: int) -> Reply:
    """A judge who looks at a file that the session did not change, and at what it printed."""
    looks = [
        tool_calls([("search_files", {"pattern": "License"}), ("search_transcript", {"pattern": "lost"})]),
        tool_call("read_file", {"path": "LICENSE"}),
    ]
    found = {"criteria": [verdict(1, evidence=LICENCE), verdict(2, evidence=ROWS)]}
    return looks[position] if position < len(looks) else tool_call(str(request.answer_tool), found)


def of_panel(request: ApiRequest) -> Reply:
    """The second model finds it rude, and the third cites what is not there when it is asked first."""
    model, numbers = request.body["model"], asked(request)
    evidence = NOWHERE if model == MODELS[2] and len(numbers) == 2 else HELLO
    given = {1: verdict(1, evidence=HELLO), 2: verdict(2, evidence=evidence)}
    if model == MODELS[1]:
        given[2] = verdict(2, "FAIL", [])
    return tool_call(str(request.answer_tool), {"criteria": [given[number] for number in numbers]})


def judged(project: Project, suite: str) -> list[dict[str, Any]]:
    """What became of every run, the latest last."""
    files = sorted(project.results.glob(f"runs/{suite}-*/result.json"))
    return [json.loads(file.read_bytes())["evaluations"]["requirementFulfillment"] for file in files]


def latest(project: Project, suite: str) -> str:
    return max(project.results.glob(f"runs/{suite}-*")).name


def test_judges_look_things_up_and_vote_recorded_replayed_and_again(tmp_path: Path) -> None:
    files = {"README.md": "# Sample\n", "LICENSE": "MIT License\n"}
    files |= {"zelda/test-looks.yaml": LOOKS, "zelda/test-panel.yaml": PANEL}
    files["import.log"] = "".join(f"row {number}\n" for number in range(500)) + "lost 3 rows\n"
    project, cassettes = repository(tmp_path, files), tmp_path / "cassettes"
    with ScriptedApi(script) as api:
        done = zelda(project, "run", "--record", str(cassettes), api=api.url)
        questions = [request for request in api.requests if request.answer_tool]
    assert done.returncode == 0, done.stdout + done.stderr
    assert KEY not in json.dumps([request.body for request in questions])
    panel = [request for request in questions if "It is polite." in json.dumps(request.messages)]
    what_no_prompt_shows_was_looked_up([request for request in questions if request not in panel])
    # What does not count is asked again, of the same model.
    assert sorted(request.body["model"] for request in panel) == sorted([*MODELS, MODELS[2]])
    the_disagreement_is_in_the_result(judged(project, "panel")[0]["details"])

    replayed = zelda(project, "run", "--replay", str(cassettes))
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert {file.name for file in cassettes.iterdir()} >= {"looks@judge.json", "panel@judge.json"}
    for suite in ("looks", "panel"):
        first, second = judged(project, suite)
        assert first == second
        assert first["score"] == 100.0

    where_the_workspace_is_gone_the_transcript_can_be_looked_up(project)
    # Who names one model gets that one.
    with ScriptedApi(script) as api:
        zelda(project, "rejudge", latest(project, "panel"), "--judge-model", MODELS[1], api=api.url)
    assert [request.body["model"] for request in api.requests] == [MODELS[1]]


def what_no_prompt_shows_was_looked_up(questions: list[ApiRequest]) -> None:
    assert len(questions) == 3
    found = [result["content"][0]["text"] for result in questions[-1].tool_results]
    assert "LICENSE:1: MIT License" in found[0]
    assert "lost 3 rows" in found[1]
    assert "1 | MIT License" in found[2]


def the_disagreement_is_in_the_result(details: dict[str, Any]) -> None:
    assert (details["judge"]["model"], details["votes"]) == (" + ".join(MODELS), 3)
    assert [one["verdict"] for one in details["criteria"]] == ["PASS", "PASS"]
    assert [one.get("split") for one in details["criteria"]] == [None, {"PASS": 2, "FAIL": 1}]
    told = f"The models disagree on 2: {MODELS[0]} says PASS; {MODELS[1]} says FAIL; {MODELS[2]} says PASS."
    assert told in details["notes"]


def where_the_workspace_is_gone_the_transcript_can_be_looked_up(project: Project) -> None:
    def answers(request: ApiRequest) -> Reply:
        return script(request) if request.tool_results else tool_call("search_transcript", {"pattern": "lost"})

    with ScriptedApi(answers) as api:
        zelda(project, "rejudge", latest(project, "looks"), api=api.url)
    offered = {tool["name"] for tool in api.requests[0].body["tools"]}
    assert {"list_turns", "read_turn", "search_transcript"} <= offered
    assert not {"list_files", "read_file", "search_files"} & offered
    assert "The final workspace is gone" in api.requests[0].messages[0]["content"][-1]["text"]
    assert "lost 3 rows" in api.requests[1].tool_results[0]["content"][0]["text"]
