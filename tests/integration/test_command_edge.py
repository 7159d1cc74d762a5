"""The edge of the command line: help that teaches, failures in a sentence, details where they belong."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.architecture.test_links import is_there
from tests.support import warm
from tests.support.command import COMMAND, KEY, environment, run, run_cold, zelda
from tests.support.history import store
from tests.support.patience import PATIENCE
from tests.support.projects import repository
from zelda_ci import __version__
from zelda_ci.cli.commands import COMMANDS, PAGES_URL
from zelda_ci.cli.commands import zelda as main


def test_the_version_is_told_without_importing_anything_else(tmp_path: Path) -> None:
    program = (
        "import sys; sys.argv[1:] = ['--version']; from zelda_ci.__main__ import main; main(); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    version, modules = done.stdout.splitlines()
    assert version == f"zelda {__version__}"
    assert [name for name in modules.split() if name.startswith("zelda_ci")] == ["zelda_ci", "zelda_ci.__main__"]


STARTS = (["-m", "zelda_ci"], ["-c", "from zelda_ci.__main__ import main; main()"])
"""By the module, and as the installed script does it."""
IMPORTED = ("anyio", "asyncio", "click", "json", "logging", "pathspec", "pydantic", "re2", "rich", "yaml")


@pytest.mark.parametrize("start", STARTS, ids=["module", "script"])
def test_no_module_and_no_program_is_taken_from_the_tested_tree(tmp_path: Path, start: list[str]) -> None:
    """Zelda's own process has the key; the tree may be a stranger's."""
    planted = {f"{name}.py": "import os; os.abort()\n" for name in IMPORTED}
    project = repository(tmp_path, {**planted, "zelda/test-a.yaml": "prompt: Greet.\n", "sub/x": ""})
    (project.path / "git").write_text("#!/bin/sh\nkill $PPID\n")
    (project.path / "git").chmod(0o755)
    # Where lines are counted, coverage is imported before Zelda can see to its path.
    given = {name: value for name, value in environment(project).items() if not name.startswith("COVERAGE")}
    places = [".", "sub/..", str(project.path), *filter(None, [given.get("PYTHONPATH")])]
    searched = {"PATH": f":.:sub/..:{given['PATH']}"}
    for more in (searched, {**searched, "PYTHONPATH": os.pathsep.join(places)}):
        words = [sys.executable, *start, "validate"]
        done = subprocess.run(words, cwd=project.path, env=given | more, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b""), more


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_teaches_and_names_a_page_that_there_is(command: str) -> None:
    done = CliRunner().invoke(main, [command, "--help"], prog_name="zelda", terminal_width=200)
    assert done.exit_code == 0
    assert f"Usage: zelda {command}" in done.output
    *_, (path, anchor) = re.findall(r"More:\s+https://\S+/blob/main/([^\s#]+)#?(\S*)", done.output)
    assert is_there(Path(__file__).parents[2] / path, anchor)


@pytest.mark.parametrize("arguments", [["validate"], ["run", "--nonsense"]])
def test_a_command_that_starts_warm_says_and_ends_as_one_that_starts_cold(tmp_path: Path, arguments: list[str]) -> None:
    """Most tests start it warm; see `tests.support.warm`."""
    project = repository(tmp_path, {"zelda/test-a.yaml": "prompt: Greet.\nexecution: { model: 5 }\n"})
    environ = environment(project)
    warmly = warm.run(arguments, project.path, environ, timeout=PATIENCE)
    coldly = subprocess.run(
        [*COMMAND, *arguments], cwd=project.path, env=environ, capture_output=True, text=True, check=False
    )
    assert warmly == (coldly.returncode, coldly.stdout, coldly.stderr)


def test_details_are_shown_where_asked_for_and_logged_without_secrets(tmp_path: Path) -> None:
    project = repository(tmp_path, {"zelda/test-a.yaml": f"prompt: Hello\ntags: [a]\nexecution: {{model: {KEY}}}\n"})
    before, after = (zelda(project, *arguments) for arguments in (["--verbose", "run"], ["run", "--verbose"]))
    for done in (before, after):
        assert (done.returncode, "Traceback" in done.stderr) == (2, True)
    log = (project.home / ".local/state/zelda/debug.log").read_text()
    assert "ConfigError" in log
    assert KEY not in log + before.stderr + after.stderr


def test_the_debug_log_is_the_users_own_and_the_terminal_says_where(tmp_path: Path) -> None:
    state = tmp_path / "state"
    project = repository(tmp_path, {"zelda/test-a.yaml": "prompt: Hello\n"})
    (project.path / ".git/HEAD").write_text("nothing\n")
    environ = environment(project, "http://127.0.0.1:1", XDG_STATE_HOME=str(state))
    done = run(["run"], project.path, environ)
    assert f"debug log: {state}/zelda/debug.log" in done.stderr
    assert "WorkspaceError" in (state / "zelda/debug.log").read_text()
    # Nothing is written through a link in its place.
    (state / "zelda/debug.log").unlink()
    (victim := tmp_path / "victim").write_text("as it was")
    (state / "zelda/debug.log").symlink_to(victim)
    done = run(["run"], project.path, environ)
    assert (done.returncode, "debug log" in done.stderr, victim.read_text()) == (2, False, "as it was")


@pytest.mark.parametrize("words", [("run", "--against"), ("context", "--against"), ("run", "--commit")])
def test_no_log_is_named_where_the_message_says_all(tmp_path: Path, words: tuple[str, str]) -> None:
    project = repository(tmp_path, {"zelda/test-a.yaml": "prompt: Hello\n"})
    done = zelda(project, *words, "nope", api="http://127.0.0.1:1")
    assert (done.returncode, "There is no commit 'nope'" in done.stderr, "debug log" in done.stderr) == (2, True, False)


def test_help_is_a_command_too_and_its_addresses_are_whole(tmp_path: Path) -> None:
    project = repository(tmp_path, {})

    def said(*words: str) -> str:
        return run_cold(words, project.path, environment(project), one_stream=True).stdout

    assert said("help") == said("--help")
    page = said("help", "check")
    assert page == said("check", "--help")
    assert f"\n  More: {PAGES_URL}/{COMMANDS['check'][1]}\n" in page
    assert "No such command 'rn'. Did you mean 'run'?" in said("help", "rn")


def test_no_isolation_that_was_asked_for_is_not_explained_by_what_the_machine_lacks(tmp_path: Path) -> None:
    project = repository(tmp_path, {"zelda/test-a.yaml": "prompt: Hello\n"})
    environ = environment(project, "http://127.0.0.1:1")
    del environ["ZELDA_UNSAFE"]
    done = run(["run", "--isolation", "none"], project.path, environ)
    assert done.returncode == 2
    assert "Isolation level none protects nothing" in done.stderr
    assert "--unsafe" in done.stderr
    assert "bubblewrap" not in done.stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("zelda co", {"compare", "completion", "context", "coverage"}),
        ("zelda run al", {"alpha"}),
        ("zelda show ", {"latest", "latest~1", "latest:alpha", "batch-1", "alpha-2026-02-13T14-30-00"}),
    ],
)
def test_a_shell_completes_commands_suites_and_runs(tmp_path: Path, words: str, offered: set[str]) -> None:
    project = repository(tmp_path, {"zelda/test-alpha.yaml": "prompt: Hello\n", "zelda/test-beta.yaml": "prompt: Hi\n"})
    store(project.results)
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1), "_ZELDA_COMPLETE": "bash_complete"}
    done = run([], project.path, environment(project, **asked))
    assert (done.returncode, done.stderr) == (0, "")
    assert {line.partition(",")[2] for line in done.stdout.splitlines()} == offered
