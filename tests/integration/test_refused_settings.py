"""A settings file that Claude Code refuses is said to be refused, as a session of the bundled CLI shows it."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.builders import transcript
from tests.integration.test_check import project_with, rows, suite, zelda
from tests.support.claude_sessions import Session, make_workspace
from tests.support.command import environment, run
from tests.support.projects import repository
from tests.support.scripted_api import ScriptedApi, text, tool_call
from tests.support.steered import safe
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.errors import ExecutionError
from zelda_ci.execution.doctor import refusals
from zelda_ci.execution.manifest.loading import resolve_loaded
from zelda_ci.execution.manifest.scan import scan

FILE = ".claude/settings.json"
HOOKS = {"SessionStart": [{"hooks": [{"type": "command", "command": "touch RAN"}]}]}
DENY = {"deny": ["Bash(echo:*)"]}


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        ({"cleanupPeriodDays": "never"}, "cleanupPeriodDays: Expected number, but received string"),
        ({"hooks": {**HOOKS, "PreToolUse": "bad"}}, 'Hook event "PreToolUse" must be an array'),
        (
            {
                "hooks": {**HOOKS, "NoSuch": []},
                "env": {"A": {"b": 1}},
                "permissions": {"deny": ["Bash(", *DENY["deny"]]},
            },
            None,
        ),
        (",", "Invalid or malformed JSON"),
    ],
)
def test_the_manifest_calls_loaded_what_a_session_applies(tmp_path: Path, more: Any, refused: str | None) -> None:
    whole = {"hooks": HOOKS, "permissions": DENY, **(more if isinstance(more, dict) else {})}
    content = json.dumps(whole) if isinstance(more, dict) else f"{json.dumps(whole)}{more}"
    workspace = make_workspace(tmp_path, {FILE: content})
    found = scan(workspace.root, workspace.path, safe, refusals)
    with ScriptedApi([tool_call("Bash", {"command": "echo REAL"}), text("Done.")]) as api:
        session = Session(workspace, api.url)
        anyio.run(session.lead)
    heard = transcript(session.records)
    hooks = [it for it in resolve_loaded(found, heard, safe).items if it.kind is ItemKind.HOOK]
    (call,) = heard.tool_calls
    is_applied = (workspace.path / "RAN").exists()
    assert is_applied == call.is_error == (refused is None)
    assert all(hook.loaded == is_applied for hook in hooks)
    if refused:
        (dropped,) = found.refused
        assert (dropped.key, refused in dropped.problem) == ("", True)
        assert all(refused in str(hook.reason) for hook in hooks)


def test_entries_that_are_passed_over_are_named_and_the_rest_is_loaded() -> None:
    hooks = {**HOOKS, "NoSuch": [], "Stop": [{"hooks": [{"type": "dance"}]}]}
    servers = {"a": {"command": 5}, "fine": {"command": "true", "env": {"X": "${NOT_SET}"}}}
    files = {
        "pkg/.claude/settings.json": json.dumps({"hooks": hooks}),
        ".mcp.json": json.dumps({"mcpServers": servers}),
    }
    told = {(each.file, each.key) for each in refusals(files, "pkg", safe)}
    settings = "pkg/.claude/settings.json"
    assert told == {(settings, "hooks.NoSuch"), (settings, "hooks.Stop.0.hooks.0.type"), (".mcp.json", "mcpServers.a")}


def test_nothing_of_the_files_runs_while_claude_code_reads_them(tmp_path: Path) -> None:
    evil = tmp_path / "evil"
    evil.mkdir()
    for name in ("git", "npm", "sh", "bash", "which"):
        (evil / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/RAN\n")
        (evil / name).chmod(0o755)
    touch = f"touch {tmp_path}/RAN"
    helpers = dict.fromkeys(("apiKeyHelper", "awsAuthRefresh", "gcpAuthRefresh", "otelHeadersHelper"), touch)
    command = {"type": "command", "command": touch}
    variables = {"PATH": str(evil), "BASH_ENV": str(evil / "sh"), "CLAUDE_CODE_SHELL": str(evil / "sh")}
    hooks = {event: [{"hooks": [command]}] for event in ("SessionStart", "Setup", "ConfigChange")}
    settings = {**helpers, "env": variables, "statusLine": command, "hooks": hooks}
    servers = {"mcpServers": {"a": {"command": "touch", "args": [f"{tmp_path}/RAN"]}}}
    assert refusals({FILE: json.dumps(settings), ".mcp.json": json.dumps(servers)}, "", safe) == ()
    assert not (tmp_path / "RAN").exists()


@pytest.mark.parametrize("value", [f"{'[' * 60_000}{']' * 60_000}", "1" * 5_000])
def test_settings_that_zelda_cannot_read_are_not_handed_on(tmp_path: Path, value: str) -> None:
    settings = {"apiKeyHelper": f"touch {tmp_path}/RAN", "x": "VALUE"}
    with pytest.raises(ExecutionError, match="holds a number of thousands of digits, or nests values by the hundred"):
        refusals({FILE: json.dumps(settings).replace('"VALUE"', value)}, "", safe)
    assert not (tmp_path / "RAN").exists()


def test_check_and_init_say_it_without_a_session(tmp_path: Path) -> None:
    refused = json.dumps({"hooks": HOOKS, "cleanupPeriodDays": "never"})
    problem = "cleanupPeriodDays: Expected number, but received string"
    words = f"{FILE} is not loaded: {problem}."
    fresh = repository(tmp_path / "fresh", {FILE: refused})
    assert words in run(["init", "--yes", "--no-check"], fresh.path, environment(fresh)).stdout
    project = project_with(tmp_path / "project", one=suite() + "isolation: {level: none}\n")
    with ScriptedApi(lambda _: text("Done.")) as api:
        (project.path / ".claude").mkdir()
        (project.path / FILE).write_text(refused)
        found = {row["subject"]: row for row in rows(zelda(project, "check", "--json", api=api.url))}
        (project.path / FILE).write_text(json.dumps({"enabledPlugins": {"p@far": True, "off@far": False}}))
        plugin = {row["subject"]: row for row in rows(zelda(project, "check", "--json", api=api.url))}
    assert (found["settings"]["status"], found["settings"]["message"]) == ("warning", words)
    assert f"{FILE} is not loaded, p@far: it comes from outside of this repository" in plugin["settings"]["message"]
