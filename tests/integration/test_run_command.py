"""`zelda run` from the developer's chair: the real command, the real Claude Code CLI, a scripted API."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import gone, results, the_result, transcript, zelda
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from tests.support.scripted_api import (
    ApiRequest,
    Reply,
    ScriptedApi,
    Tokens,
    http_error,
    text,
    tool_call,
)
from tests.support.suites import Suite, files, run_suites
from zelda_ci.execution.launch import find_cli
from zelda_ci.sandbox import levels

SUITE = """\
prompt: Add a greeting and commit it.
execution: {maxTurns: 6, timeoutSeconds: 300}
metrics: {toolUsage: false}
"""

WORK = [
    tool_call("Bash", {"command": "echo hello > greeting.txt && cat README.md"}, text="I write the greeting."),
    tool_call("Bash", {"command": "git add -A && git commit -qm Greet && git stash list && git config user.name Me"}),
    text("The greeting is committed."),
]


def project_with(tmp_path: Path, *, suite: str = SUITE, **files: str) -> Project:
    return repository(tmp_path, {"README.md": "# Sample\n", "zelda/test-greeting.yaml": suite, **files})


def untouched_after_run(project: Project, *arguments: str, api: ScriptedApi) -> tuple[int, str]:
    """Exit code and everything printed; nothing of the developer's has changed, and nothing of the run is left."""
    before = project.fingerprint()
    done = zelda(project, "run", *arguments, api=api.url)
    assert project.fingerprint() == before
    assert gone(project)
    return done.returncode, done.stdout + done.stderr


def test_a_session_that_edits_runs_commands_and_commits_becomes_a_result(tmp_path: Path) -> None:
    """After a failure that it hears of and an overload that it does not; one score is too low, and is named."""
    project = project_with(tmp_path, suite=SUITE + "gate: {minScore: {efficiency: 99}}\n")
    with ScriptedApi([http_error(500), http_error(529), *WORK]) as api:
        code, output = untouched_after_run(project, api=api)
    assert code == 1, output
    result = the_result(project)
    assert result["status"] == "completed"
    assert result["suite"] == "greeting"
    assert result["source"]["commit"] == project.git("rev-parse", "HEAD")
    assert result["versions"]["cli"]
    assert result["changes"]["files"] == ["greeting.txt"]
    used = result["evaluations"]["efficiency"]["details"]
    assert (used["turns"], used["toolCalls"], used["apiRetries"]) == (3, {"Bash": 2}, 1)
    assert (result["api"]["errors"], result["api"]["retries"]) == ({"500": 1}, 1)
    assert result["api"]["throttled"] == 1
    shown = zelda(project, "show", "latest").stdout
    assert "waited for the API's rate limit: " in shown
    turns = [entry for entry in transcript(project)["entries"] if entry["type"] == "turn"]
    assert turns[0]["toolCalls"][0]["output"] == "# Sample"
    (patch,) = project.results.glob("runs/*/changes.patch")
    assert "+hello" in patch.read_text()
    assert str(Path(".zelda", "runs", result["runId"], "result.json")) in shown
    assert "  greeting: efficiency is 66.7, and at least 99.0 is required" in output
    assert "Exit code  1, evaluations ran and something failed" in output


def of_bash(command: str, **how: Any) -> Reply:
    return tool_call("Bash", {"command": command}, **how)


REFUSED = "messages.0.content: bad thing"
"""How a session can end for this command; each code of a failure is tried in test_claude_code_ends.py."""

ENDS: dict[str, tuple[Suite, int, str, str | None]] = {
    "turns": (Suite("execution: {maxTurns: 2}\ntestCommand: 'true'", WORK[:2]), 1, "maxTurns", None),
    "budget": (
        Suite("execution: {maxCostUsd: 0.05}", [of_bash("true", tokens=Tokens(input=1_000_000)), text("Never asked.")]),
        1,
        "budgetExceeded",
        None,
    ),
    "time": (
        Suite("execution: {timeoutSeconds: 4}", [of_bash("tail -f /dev/null"), text("Late.")]),
        1,
        "timedOut",
        None,
    ),
    "setup": (Suite("setupCommand: echo no network >&2; exit 4", []), 2, "failed", "SETUP_FAILED"),
    "refused": (Suite("", [http_error(400, REFUSED)] * 12), 2, "failed", "REQUEST_REFUSED"),
}


def test_a_session_that_does_not_complete_is_stored_with_what_it_did(tmp_path: Path) -> None:
    suites = {name: suite for name, (suite, *_) in ENDS.items()}
    found = run_suites(repository(tmp_path, {"README.md": "# Sample\n", **files(suites)}), suites)
    for name, (_, code, status, failure) in ENDS.items():
        ran = found[name]
        assert (ran.code, ran.result["status"]) == (code, status), ran.page
        assert failure in {None, ran.result["failure"]["code"]}
        assert ran.result["failure"]["message"].split("\n")[0][:40] in " ".join(ran.page.split())
    refusal = found["refused"].result["failure"]["message"]
    assert "(400)" in refusal
    assert REFUSED in refusal
    # What a session had done until then is tested all the same.
    assert found["turns"].correctness["score"] == 100


def test_a_refused_key_ends_the_batch_and_what_ran_is_kept(tmp_path: Path) -> None:
    project = repository(tmp_path, {f"zelda/test-{name}.yaml": f"prompt: Greet {name}.\n" for name in "abcd"})

    def script(request: ApiRequest) -> Reply:
        return text("Done.") if "Greet a." in json.dumps(request.messages) else http_error(401, "invalid x-api-key")

    with ScriptedApi(script) as api:
        code, output = untouched_after_run(project, api=api)
        assert not any("Greet c." in json.dumps(request.messages) for request in api.requests)
    assert code == 2, output
    assert [(run["suite"], run["status"]) for run in results(project)] == [("a", "completed"), ("b", "failed")]
    assert "Not run    c, d: the API refused the key" in output
    assert output.count("the API refused the key") == 1


@pytest.mark.parametrize(("option", "ran", "told"), [("-x", "a", "1 run"), ("--max-failures=2", "ab", "2 runs")])
def test_enough_failures_end_the_batch_and_the_models_are_those_of_the_command(
    option: str, ran: str, told: str, tmp_path: Path
) -> None:
    suite = "prompt: Greet.\ntestCommand: test -e greeting\nmetrics: {toolUsage: false}\n"
    project = repository(tmp_path, {f"zelda/test-{name}.yaml": suite for name in "abc"})
    models = ("--model", "claude-haiku-4-5", "--judge-model", "claude-opus-5-5")
    with ScriptedApi(lambda _: text("Done.")) as api:
        code, output = untouched_after_run(project, option, "--jobs=1", *models, api=api)
    assert code == 1, output
    found = results(project)
    assert [run["suite"] for run in found] == list(ran)
    assert found[0]["models"] == ["claude-haiku-4-5"]
    assert found[0]["config"]["judgeModel"] == "claude-opus-5-5"
    assert f"{told} did not pass" in output


def by_prompt(request: ApiRequest) -> Reply:
    """The same three turns for every suite, each in its own file."""
    name = next(name for name in "abcd" if f"Greet {name}." in json.dumps(request.messages))
    position: int = sum(message["role"] == "assistant" for message in request.messages)
    replies: list[Reply] = [tool_call("Bash", {"command": f"echo {name} > {name}.txt"}), text("Done.")]
    return replies[position]


def four_suites(tmp_path: Path) -> Project:
    files = {f"zelda/test-{name}.yaml": f"prompt: Greet {name}.\ntags: [all, {name}]\n" for name in "abcd"}
    return repository(tmp_path, {"README.md": "# Sample\n", **files})


def test_suites_run_side_by_side_and_are_reported_in_order_as_confined_as_was_required(tmp_path: Path) -> None:
    """Four at a time, unless somebody wants fewer."""
    best = levels.probe(os.environ, find_cli()).level
    project = four_suites(tmp_path)
    met = threading.Barrier(4, timeout=PATIENCE)

    def together(request: ApiRequest) -> Reply:
        if not any(message["role"] == "assistant" for message in request.messages):
            met.wait()
        return by_prompt(request)

    with ScriptedApi(together) as api:
        done = zelda(project, "run", "--require-isolation", best, api=api.url, ZELDA_JOBS="")
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert "4 at a time" in output
    assert [result["changes"]["files"] for result in results(project)] == [["a.txt"], ["b.txt"], ["c.txt"], ["d.txt"]]
    assert len({result["batchId"] for result in results(project)}) == 1
    assert {result["isolation"]["level"] for result in results(project)} == {best}
    assert f"isolation: {best}" in output


THINKING = """\
prompt: Say hello.
metrics: {{toolUsage: false}}
execution: {{model: {model}, maxThinkingTokens: {budget}}}
"""


def test_the_thinking_budget_of_a_suite_reaches_the_api_and_the_option_replaces_it(tmp_path: Path) -> None:
    """Models that choose their own do not heed it: Claude Code sends them none."""
    files = {
        "zelda/test-fixed.yaml": THINKING.format(model="claude-haiku-4-5", budget=2048),
        "zelda/test-own.yaml": THINKING.format(model="claude-sonnet-5-5", budget=2048),
    }
    project = repository(tmp_path, {"README.md": "# Sample\n", **files})
    with ScriptedApi(lambda _: text("Hello.")) as api:
        code, output = untouched_after_run(project, api=api)
        assert code == 0, output
        code, output = untouched_after_run(project, "fixed", "--max-thinking-tokens", "4096", api=api)
        assert code == 0, output
    thinking = [(request.body["model"], request.body["thinking"].get("budget_tokens")) for request in api.requests]
    assert thinking == [("claude-haiku-4-5", 2048), ("claude-sonnet-5-5", None), ("claude-haiku-4-5", 4096)]
    budgets = [result["config"]["execution"]["maxThinkingTokens"] for result in results(project)]
    assert sorted(budgets) == [2048, 2048, 4096]


def test_a_recorded_run_is_replayed_without_key_and_network_and_says_where_it_departs(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    cassettes = tmp_path / "cassettes"
    with ScriptedApi(WORK) as api:
        code, output = untouched_after_run(project, "--record", str(cassettes), api=api)
    assert code == 0, output
    recorded = the_result(project)
    done = zelda(project, "run", "--replay", str(cassettes), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    replayed = results(project)[1]
    assert replayed["replayed"]
    same = ("usage", "turns", "toolCalls", "costUsd")
    found, wanted = (run["evaluations"]["efficiency"]["details"] for run in (replayed, recorded))
    assert {key: found[key] for key in same} == {key: wanted[key] for key in same}
    assert replayed["changes"] == recorded["changes"]
    # With --json, standard output is the results and nothing else.
    assert json.loads(done.stdout)["runs"] == [replayed]
    assert "greeting" in done.stderr

    project.write(
        {"README.md": "# Another sample\n", "zelda/test-greeting.yaml": SUITE.replace("greeting", "farewell")}
    )
    project.commit()
    done = zelda(project, "run", "--replay", str(cassettes))
    assert done.returncode == 2
    assert results(project)[2]["failure"]["code"] == "CASSETTE_MISMATCH"


REFUSALS = {
    "no key": (SUITE, ["run"], "ANTHROPIC_API_KEY is not set"),
    "both ways": (SUITE, ["run", "--record", "a", "--replay", "zelda"], "exclude each other"),
    "no end": (SUITE, ["run", "--watch", "--dry-run"], "--watch and --dry-run exclude each other"),
    "bad suite": ("promt: Hello\n", ["run"], "zelda/test-greeting.yaml:1:1"),
    "isolation": (SUITE + "isolation: {level: none, require: landlock}\n", ["run"], "landlock is required"),
    "no isolation": (SUITE, ["run", "--isolation", "none"], "would run as you"),
    "report": (SUITE, ["run", "--reporter", "json="], "'json=' cannot be used: allowed are json=results.json"),
    "two reports": (
        SUITE,
        ["run", "--json", "--reporter", "junit"],
        "json and junit cannot both go to standard output.",
    ),
    "no folder": (SUITE, ["run", "--reporter", "junit=gone/x.xml"], "The folder gone does not exist"),
    "thinking": (
        SUITE,
        ["run", "--max-thinking-tokens", "5"],
        "--max-thinking-tokens cannot be used: execution.maxThinkingTokens must be at least 1024, not 5.",
    ),
    "judge's model": (SUITE, ["rejudge", "latest", "--judge-model", "a b"], "--judge-model cannot be used: judgeModel"),
}


def test_what_cannot_be_run_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    for suite, arguments, sentence in REFUSALS.values():
        project.write({"zelda/test-greeting.yaml": suite})
        before = project.fingerprint()
        done = zelda(project, *arguments, ZELDA_UNSAFE="0")
        assert done.returncode == 2, sentence
        assert sentence in " ".join(done.stderr.split())
        assert "Traceback" not in done.stderr
        assert results(project) == []
        assert project.fingerprint() == before


def test_a_result_says_how_it_was_confined_and_what_the_project_tried(tmp_path: Path) -> None:
    settings = {"apiKeyHelper": "echo key", "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "GREETING": "hello"}}
    network = "isolation: {network: {test: none}}\n"
    project = project_with(tmp_path, suite=SUITE + network, **{".claude/settings.json": json.dumps(settings)})
    with ScriptedApi([text("Done.")]) as api:
        done = zelda(project, "run", "--isolation", "none", "--unsafe", api=api.url, ZELDA_UNSAFE="0")
    found = the_result(project)["isolation"]
    assert (found["level"], found["network"]["test"]) == ("none", "none")
    assert [finding["setting"] for finding in found["findings"]] == ["apiKeyHelper", "env.ANTHROPIC_BASE_URL"]
    assert "isolation: none" in done.stdout
    shown = zelda(project, "show", "latest").stdout
    assert "2 settings of the project did not take effect" in shown
    assert "env.ANTHROPIC_BASE_URL (.claude/settings.json)" in shown
