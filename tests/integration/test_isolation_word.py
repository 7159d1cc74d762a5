"""Isolation below `uid` needs the word of whoever decides over the machine, once."""

import os
import pty
import re
import select
from pathlib import Path

import pytest

from tests.support import needs
from tests.support.command import environment, zelda
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text
from tests.support.warm import Process

SUITE = "prompt: Work.\nmetrics: {toolUsage: false}\n"
WEAK = {"zelda/test-a.yaml": f"{SUITE}isolation: {{level: landlock}}\n"}
SILENT = {"ZELDA_UNSAFE": "0", "ZELDA_ACCEPT_ISOLATION": ""}
"""Nobody has said anything."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    needs.level("landlock")
    return repository(tmp_path, WEAK)


def accepted(project: Project) -> Path:
    return Path(project.environ["HOME"], ".config", "zelda", "accepted-isolation")


def run(project: Project, *arguments: str, command: str = "check", **environ: str) -> tuple[int, str, int]:
    """Exit code, what was printed, and how often the model was asked; what `zelda check` does is what a run asks."""
    with ScriptedApi(lambda _: text("Done.")) as api:
        done = zelda(project, command, *arguments, api=api.url, **(SILENT | environ))
        return done.returncode, " ".join((done.stdout + done.stderr).split()), len(api.requests) + len(api.checks)


def test_without_the_word_nothing_is_spent_and_no_file_of_the_project_can_say_it(project: Project) -> None:
    code, output, asked = run(project, command="run")
    assert (code, asked) == (2, 0)
    assert "At isolation level landlock session and commands run as your user" in output
    assert "--accept-isolation landlock" in output
    assert re.search(r"error: (This machine offers more: --isolation|To isolate runs: )", output)
    assert not list(project.results.glob("runs/*"))
    assert run(project)[::2] == (2, 0)
    project.write({"zelda.config.yaml": "acceptIsolation: landlock\n"})
    code, output, asked = run(project)
    assert (code, asked) == (2, 0)
    assert "acceptIsolation is not a known key" in output


@pytest.mark.parametrize(
    ("arguments", "environ", "code"),
    [
        (["--isolation", "landlock"], {}, 0),
        ([], {"ZELDA_UNSAFE": "1"}, 0),
        ([], {"ZELDA_ACCEPT_ISOLATION": "full"}, 2),
        (["--accept-isolation", "none"], {}, 2),
    ],
)
def test_the_word_is_given_by_whoever_starts_the_run(
    project: Project, arguments: list[str], environ: dict[str, str], code: int
) -> None:
    found, output, _ = run(project, *arguments, **environ)
    assert found == code, output


def answered(project: Project, answer: bytes, api: str) -> tuple[int, str]:
    """Exit code and output of a check at a terminal, where somebody types an answer to its question."""
    near, far = pty.openpty()
    environ = {**environment(project, api), **SILENT, "TERM": "dumb"}
    process = Process(["check"], project.path, environ, (far, far, far), new_session=True)
    os.close(far)
    printed, said = b"", False
    while select.select([near], [], [], PATIENCE)[0]:
        try:
            printed += os.read(near, 4096)
        except OSError:  # the other side is closed
            break
        if not said and b"[y/N]" in printed:
            os.write(near, answer)
            said = True
    os.close(near)
    return process.wait(PATIENCE), printed.decode()


def test_at_a_terminal_it_is_asked_once_and_remembered_for_the_user(project: Project) -> None:
    with ScriptedApi(lambda _: text("Done.")) as api:
        code, printed = answered(project, b"n\n", api.url)
        assert code == 2, printed
        assert not accepted(project).exists()
        code, printed = answered(project, b"y\n", api.url)
        assert code == 0, printed
        assert accepted(project).read_text() == "landlock\n"
        code, printed = answered(project, b"", api.url)
    assert code == 0
    assert "[y/N]" not in printed
    assert run(project)[0] == 0


def test_the_option_is_remembered_and_a_variable_holds_for_one_command(project: Project) -> None:
    assert run(project, ZELDA_ACCEPT_ISOLATION="landlock")[0] == 0
    assert not accepted(project).exists()
    code, output, _ = run(project, "--accept-isolation", "landlock")
    assert code == 0, output
    assert accepted(project).read_text() == "landlock\n"
    assert run(project)[0] == 0
