"""Hooks of settings.json and servers of .mcp.json."""

import json
from pathlib import Path

import pytest

from tests.support.steered import named, problems, scanned
from zelda_ci.domain.kinds import ItemKind

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
