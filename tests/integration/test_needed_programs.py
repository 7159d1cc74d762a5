"""What is missing is said before anything is spent, and only where it is certain: held against real shells."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import suite
from tests.support.command import environment, results, run
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.pipeline.checking import absent_program, how_to_get, missing_program
from zelda_ci.pipeline.fingerprints import IMAGE


@pytest.mark.parametrize(
    ("output", "program"),
    [
        ("sh: 1: pytest: not found", "pytest"),
        ("/usr/bin/bash: line 1: jest: command not found\nnpm ERR!", "jest"),
        ("zsh: command not found: cargo", "cargo"),
        ("make: go: No such file or directory\nmake: *** [Makefile:2: test] Error 127", "go"),
        ("/usr/bin/python3: No module named pytest", "pytest"),
        ("E   ModuleNotFoundError: No module named 'shop'\n1 failed", None),
        ("FAILED test_user.py: user not found\n1 failed in 0.1s", None),
        ("", None),
    ],
)
def test_a_missing_program_is_known_by_the_words_of_whoever_missed_it(output: str, program: str | None) -> None:
    assert missing_program(output) == program


def with_execution(**keys: Any) -> ResolvedSuite:
    made = suite()
    return made.replace(execution=made.execution.replace(**keys))


CERTAIN = {"npm ci": "npm", "go test ./... --tags=a,b\n": "go", "clang-18 --version": "clang-18"}
DOUBTFUL = (
    *("npm ci && npm test", "npm ci\nnpm test", "npm ci; true", "npm ci || yarn", "npm ci > log.txt", "npm ci &"),
    *("npm ci | tee log.txt", "command -v uv || pip install uv", "! npm ci", "if npm ci", "npm() { true; }; npm ci"),
    *("exec npm ci", "$RUNNER test", ".venv/bin/pytest", "./gradlew test", "~/bin/tool", '"npm" ci', "npm $x", "npm *"),
    *("NODE_ENV=test npm ci", "(npm ci)", "[ -d node_modules ]", "test -f x.txt", "source env.sh", "", "# nothing"),
)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    """A PATH with nothing on it but what a tested tree may hold, and which must not be started."""
    for name in ("bash", "sh", "type"):
        tmp_path.joinpath(name).write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
        tmp_path.joinpath(name).chmod(0o755)
    yield str(tmp_path)
    assert not tmp_path.joinpath("started").exists()


def test_the_first_of_plain_words_is_needed_and_in_doubt_nothing_is_said(path: str) -> None:
    assert {command: absent_program(command, suite(), path) for command in CERTAIN} == CERTAIN
    assert [command for command in DOUBTFUL if absent_program(command, suite(), path)] == []
    # Of a list of words the first is the program.
    assert absent_program(("npm", "ci"), suite(), path) == "npm"
    assert absent_program(("./gradlew", "test"), suite(), path) is None


def test_where_the_shell_is_the_suites_own_nothing_is_certain(path: str) -> None:
    made = suite()
    assert absent_program("npm ci", made.replace(shell="sh"), path) == "npm"
    own = made.replace(shell="bash -c"), made.replace(shell=("zsh", "-c")), with_execution(env=("BASH_ENV",))
    assert [absent_program("npm ci", each, path) for each in own] == [None, None, None]


PIECES = (
    *("npm ci", "npm", "true", "false", "&&", "||", ";", "\n", "|", "&", "!", "if", "then", "fi", *"(){}'"),
    *("x=1", "npm() {", "2>&1", "&>/dev/null", '"', "$x", "#", "\\", "set +e", "set -e", "echo", ">out", "<<E", "E"),
)


@pytest.mark.parametrize("shell", [["bash", "-e", "-o", "pipefail", "-c"], ["sh", "-e", "-c"]], ids=["bash", "sh"])
@settings(max_examples=100)
@given(pieces=st.lists(st.sampled_from(PIECES), min_size=1, max_size=6), gap=st.sampled_from((" ", "")))
def test_what_is_said_to_be_needed_fails_in_a_real_shell_without_it(
    tmp_path_factory: pytest.TempPathFactory, shell: list[str], pieces: list[str], gap: str
) -> None:
    command = gap.join(pieces)
    if absent_program(command, suite().replace(shell=shell[0]), "/nowhere") is None:
        return
    program = shutil.which(shell[0])
    assert program
    folder = tmp_path_factory.getbasetemp()
    words, environ = [program, *shell[1:], command], {"PATH": "/nowhere"}
    done = subprocess.run(words, cwd=folder, env=environ, capture_output=True, timeout=60, check=False)
    assert done.returncode != 0, command


HELP: dict[str, dict[str, str]] = {
    "use zelda-ci/zelda-ci/runner in its place, after actions/": {"GITHUB_ACTIONS": "true", IMAGE: "1"},
    "put actions/setup-node before this step": {"GITHUB_ACTIONS": "true"},
    "examples/image/Dockerfile": {IMAGE: "1"},
    "Install npm where PATH leads": {},
}


@pytest.mark.parametrize("words", HELP)
def test_the_help_is_that_of_the_place(words: str) -> None:
    assert words in how_to_get("npm", HELP[words], "/")
    assert "where the runner has it" in how_to_get("cargo", {"GITHUB_ACTIONS": "true", IMAGE: "1"}, "/")


def project_with(tmp_path: Path, keys: str) -> Project:
    return repository(tmp_path, {"README.md": "#\n", "zelda/test-one.yaml": f"prompt: Look around.\n{keys}"})


def program(project: Project, name: str, script: str) -> None:
    project.write({name: f"#!/bin/sh\n{script}"})
    (project.path / name).chmod(0o755)


def test_a_missing_toolchain_ends_a_run_before_a_model_is_asked(tmp_path: Path) -> None:
    """Not even for the token with which the key is tried. Programs in the project are not the tested ones."""
    project = project_with(tmp_path, "setupCommand: no-such-npm ci\ntestCommand: make test\n")
    program(project, ".venv/bin/no-such-npm", "")
    path = {"PATH": f"{project.path}/.venv/bin:{os.environ['PATH']}"}
    with ScriptedApi([]) as api:
        told = environment(project, api.url, ZELDA_NO_CHECK="", GITHUB_ACTIONS="true", **{IMAGE: "1"}, **path)
        done = run(["run"], project.path, told)
        assert (len(api.checks), len(api.requests)) == (0, 0)
    assert done.returncode == 2
    said = " ".join((done.stdout + done.stderr).split())
    assert "zelda/test-one.yaml:2: " in said
    assert "cannot be run: no-such-npm is missing. PATH in the run: /" in said
    assert "The container action has no no-such-npm: use zelda-ci/zelda-ci/runner" in said
    assert not results(project)


def test_what_setup_installs_and_what_lies_in_the_tested_tree_is_not_missed(tmp_path: Path) -> None:
    keys = "setupCommand: prepare all\nexecution: {path: [bin, tools]}\nbuildCommand: late\ntestCommand: late\n"
    project = project_with(tmp_path, keys)
    program(project, "tools/prepare", "mkdir -p bin && printf '#!/bin/sh\\ntrue\\n' > bin/late && chmod +x bin/late\n")
    project.commit()
    with ScriptedApi([text("Done.")]) as api:
        done = run(["run"], project.path, environment(project, api.url, ZELDA_NO_CHECK=""))
    assert done.returncode == 0, done.stdout + done.stderr
