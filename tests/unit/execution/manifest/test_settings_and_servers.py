"""Hooks and other settings, those that are not the project's to make too, and servers of .mcp.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.steered import named, problems, scanned, workspace_in, write
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.errors import ExecutionError
from zelda_ci.execution.launch import Pins
from zelda_ci.execution.manifest.pins import find_pins
from zelda_ci.redact import Redactor, Secret

RUN = {"type": "command", "command": "make lint"}


def test_hooks_are_named_by_what_they_wait_for(tmp_path: Path) -> None:
    hooks = {
        "PreToolUse": [{"matcher": "Bash", "hooks": [RUN]}],
        "Stop": [{"hooks": [RUN]}],
    }
    found = scanned(tmp_path, {".claude/settings.json": json.dumps({"hooks": hooks})})
    items = named(found, ItemKind.HOOK)
    assert {name: item.problem for name, item in items.items()} == {
        "PreToolUse:Bash": None,
        "Stop": None,
    }
    assert items["Stop"].description == "command: make lint"
    off = scanned(tmp_path, {".claude/settings.json": json.dumps({"disableAllHooks": True, "hooks": hooks})})
    assert "disableAllHooks" in str(named(off, ItemKind.HOOK)["Stop"].problem)


@pytest.mark.parametrize("hooks", ["text", 5, [], {"Stop": "bad"}, {"Stop": [1]}, {"Stop": [{"hooks": "x"}]}, None])
def test_hooks_of_any_shape_harm_nothing(tmp_path: Path, hooks: object) -> None:
    found = scanned(tmp_path, {".claude/settings.json": json.dumps({"hooks": hooks})})
    assert all(item.problem == "it is not of the shape that hooks have" for item in found.items)


def test_only_the_settings_of_the_sessions_own_folder_count(tmp_path: Path) -> None:
    files = {".claude/settings.json": json.dumps({"hooks": {"Stop": [{"hooks": [RUN]}]}})}
    assert scanned(tmp_path, files, folder="pkg").items == ()


def test_servers_are_listed_with_how_they_are_reached_and_without_their_secrets(tmp_path: Path) -> None:
    servers = {
        "local": {"command": "node", "args": ["server.js", "--token", "hunter2"], "env": {"TOKEN": "hunter3"}},
        "remote": {"type": "http", "url": "https://example.com/mcp?key=hunter4", "headers": {"A": "hunter5"}},
        "nothing": {"type": "http"},
        "off": {"command": "node"},
        "odd": "text",
    }
    files = {
        ".mcp.json": json.dumps({"mcpServers": servers}),
        ".claude/settings.json": json.dumps({"disabledMcpjsonServers": ["off"]}),
    }
    found = scanned(tmp_path, files)
    items = named(found, ItemKind.MCP_SERVER)
    assert {name: item.description for name, item in items.items()} == {
        "local": "command: node",
        "remote": "url: https://example.com/mcp",
        "nothing": None,
        "off": "command: node",
        "odd": None,
    }
    assert {name for name, item in items.items() if item.problem} == {"nothing", "off", "odd"}
    assert "hunter" not in found.model_dump_json()


def test_a_server_of_a_nearer_folder_takes_the_place_of_one_further_up(tmp_path: Path) -> None:
    near, far = ({"mcpServers": {"same": {"command": command}}} for command in ("near", "far"))
    found = scanned(tmp_path, {".mcp.json": json.dumps(far), "pkg/.mcp.json": json.dumps(near)}, folder="pkg")
    assert problems(found, ItemKind.MCP_SERVER) == {
        "pkg/.mcp.json": None,
        ".mcp.json": "a server of the same name in a nearer folder takes its place",
    }


@pytest.mark.parametrize("content", ["{broken", "\x00", '{"a":' * 100_000, "nan" * 10])
def test_files_that_are_no_json_are_noted(tmp_path: Path, content: str) -> None:
    found = scanned(tmp_path, {".mcp.json": content, ".claude/settings.json": content})
    assert found.items == ()
    assert [note.partition(": ")[0] for note in found.notes] == [
        "Nothing in .claude/settings.json was loaded",
        "Nothing in .mcp.json was loaded",
    ]


@pytest.mark.parametrize("content", ["[]", "5", '"text"', "{}", '{"mcpServers": []}', '{"mcpServers": null}'])
def test_json_of_another_shape_is_empty(tmp_path: Path, content: str) -> None:
    found = scanned(tmp_path, {".mcp.json": content, ".claude/settings.json": content})
    assert (found.items, found.notes) == ((), ())


REDACT = Redactor([Secret("hunter2-is-secret")])


def find(tmp_path: Path, settings: Any, file: str = ".claude/settings.json") -> Pins:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    write(tmp_path, {file: text})
    return find_pins(workspace_in(tmp_path), REDACT, mods=False)


def test_variables_on_the_way_to_the_model_are_found_and_pinned(tmp_path: Path) -> None:
    names = (
        "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_UNIX_SOCKET", "ANTHROPIC_CUSTOM_HEADERS", "BASH_ENV",
        "CLAUDE_CODE_EXTRA_BODY", "CLAUDE_CODE_SHELL_PREFIX", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_OF_TOMORROW",
        "HTTPS_PROXY", "https_proxy", "LD_PRELOAD", "OTEL_EXPORTER_OTLP_ENDPOINT", "ZELDA_SESSION", "BASH_FUNC_sh%%",
    )  # fmt: skip
    found = find(tmp_path, {"env": dict.fromkeys(names, "hunter2-is-secret")})
    assert {finding.setting for finding in found.findings} == {f"env.{name}" for name in names}
    assert {finding.file for finding in found.findings} == {".claude/settings.json"}
    assert all(finding.effect.endswith("it did not take effect.") for finding in found.findings)
    assert sorted(found.variables) == sorted(names)


@pytest.mark.parametrize(
    "settings",
    [
        {"env": {"NODE_OPTIONS": "--max-old-space-size=4096", "DATABASE_URL": "x", "AWS_REGION": "eu-west-1"}},
        {"env": {"CLAUDE_CODE_EFFORT_LEVEL": "high", "MAX_THINKING_TOKENS": "1", "BASH_DEFAULT_TIMEOUT_MS": "1"}},
        {"hooks": {}, "permissions": {"allow": ["Bash"]}, "model": "opus", "apiKeyHelper": ""},
        {"env": ["ANTHROPIC_BASE_URL"]},
        {"env": None},
        [],
        "not json",
        "",
    ],
)
def test_what_steers_or_means_nothing_is_the_projects_own(tmp_path: Path, settings: Any) -> None:
    assert find(tmp_path, settings) == Pins()


@pytest.mark.parametrize("value", ["[" * 100_000 + "]" * 100_000, "1" * 5000])
def test_settings_that_claude_code_reads_and_zelda_cannot_end_the_run(tmp_path: Path, value: str) -> None:
    with pytest.raises(ExecutionError, match="holds a number of thousands of digits"):
        find(tmp_path, f'{{"env": {{"CLAUDE_CODE_OF_TOMORROW": "1"}}, "x": {value}}}')


def test_helpers_of_local_settings_are_found_without_a_variable_to_pin(tmp_path: Path) -> None:
    helpers = dict.fromkeys(("apiKeyHelper", "awsAuthRefresh", "otelHeadersHelper", "proxyAuthHelper"), "echo key")
    found = find(tmp_path, {**helpers, "sandbox": {"enabled": True}}, ".claude/settings.local.json")
    assert {finding.setting for finding in found.findings} == {*helpers, "sandbox"}
    assert {finding.file for finding in found.findings} == {".claude/settings.local.json"}
    assert found.variables == ()


def test_thousands_of_variables_are_all_pinned_and_fifty_told(tmp_path: Path) -> None:
    found = find(tmp_path, {"env": {f"CLAUDE_X{number}": "" for number in range(3000)}})
    assert (len(found.findings), len(found.variables)) == (50, 3000)
