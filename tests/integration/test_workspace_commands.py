"""Commands of a suite: their environment, their output, their end."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.projects import Project, repository
from zelda_ci.domain.details import CommandResult
from zelda_ci.domain.suite import Command
from zelda_ci.domain.workspace import Workspace
from zelda_ci.workspace.workspaces import Workspaces


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return repository(tmp_path)


def run(project: Project, command: Command, **settings: Any) -> CommandResult:
    async def work(workspaces: Workspaces, workspace: Workspace) -> CommandResult:
        return await workspaces.run_command(workspace, command, 60)

    result: CommandResult = project.work(work, **settings)
    return result


COMMANDS: dict[Command, tuple[int, str, str]] = {
    "echo $((1 + 1)) && exit 3": (3, "2\n", "echo $((1 + 1)) && exit 3"),
    ("printf", "%s|", "a b", "$HOME"): (0, "a b|$HOME|", "printf '%s|' 'a b' '$HOME'"),
    "kill -9 $$": (137, "", "kill -9 $$"),
    "cat; read line || echo end": (0, "end\n", "cat; read line || echo end"),
}


def test_a_line_goes_to_the_shell_and_arguments_to_the_program(project: Project) -> None:
    async def work(workspaces: Workspaces, workspace: Workspace) -> list[CommandResult]:
        return [await workspaces.run_command(workspace, command, 60) for command in (*COMMANDS, "no-such-program")]

    *done, absent = project.work(work)
    assert [(result.exit_code, result.output, result.command) for result in done] == [*COMMANDS.values()]
    assert (absent.exit_code, "not found" in absent.output) == (127, True)


SECRETS = {
    **dict.fromkeys(("GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "AWS_SECRET_ACCESS_KEY", "MY_PASSWORD"), "fake"),
    **dict.fromkeys(("GIT_DIR", "PYTHONPATH", "GITHUB_WORKSPACE", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR"), "/elsewhere"),
    "ANTHROPIC_API_KEY": "sk-ant-fake00000000",
    "npm_config__authToken": "fake",
    "LD_PRELOAD": "/evil.so",
    "NODE_OPTIONS": "--require /evil.js",
}


def environment(project: Project, **settings: Any) -> dict[str, str]:
    said = run(project, ("env", "-0"), **settings).output
    return dict(entry.split("=", 1) for entry in said.split("\0") if entry)


def test_the_environment_holds_nothing_but_what_is_allowed(project: Project) -> None:
    project.environ |= SECRETS | {"LANG": "C.UTF-8", "TZ": "UTC", "LC_TIME": "C", "SSL_CERT_FILE": "/ca.pem"}
    seen = environment(project, execution={"env": ["MY_PASSWORD", "NOT_SET"]})
    assert {*SECRETS} & {*seen} == {"MY_PASSWORD"}
    assert seen["MY_PASSWORD"] == "fake"
    assert "NOT_SET" not in seen
    assert (seen["LANG"], seen["TZ"], seen["LC_TIME"], seen["SSL_CERT_FILE"]) == ("C.UTF-8", "UTC", "C", "/ca.pem")
    assert seen["CI"] == "true"
    assert seen["HOME"] != project.environ["HOME"]
    assert Path(seen["HOME"]).parent == Path(seen["TMPDIR"]).parent == Path(seen["GIT_CEILING_DIRECTORIES"])
    # Temporary files have room for a socket: the folder's own part is short, the rest is the user's choice.
    assert len(seen["TMPDIR"]) - len(str(project.base)) <= 28


def test_git_works_without_any_configuration_of_the_developer_and_never_looks_above(project: Project) -> None:
    (project.home / ".gitconfig").write_text("[user]\n\tname = Developer\n[commit]\n\tgpgSign = true\n")
    project.git("init", "-q", cwd=project.home.parent)
    line = """
        echo x > new && git add . && git commit -qm new && git log -1 --format='%an %ae'
        (cd $TMPDIR && git init -q . && git commit -q --allow-empty -m x && git branch)
        rm .git; git status 2>&1
    """
    result = run(project, line)
    assert result.output.startswith("Zelda CI zelda-ci@localhost\n* main\n")
    assert "not a git repository" in result.output
