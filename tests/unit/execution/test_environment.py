"""What the CLI gets to see, and what a project's settings cannot undo."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from zelda_ci.domain.suite import ExecutionSettings
from zelda_ci.domain.workspace import Confinement, Workspace, WorkspaceSource
from zelda_ci.execution import launch
from zelda_ci.execution.launch import Pins, SessionRequest
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.wire import CassetteState

BASE = Path("/runs/one")


def request(**settings: Any) -> SessionRequest:
    workspace = Workspace(
        run_id="sample",
        base=BASE,
        root=BASE / "ws",
        path=BASE / "ws" / "part",
        home=BASE / "home",
        tmp=BASE / "tmp",
        git_dir=BASE / "git",
        start="0" * 40,
        source=WorkspaceSource(kind="copy", commit=None, branch=None, dirty=False),
        confinement=Confinement(("supervise",), {"PATH": "/usr/bin", "TZ": "UTC"}),
    )
    meter = Meter("http://127.0.0.1:4711", "token-of-the-run", None, CassetteState())
    return SessionRequest("an-id", "Work.", workspace, ExecutionSettings(**settings), meter)


def complete(asked: SessionRequest, *, as_root: bool = False) -> dict[str, str]:
    return launch.complete_environment(asked, sdk_version="0.2.186", as_root=as_root)


def test_the_environment_is_the_workspaces_and_what_a_hermetic_session_needs() -> None:
    variables = complete(request())
    assert (
        variables.items()
        >= {
            "PATH": "/usr/bin",
            "TZ": "UTC",
            "HOME": "/runs/one/home",
            "PWD": "/runs/one/ws/part",
            "CLAUDE_CONFIG_DIR": "/runs/one/home/.claude",
            "CLAUDE_CODE_TMPDIR": "/runs/one/tmp",
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:4711",
            "ANTHROPIC_API_KEY": "token-of-the-run",
            "CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }.items()
    )


@pytest.mark.parametrize(
    ("mode", "as_root", "told"),
    [("bypassPermissions", True, "1"), ("bypassPermissions", False, None), ("acceptEdits", True, None)],
)
def test_the_cli_is_told_of_a_sandbox_only_where_root_bypasses_permissions(
    mode: str, *, as_root: bool, told: str | None
) -> None:
    assert complete(request(permission_mode=mode), as_root=as_root).get("IS_SANDBOX") == told


def test_settings_pin_what_zelda_relies_on_and_hold_no_token() -> None:
    pinned = json.loads(launch.settings(request()))["env"]
    variables = complete(request())
    assert pinned["CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"] == "1"
    assert [pinned.pop(name) for name in launch.UNSET] == [""] * len(launch.UNSET)
    assert {name: variables[name] for name in pinned} == pinned
    assert "token-of-the-run" not in launch.settings(request())


def test_what_a_project_sets_and_may_not_is_pinned_to_what_the_session_has_and_never_to_the_token() -> None:
    names = ("CLAUDE_NEW", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "TZ")
    asked = dataclasses.replace(request(), pins=Pins(variables=names))
    pinned = json.loads(launch.settings(asked))["env"]
    assert (pinned["CLAUDE_NEW"], pinned["TZ"]) == ("", "UTC")
    assert pinned["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:4711"
    assert "token-of-the-run" not in launch.settings(asked)


def test_a_confined_session_starts_its_shells_through_zelda_and_has_a_socket_where_one_is_given() -> None:
    plain = request()
    inner = dataclasses.replace(plain.workspace.confinement, shell_prefix=Path("/z/prefix"), shell=Path("/z/bash"))
    workspace = dataclasses.replace(plain.workspace, confinement=inner)
    asked = dataclasses.replace(plain, workspace=workspace, socket=Path("/run/api"))
    names = ("CLAUDE_CODE_SHELL_PREFIX", "CLAUDE_CODE_SHELL", "ANTHROPIC_UNIX_SOCKET")
    for variables in (complete(asked), json.loads(launch.settings(asked))["env"]):
        assert [variables[name] for name in names] == ["/z/prefix", "/z/bash", "/run/api"]
    assert [complete(plain)[name] for name in names] == ["", "", ""]


def test_the_worktree_is_trusted_under_both_of_its_names(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    link = tmp_path / "link"
    link.symlink_to(real)
    asked = request()
    asked = dataclasses.replace(asked, workspace=dataclasses.replace(asked.workspace, path=link))
    assert json.loads(launch.trust(asked)) == {
        "projects": {
            str(folder): {"hasTrustDialogAccepted": True}
            for folder in (link, real, asked.workspace.root, asked.workspace.git_dir)
        }
    }


def test_tools_that_reach_beyond_the_run_are_taken_away_unless_the_suite_names_them() -> None:
    assert "WebFetch" in launch.disallowed_tools(request())
    asked = request(allowed_tools=("WebFetch(domain:example.com)", "Bash"), disallowed_tools=("Bash", "CronList"))
    disallowed = launch.disallowed_tools(asked)
    assert "WebFetch" not in disallowed
    assert "Bash" in disallowed
    assert disallowed.count("CronList") == 1


@pytest.mark.parametrize(("limit", "milliseconds"), [(1800, "120000"), (20, "5000")])
def test_retries_of_one_request_take_at_most_a_quarter_of_the_time(limit: float, milliseconds: str) -> None:
    variables = complete(request(timeout_seconds=limit))
    assert variables["CLAUDE_CODE_RETRY_WATCHDOG_MAX_WAIT_MS"] == milliseconds
