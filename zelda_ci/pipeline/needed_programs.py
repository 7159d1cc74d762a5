"""Programs that the commands of suites need: which one is certainly not there, and how to get it."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from zelda_ci.domain.suite import Command, ResolvedSuite
from zelda_ci.sandbox.closed_folders import barrier, way_out
from zelda_ci.sandbox.confine import STRICT
from zelda_ci.workspace.environment import program_folders, search_path

# Of what a command printed: the lines that say why it ended.
LAST_LINES = 4
NAME = r"\W?(?P<name>[\w./+@-]+)\W?"
# How shells, `make` and Python say that a program is missing, where another ends with a code of its own.
MISSING = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^(?:\S+: )?(?:line )?(?:\d+: )?{NAME}: (?:command )?not found$",
        rf"command not found: {NAME}$",
        rf"^make(?:\[\d+\])?: {NAME}: No such file or directory$",
        # What make says of a bare name where PATH leads into a folder that is closed to the run.
        r"^make(?:\[\d+\])?: (?P<name>[\w.+@-]+): Permission denied$",
        rf"^\S*python\S*: No module named {NAME}$",
        rf"^env: {NAME}: No such file or directory$",
    )
)

PLAIN = re.compile(r"[A-Za-z0-9_][\w.+-]*")
# A shell line of nothing but words: no assignment, function, path of a program, variable, quote or operator.
PLAIN_LINE = re.compile(rf"\s*(?P<name>{PLAIN.pattern})(?:[ \t]+[\w./:,=@%+-]+)*\s*")
# Words that bash or dash knows without a file.
SHELL_WORDS = """
alias bg bind break builtin caller case cd chdir command compgen complete compopt continue coproc declare dirs disown do
done echo elif else enable esac eval exec exit export false fc fg fi for function getopts hash help history if in jobs
kill let local logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt source suspend
test then time times trap true type typeset ulimit umask unalias unset until wait while
"""
OF_SHELLS = frozenset(SHELL_WORDS.split())

# What sets a program up in a workflow; the others are on GitHub's runners already, or have no action that is known.
ACTIONS: Mapping[str, str] = {
    **dict.fromkeys(("node", "npm", "npx", "corepack", "yarn", "pnpm"), "actions/setup-node"),
    **dict.fromkeys(("go", "gofmt"), "actions/setup-go"),
    **dict.fromkeys(("java", "javac", "mvn", "gradle"), "actions/setup-java"),
    **dict.fromkeys(("python", "python3", "pip", "pip3"), "actions/setup-python"),
    "dotnet": "actions/setup-dotnet",
    **dict.fromkeys(("ruby", "bundle", "gem", "rake"), "ruby/setup-ruby"),
    **dict.fromkeys(("uv", "uvx"), "astral-sh/setup-uv"),
}
SETUP = "setupCommand"
IMAGE = "ZELDA_IMAGE"
"""The variable that our image sets."""


def missing_program(output: str) -> str | None:
    """The program that the last lines of an output call missing."""
    for line in reversed(output.rstrip().splitlines()[-LAST_LINES:]):
        if found := next(filter(None, (pattern.search(line.strip()) for pattern in MISSING)), None):
            return found["name"]
    return None


def absent_program(command: Command, suite: ResolvedSuite, project: Path, environ: Mapping[str, str]) -> str | None:
    """The program without which a command certainly fails at once, and which is certainly not there.

    Args:
        command: The first that a suite's session or tests run; what runs before it might install the program.
        suite: Says where programs are looked for, and by which shell.
        project: The project's folder.
        environ: The user's environment.
    """
    name = needed_program(command, suite)
    folders = [*map(str, program_folders(suite.execution, project)), search_path(environ.get("PATH", ""), project)]
    return name if name and not shutil.which(name, path=":".join(folders)) else None


def needed_program(command: Command, suite: ResolvedSuite) -> str | None:
    """The program that a command of plain words starts; nothing where its shell may do more with these.

    In doubt nothing is said: the command is tried before a session anyway, which takes longer.
    """
    if not isinstance(command, str):
        return command[0] if PLAIN.fullmatch(command[0]) else None
    found = PLAIN_LINE.fullmatch(command)
    is_plain_shell = suite.shell in {None, *STRICT} and "BASH_ENV" not in suite.execution.env
    return found["name"] if found and is_plain_shell and found["name"] not in OF_SHELLS else None


def shut_out(program: str, environ: Mapping[str, str], inside: str) -> str | None:
    """Why a program that the user's shell finds is out of a run's reach, whose PATH is `inside`; and the ways out."""
    found = shutil.which(program, path=environ.get("PATH", ""))
    folder = barrier(Path(found)) if found else None
    if not found or not folder or str(Path(found).parent) in inside.split(os.pathsep):
        return None
    return f"{found} lies below {folder}, which the run's own user may not enter, nor may Zelda mount here. " + way_out(
        folder
    )


def how_to_get(program: str, environ: Mapping[str, str]) -> str:
    """What helps where a program is missing, in a sentence; `environ` tells where Zelda itself runs."""
    action = ACTIONS.get(program)
    in_workflow = environ.get("GITHUB_ACTIONS") == "true"
    ways = f"or let {SETUP} install it"
    if environ.get(IMAGE) and in_workflow:
        after = f"after {action}" if action else "where the runner has it or an earlier step installs it"
        return (
            f"The container action has no {program}: use zelda-ci/zelda-ci/runner in its place, {after}; make an "
            f"image of your own from ours (docs/action.md#toolchains), {ways}."
        )
    if environ.get(IMAGE):
        return f"The image has no {program}: make one of your own from it (examples/image/Dockerfile), {ways}."
    if in_workflow:
        return f"This runner has no {program}: put {action or 'a step that installs it'} before this step, {ways}."
    return f"Install {program} where PATH leads, {ways}."
