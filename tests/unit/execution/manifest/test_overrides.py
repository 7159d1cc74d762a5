"""Settings of a project that are not the project's to make."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.claude_sessions import make_workspace
from zelda_ci.execution.manifest.settings import SettingOverrides, find_overrides
from zelda_ci.redact import Redactor, Secret

REDACT = Redactor([Secret("hunter2-is-secret")])


def find(tmp_path: Path, settings: Any, file: str = ".claude/settings.json") -> SettingOverrides:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    return find_overrides(make_workspace(tmp_path, {file: text}), REDACT)


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_UNIX_SOCKET", "ANTHROPIC_CUSTOM_HEADERS", "BASH_ENV",
        "CLAUDE_CODE_EXTRA_BODY", "CLAUDE_CODE_SHELL_PREFIX", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_OF_TOMORROW",
        "HTTPS_PROXY", "https_proxy", "LD_PRELOAD", "OTEL_EXPORTER_OTLP_ENDPOINT", "ZELDA_SESSION", "BASH_FUNC_sh%%",
    ],
)  # fmt: skip
def test_a_variable_on_the_way_to_the_model_is_found_and_pinned(tmp_path: Path, name: str) -> None:
    found = find(tmp_path, {"env": {name: "hunter2-is-secret"}})
    (finding,) = found.findings
    assert (finding.file, finding.setting) == (".claude/settings.json", f"env.{name}")
    assert finding.effect.endswith("it did not take effect.")
    assert found.variables == (name,)


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
    assert find(tmp_path, settings) == SettingOverrides()


@pytest.mark.parametrize("key", ["apiKeyHelper", "awsAuthRefresh", "otelHeadersHelper", "proxyAuthHelper", "sandbox"])
def test_a_helper_is_found_without_a_variable_to_pin(tmp_path: Path, key: str) -> None:
    found = find(tmp_path, {key: {"enabled": True} if key == "sandbox" else "echo key"})
    assert [finding.setting for finding in found.findings] == [key]
    assert found.variables == ()


def test_local_settings_are_told_too(tmp_path: Path) -> None:
    found = find(tmp_path, {"apiKeyHelper": "x"}, ".claude/settings.local.json")
    assert [finding.file for finding in found.findings] == [".claude/settings.local.json"]


def test_names_are_outside_text(tmp_path: Path) -> None:
    found = find(tmp_path, {"env": {"CLAUDE_hunter2-is-secret": "", "CLAUDE_" + "X" * 1000: ""}})
    assert [len(finding.setting) for finding in found.findings] == [len("env.CLAUDE_***"), 200]


def test_thousands_of_variables_are_all_pinned_and_fifty_told(tmp_path: Path) -> None:
    found = find(tmp_path, {"env": {f"CLAUDE_X{number}": "" for number in range(3000)}})
    assert (len(found.findings), len(found.variables)) == (50, 3000)


def test_a_workspace_that_is_gone_has_no_settings(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    gone = dataclasses.replace(workspace, path=workspace.root / "gone")
    assert find_overrides(gone, REDACT) == SettingOverrides()


@pytest.mark.parametrize("how", ["fifo", "link out", "folder"])
def test_a_trap_in_place_of_the_settings_is_no_setting(tmp_path: Path, how: str) -> None:
    workspace = make_workspace(tmp_path)
    (workspace.root / ".claude").mkdir()
    (tmp_path / "outside.json").write_text('{"apiKeyHelper": "x"}')
    file = workspace.root / ".claude" / "settings.json"
    match how:
        case "fifo":
            os.mkfifo(file)
        case "folder":
            file.mkdir()
        case _:
            file.symlink_to(tmp_path / "outside.json")
    assert find_overrides(workspace, REDACT) == SettingOverrides()
