"""Settings of a project that are not the project's to make."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.steered import workspace_in, write
from zelda_ci.execution.manifest.settings import SettingOverrides, find_overrides
from zelda_ci.redact import Redactor, Secret

REDACT = Redactor([Secret("hunter2-is-secret")])


def find(tmp_path: Path, settings: Any, file: str = ".claude/settings.json") -> SettingOverrides:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    write(tmp_path, {file: text})
    return find_overrides(workspace_in(tmp_path), REDACT)


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
    assert find(tmp_path, settings) == SettingOverrides()


def test_helpers_of_local_settings_are_found_without_a_variable_to_pin(tmp_path: Path) -> None:
    helpers = dict.fromkeys(("apiKeyHelper", "awsAuthRefresh", "otelHeadersHelper", "proxyAuthHelper"), "echo key")
    found = find(tmp_path, {**helpers, "sandbox": {"enabled": True}}, ".claude/settings.local.json")
    assert {finding.setting for finding in found.findings} == {*helpers, "sandbox"}
    assert {finding.file for finding in found.findings} == {".claude/settings.local.json"}
    assert found.variables == ()


def test_thousands_of_variables_are_all_pinned_and_fifty_told(tmp_path: Path) -> None:
    found = find(tmp_path, {"env": {f"CLAUDE_X{number}": "" for number in range(3000)}})
    assert (len(found.findings), len(found.variables)) == (50, 3000)


@pytest.mark.parametrize("how", ["fifo", "link out", "folder"])
def test_a_trap_in_place_of_the_settings_is_no_setting(tmp_path: Path, how: str) -> None:
    root = tmp_path / "tree"
    write(tmp_path, {"outside.json": '{"apiKeyHelper": "x"}', "tree/.claude/rules.md": ""})
    file = root / ".claude" / "settings.json"
    match how:
        case "fifo":
            os.mkfifo(file)
        case "folder":
            file.mkdir()
        case _:
            file.symlink_to(tmp_path / "outside.json")
    assert find_overrides(workspace_in(root), REDACT) == SettingOverrides()
