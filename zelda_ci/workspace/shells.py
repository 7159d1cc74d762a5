"""Which program runs a command that is a line of text, and with which options."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from zelda_ci.domain.suite import Command, ResolvedSuite
from zelda_ci.errors import WorkspaceError

STRICT = {"bash": ("-e", "-o", "pipefail", "-c"), "sh": ("-e", "-c")}
"""Shells that need no options of the user's, and how they stop at the first failure."""

NO_PIPEFAIL = (
    "There is no bash on PATH, so sh runs the commands: of a pipe only the last part decides whether it failed. "
    "Install bash, or choose a shell with `shell`."
)


def arguments(command: Command, suite: ResolvedSuite, environment: Mapping[str, str]) -> list[str]:
    """The program to start and its arguments.

    Raises:
        WorkspaceError: The shell that the suite asks for is not there (`SHELL_MISSING`).
    """
    return [*_shell(suite, environment), command] if isinstance(command, str) else list(command)


def notes(suite: ResolvedSuite, environment: Mapping[str, str]) -> tuple[str, ...]:
    """What to know of the shell of a suite's commands.

    Raises:
        WorkspaceError: As in `arguments`.
    """
    commands = (suite.setup_command, suite.build_command, suite.test_command)
    if not any(isinstance(command, str) for command in commands):
        return ()
    _shell(suite, environment)
    return () if suite.shell or _found("bash", environment) else (NO_PIPEFAIL,)


def _shell(suite: ResolvedSuite, environment: Mapping[str, str]) -> Sequence[str]:
    given = suite.shell or ("bash" if _found("bash", environment) else "sh")
    words = given.split() if isinstance(given, str) else list(given)
    options = STRICT.get(PurePath(words[0]).name, ()) if len(words) == 1 else ()
    # Zelda's own choice, looked up where the run will look: what is missing is told before anything is spent.
    program = _found(words[0], environment) or ("/bin/sh" if words[0] == "sh" else None)
    if program is None:
        raise WorkspaceError(
            f"shell: {words[0]} is not on PATH, which is {environment.get('PATH', '')} in the run.",
            hint="Install it, or choose another shell.",
            code="SHELL_MISSING",
        )
    return (program, *options, *words[1:])


def _found(program: str, environment: Mapping[str, str]) -> str | None:
    return shutil.which(program, path=environment.get("PATH", ""))
