"""What is put on disk so that a session can start."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.claude_sessions import Session, make_workspace, shebang
from zelda_ci.errors import ExecutionError
from zelda_ci.execution import launch
from zelda_ci.process import Launch

SHOW = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"


IMPORTS = """
import sys
from zelda_ci.execution import claude_code, launch
print(launch.find_cli(), "claude_agent_sdk" in sys.modules)
claude_code.import_sdk().ClaudeSDKClient
print(sorted({name for name in sys.modules if name.partition(".")[0] in claude_code.UNUSED}))
import mcp.types
print(mcp.types.Tool.__module__)
"""


def test_the_cli_is_found_without_the_sdk_which_is_imported_without_what_only_python_tools_need() -> None:
    shown = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True).stdout
    found, loaded, real = shown.splitlines()
    path, imported = found.rsplit(maxsplit=1)
    assert os.access(path, os.X_OK)
    assert (imported, loaded) == ("False", "[]")
    assert real.startswith("mcp")


@pytest.mark.parametrize("package", [json, None], ids=["without it", "not installed"])
def test_a_missing_cli_is_explained(package: ModuleType | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", package)
    with pytest.raises(ExecutionError) as caught:
        launch.find_cli()
    assert caught.value.code == "CLI_MISSING"
    assert caught.value.hint


def test_the_stub_passes_arguments_on_and_replaces_the_environment(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "it's a=b place", level="none")
    request = Session(workspace, "http://127.0.0.1:9").request()
    program = tmp_path / "show = it"
    program.write_text(f"{shebang()}\n{SHOW}\n")
    program.chmod(0o755)
    arguments = ["--flag", "two words", "", "quo'te\n"]
    with launch.prepared(request, program, {"ONLY": "this one", "NOT_UTF8": "\udcff"}) as (stub, read_status):
        assert read_status() == Launch(begun=False)
        done = subprocess.run([stub, *arguments], capture_output=True, check=True, env={"OF_ZELDA": "secret"})
        status = read_status()

    assert (status.begun, status.exit_code, done.stderr) == (True, 0, b"")
    assert status.supervisor
    given, environment = json.loads(done.stdout)
    assert given == arguments
    assert environment["ONLY"] == "this one"
    assert environment["NOT_UTF8"] == "\udcff"
    assert "OF_ZELDA" not in environment


def test_the_environment_is_written_for_the_owner_only(tmp_path: Path) -> None:
    request = Session(make_workspace(tmp_path), "http://127.0.0.1:9").request()
    for token in "xy":
        with launch.prepared(request, Path("/bin/true"), {"TOKEN": token}):
            pass
    file = request.workspace.base / "claude.environment"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == "TOKEN=y"


def test_a_link_in_place_of_the_config_folder_is_not_followed(tmp_path: Path) -> None:
    request = Session(make_workspace(tmp_path), "http://127.0.0.1:9").request()
    mine = tmp_path / "of-the-developer"
    mine.mkdir()
    (mine / ".claude.json").write_text("mine")
    (request.workspace.home / ".claude").symlink_to(mine)
    with launch.prepared(request, Path("/bin/true"), {}):
        pass
    assert (mine / ".claude.json").read_text() == "mine"
    assert "hasTrustDialogAccepted" in (request.workspace.home / ".claude" / ".claude.json").read_text()


def test_a_folder_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    request = Session(make_workspace(tmp_path), "http://127.0.0.1:9").request()
    (request.workspace.home / ".claude").write_text("a file in the way")
    with pytest.raises(ExecutionError) as caught, launch.prepared(request, Path("/bin/true"), {}):
        pass
    assert caught.value.code == "SESSION_START_FAILED"
    assert caught.value.hint
