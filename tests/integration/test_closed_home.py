"""Toolchains below folders that other users may not enter, such as root's home: a run with its own user has them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import needs
from tests.support.command import environment, zelda
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi
from zelda_ci.domain.test_run import CommandResult
from zelda_ci.domain.workspace import Workspace
from zelda_ci.sandbox import levels, programs
from zelda_ci.workspace.workspaces import Workspaces

pytestmark = needs.ROOT


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A closed home with two toolchains, and a secret beside them."""
    needs.level("uid")
    if not levels.covers():
        pytest.skip("needs the right to mount")
    made = tmp_path / "closed"
    tool(made / ".pyenv/shims/python3", "shim")
    tool(made / ".pyenv/versions/3/bin/tool", "inner")
    tool(made / ".local/bin/tool", "tool")
    (made / ".ssh").mkdir()
    (made / ".ssh/id").write_text("canary\n")
    made.chmod(0o700)
    return made


def tool(file: Path, says: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\necho {says}\n")
    file.chmod(0o755)


def project_of(place: Path, home: Path, *folders: str, **environ: str) -> Project:
    made = repository(place, {"README.md": "hello\n"})
    search_path = ":".join([*(str(home / folder) for folder in folders), os.environ["PATH"]])
    made.environ |= {"PATH": search_path, "HOME": str(home), **environ}
    made.level = "uid"
    return made


def run(project: Project, line: str) -> CommandResult:
    async def work(workspaces: Workspaces, workspace: Workspace) -> CommandResult:
        assert workspace.confinement.uid is not None
        return await workspaces.run_command(workspace, line, PATIENCE)

    result: CommandResult = project.work(work)
    return result


BOTH = (".pyenv/shims", ".local/bin")


def test_programs_below_a_closed_home_are_run_and_nothing_else_of_it_is_there(place: Path, home: Path) -> None:
    """Folders that are closed within a toolchain are opened as far as it needs."""
    for folder in (".pyenv/versions", ".pyenv", ".local"):
        (home / folder).chmod(0o700)
    project = project_of(place, home, *BOTH, ".pyenv/versions/3/bin")
    done = run(
        project,
        f"python3; tool; no-such-program; echo $?; cat {home}/.ssh/id; ls {home}; "
        f"echo x > {home}/new; echo x > {home}/.local/bin/tool; {home}/.pyenv/versions/3/bin/tool",
    )
    said = done.output.splitlines()
    assert [line for line in said if line in {"shim", "tool", "127", "inner"}] == ["shim", "tool", "127", "inner"]
    assert "canary" not in done.output
    assert not (home / "new").exists()
    assert (home / ".local/bin/tool").read_text().endswith("echo tool\n")
    assert home.stat().st_mode & 0o777 == 0o700


def test_links_on_the_way_lead_where_they_lead_outside(place: Path, home: Path, tmp_path: Path) -> None:
    """A home that is a link, a toolchain in another closed folder, and a chain of links to one file."""
    elsewhere = tmp_path / "other"
    tool(elsewhere / "node/bin/node", "linked toolchain")
    tool(elsewhere / "v1/deep", "linked file")
    (elsewhere / "secret").write_text("canary\n")
    elsewhere.chmod(0o700)
    (home / ".node").symlink_to(elsewhere / "node")
    (home / "current").symlink_to("../other/v1")
    (home / ".local/bin/deep").symlink_to("../../current/deep")
    (tmp_path / "alias").symlink_to("closed")
    project = project_of(place, tmp_path / "alias", ".node/bin", *BOTH)
    done = run(project, f"node; deep; tool; cat {elsewhere}/secret {home}/.ssh/id {tmp_path}/alias/.ssh/id")
    assert [line for line in done.output.splitlines() if "cat:" not in line] == [
        "linked toolchain", "linked file", "tool",
    ]  # fmt: skip


def test_project_and_workspaces_may_lie_below_a_closed_home(home: Path) -> None:
    (home / "code").mkdir()
    project = project_of(home / "code", home, *BOTH, ZELDA_WORKSPACES=str(home / "zelda"))
    before = project.fingerprint()
    done = run(
        project, f"tool; pwd; cat README.md; echo more >> README.md && cat {project.path}/README.md; ls {home}/zelda"
    )
    assert done.output.splitlines()[0] == "tool"
    assert done.output.splitlines()[1].startswith(f"{home}/zelda/")
    assert done.output.count("hello") == 1
    assert project.fingerprint() == before
    assert project.leftovers() == []


@contextmanager
def mounted(*arguments: str) -> Iterator[None]:
    """A mount of the machine's, for as long as the context lasts."""
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs a kernel that mounts {' '.join(arguments)}: {done.stderr}")
    try:
        yield
    finally:
        subprocess.run(["umount", arguments[-1]], check=True)


def test_a_home_on_an_overlay_file_system_as_in_a_container(place: Path, home: Path, tmp_path: Path) -> None:
    for name in ("upper", "work", "merged"):
        (tmp_path / name).mkdir()
    merged = tmp_path / "merged"
    layers = f"lowerdir={home},upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    with mounted("-t", "overlay", "overlay", "-o", layers, str(merged)):
        merged.chmod(0o700)
        done = run(project_of(place, merged, *BOTH), f"tool; python3; cat {merged}/.ssh/id; no-such-program; echo $?")
    assert [line for line in done.output.splitlines() if ":" not in line] == ["tool", "shim", "127"]


def test_mounts_within_a_toolchain_come_along_and_stay_as_they_are(place: Path, home: Path, tmp_path: Path) -> None:
    """A volume that is mounted read-only on a toolchain's folder, and one within it."""
    for name in ("cache", "inner"):
        tool(tmp_path / name / "bin/tool", name)
    (home / ".cache-tool").mkdir()
    (home / ".pyenv/inner").mkdir()
    with (
        mounted("--bind", "-o", "ro", str(tmp_path / "cache"), str(home / ".cache-tool")),
        mounted("--bind", str(tmp_path / "inner"), str(home / ".pyenv/inner")),
    ):
        project = project_of(place, home, ".cache-tool/bin", *BOTH)
        done = run(project, f"tool; {home}/.pyenv/inner/bin/tool; echo x > {home}/.pyenv/inner/bin/tool")
    assert done.output.splitlines()[:2] == ["cache", "inner"]
    assert (tmp_path / "inner/bin/tool").read_text().endswith("echo inner\n")


BROKEN = {
    "a folder that is not there": [("empty", "/nowhere/at/all", "")],
    "a place that is taken": [("read", "/usr/bin/env", "")],
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_cover_that_cannot_be_made_means_that_nothing_runs(what: str, home: Path) -> None:
    policy: dict[str, Any] = {"cover": BROKEN[what], "uid": levels.USERS[0]}
    argv = [*programs.inside(policy), "/bin/echo", "ran"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("the program was not started, because it could not be confined: ")


def test_where_root_may_not_mount_an_ordered_cover_means_that_nothing_runs(home: Path) -> None:
    policy: dict[str, Any] = {"cover": [("empty", str(home), "")], "uid": levels.USERS[0]}
    argv = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all", *programs.inside(policy), "/bin/echo", "ran"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (125, "")


# Root as in a container, which may not mount anything.
WITHOUT_MOUNTS = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all", sys.executable, "-m"]


def without_mounts(project: Project, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WITHOUT_MOUNTS, *arguments],
        cwd=Path(__file__).parents[2] if arguments[0].startswith("tests.") else project.path,
        env={**environment(project, **more), "ZELDA_UNSAFE": "0"},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip


def test_where_root_may_not_mount_closed_folders_leave_the_path_and_what_is_missing_is_missing(
    place: Path, home: Path
) -> None:
    project = project_of(place, home, *BOTH)
    line = "no-such-program; echo $?; tool; echo $?; echo PATH=$PATH"
    done = without_mounts(project, "tests.support.confined_run", str(project.path), "uid", line)
    told = json.loads(done.stdout)
    assert told["level"] == "uid", told
    assert [row for row in told["output"].splitlines() if row.isdecimal()] == ["127", "127"]
    path = next(row for row in told["output"].splitlines() if row.startswith("PATH="))
    assert str(home) not in path
    assert "/usr/bin" in path


def test_a_program_that_is_out_of_reach_ends_everything_before_it_begins_with_the_ways_out(
    place: Path, home: Path
) -> None:
    project = project_of(place, home, *BOTH)
    project.write(
        {"zelda/test-a.yaml": "prompt: Go.\ntestCommand: tool --all\nmetrics: {requirementFulfillment: false}\n"}
    )
    project.commit()
    level = {"ZELDA_NO_CHECK": "0", "COLUMNS": "4000"}
    with ScriptedApi([]) as api:
        done = without_mounts(project, "zelda_ci", "run", "--isolation", "uid", api_url=api.url, **level)
    said = done.stdout + done.stderr
    assert done.returncode == 2, said
    assert f"{home}/.local/bin/tool lies below {home}, which the run's own user may not enter" in said
    assert f"chmod 711 {home}" in said


def test_a_program_that_is_another_one_in_the_run_is_a_warning_with_both_places_and_versions(
    place: Path, home: Path, tmp_path: Path
) -> None:
    tool(home / ".local/bin/uv", "uv 2.0 in $PWD")
    tool(tmp_path / "open/uv", "uv 1.0 in $PWD")
    project = project_of(place, home, *BOTH)
    project.environ["PATH"] = f"{home}/.local/bin:{tmp_path}/open:{os.environ['PATH']}"
    project.write({"zelda/test-a.yaml": "prompt: Go.\ntestCommand: 'true'\nmetrics: {requirementFulfillment: false}\n"})
    project.commit()
    with ScriptedApi([]) as api:
        done = without_mounts(project, "zelda_ci", "check", "--isolation", "uid", "--json", api_url=api.url)
        mounting = zelda(project, "check", "--isolation", "uid", "--json", api=api.url)
    warning = next(row for row in json.loads(done.stdout)["checks"] if row["subject"] == "programs")
    # Not in the project, whose files may steer them.
    both = f"uv is {tmp_path}/open/uv (uv 1.0 in /) in the run, {home}/.local/bin/uv (uv 2.0 in /) in your shell"
    assert (warning["status"], both in warning["message"]) == ("warning", True)
    assert not [row for row in json.loads(mounting.stdout)["checks"] if row["subject"] == "programs"]


ROOT = Path(__file__).parents[2]
# Zelda from another place than the tests.
MOVED = """
import runpy, sys, zelda_ci
assert zelda_ci.__file__.startswith(sys.argv.pop(1)), zelda_ci.__file__
runpy.run_module("tests.support.confined_run", run_name="__main__")
"""


def test_zelda_itself_may_lie_below_a_closed_home(place: Path, home: Path) -> None:
    shutil.copytree(ROOT / "zelda_ci", home / "site/zelda_ci", ignore=shutil.ignore_patterns("__pycache__"))
    project = project_of(place, home, *BOTH)
    argv = [sys.executable, "-c", MOVED, str(home), str(project.path), "uid", "tool; no-such-program; echo $?"]
    environ = {**environment(project), "PYTHONPATH": f"{home}/site:{ROOT}"}
    done = subprocess.run(
        argv, cwd=place, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told.get("level"), told.get("exit_code")) == ("uid", 0), told
    assert [row for row in told["output"].splitlines() if ":" not in row] == ["tool", "127"]


OFFERS = """
import os, pathlib, sys
from zelda_ci.sandbox import levels
found = levels.probe(os.environ, pathlib.Path(sys.argv[1]))
print(found.offers("uid"), *found.reasons)
"""


def test_a_claude_code_below_a_closed_home_is_in_the_way_only_where_root_may_not_mount(home: Path) -> None:
    tool(home / ".local/bin/claude", "claude")
    ask = [sys.executable, "-c", OFFERS, str(home / ".local/bin/claude")]
    told = [
        subprocess.run([*before, *ask], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
        for before in ([], [sys.executable, "-m", "tests.support.like_docker"])
    ]
    assert told[0].startswith("True")
    assert told[1].startswith("False")
    assert f"{home}/.local/bin/claude lies below {home}" in told[1]
    assert f"chmod 711 {home}" in told[1]
