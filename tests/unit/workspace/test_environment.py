"""The allow-list from which a session's environment is built."""

from pathlib import Path

import pytest

from zelda_ci.domain.suite import ExecutionSettings
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace.folder import build_environment, search_path


@pytest.fixture
def run(tmp_path: Path) -> WorkspaceFolder:
    folder = WorkspaceFolder(tmp_path / "run", -1)
    folder.home.mkdir(parents=True)
    return folder


def build(run: WorkspaceFolder, environ: dict[str, str], *names: str) -> dict[str, str]:
    execution = ExecutionSettings(env=names)
    project, reaches = run.path.parent / "project", lambda place: place.name != "closed"
    return build_environment(run, project, environ, execution, run.root, reaches, run.path)


def test_programs_of_the_project_are_not_on_the_path(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".venv/bin").mkdir(parents=True)
    (tmp_path / "link").symlink_to(project / ".venv")
    path = f"{project}/.venv/bin:/usr/bin:{tmp_path}/link/bin:./node_modules/.bin::bin:{project}:{tmp_path}/projects"
    assert search_path(path, project) == f"/usr/bin:{tmp_path}/projects"


def test_folders_that_a_run_cannot_enter_are_not_on_the_path(run: WorkspaceFolder) -> None:
    assert build(run, {"PATH": "/closed:/usr/bin"})["PATH"] == "/usr/bin"


def test_version_managers_find_what_they_installed(run: WorkspaceFolder, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".rustup").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    built = build(run, {"HOME": str(home), "PYENV_ROOT": f"{tmp_path}/elsewhere", "NVM_DIR": "/gone"})
    assert built["RUSTUP_HOME"] == f"{home}/.rustup"
    assert built["PYENV_ROOT"] == f"{tmp_path}/elsewhere"
    assert "NVM_DIR" not in built


def test_the_way_to_zelda_does_not_lead_through_a_proxy(run: WorkspaceFolder) -> None:
    environ = {"HTTPS_PROXY": "http://proxy.example", "NO_PROXY": "example.com"}
    assert not {"HTTPS_PROXY", "NO_PROXY"} & set(build(run, environ))
    built = build(run, environ, "HTTPS_PROXY", "NO_PROXY")
    assert built["HTTPS_PROXY"] == "http://proxy.example"
    assert built["NO_PROXY"] == built["no_proxy"] == "127.0.0.1,localhost,example.com"
