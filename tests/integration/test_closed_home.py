"""Toolchains below folders that other users may not enter, such as root's home: out of reach of a run's own user."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import needs
from tests.support.command import environment
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi

pytestmark = needs.ROOT
ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A closed home with two toolchains, and a secret beside them."""
    needs.level("uid")
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


BOTH = (".pyenv/shims", ".local/bin")


def test_root_has_namespaces_in_which_nothing_else_of_a_closed_home_is_there(place: Path, home: Path) -> None:
    needs.level("full")
    project = project_of(place, home, *BOTH)
    line = (
        f"python3; tool; cat {home}/.ssh/id; ls -A {home}; id -u; echo x > {home}/.local/bin/tool; echo x > {home}/new"
    )
    argv = [sys.executable, "-m", "tests.support.confined_run", str(project.path), "auto", line]
    done = subprocess.run(
        argv, cwd=ROOT, env=environment(project), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    told = json.loads(done.stdout)
    assert told["level"] == "full", told
    assert [row for row in told["output"].splitlines() if ":" not in row] == ["shim", "tool", ".local", ".pyenv", "0"]
    assert "canary" not in told["output"]
    assert not (home / "new").exists()
    assert (home / ".local/bin/tool").read_text().endswith("echo tool\n")


def started(project: Project, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT if arguments[0].startswith("tests.") else project.path,
        env={**environment(project, **more), "ZELDA_UNSAFE": "0"},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip


def test_closed_folders_leave_the_path_and_what_is_missing_is_missing(place: Path, home: Path) -> None:
    project = project_of(place, home, *BOTH)
    line = "no-such-program; echo $?; tool; echo $?; echo PATH=$PATH"
    done = started(project, "tests.support.confined_run", str(project.path), "uid", line)
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
        done = started(project, "zelda_ci", "run", "--isolation", "uid", api_url=api.url, **level)
    said = done.stdout + done.stderr
    assert done.returncode == 2, said
    assert f"{home}/.local/bin/tool lies below {home}, which the run's own user may not enter" in said
    assert f"chmod 711 {home}" in said


OFFERS = """
import os, pathlib, sys
from zelda_ci.sandbox import levels
found = levels.probe(os.environ, pathlib.Path(sys.argv[1]))
print("uid" in found.levels, *found.reasons)
"""


def test_a_claude_code_below_a_closed_home_is_in_the_way(home: Path) -> None:
    tool(home / ".local/bin/claude", "claude")
    ask = [sys.executable, "-m", "tests.support.like_docker", sys.executable, "-c", OFFERS, f"{home}/.local/bin/claude"]
    told = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    assert told.startswith("False")
    assert f"{home}/.local/bin/claude lies below {home}" in told
    assert f"chmod 711 {home}" in told
