"""Programs that the commands of suites need: which one is missing, where a run finds another one, how to get one."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from zelda_ci import process
from zelda_ci.domain.suite import Command, ResolvedSuite
from zelda_ci.sandbox.closed_folders import unreachable
from zelda_ci.sandbox.confine import STRICT

ANSWER_SECONDS = 10
# Of what a command printed: the lines that say why it ended.
LAST_LINES = 4
NAME = r"\W?(?P<name>[\w./+@-]+)\W?"
# How shells, `make` and Python say that a program is missing, where another ends with a code of its own.
MISSING = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^(?:\S+: )?(?:line )?(?:\d+: )?{NAME}: (?:command )?not found$",
        rf"command not found: {NAME}$",
        rf"^(?:make(?:\[\d+\])?|env): {NAME}: No such file or directory$",
        # What make says of a bare name where PATH leads into a folder that is closed to the run.
        r"^make(?:\[\d+\])?: (?P<name>[\w.+@-]+): Permission denied$",
        rf"^\S*python\S*: No module named {NAME}$",
    )
)
# Nothing but words, of which the first may be a program: no path, assignment, variable, quote or operator.
PLAIN = re.compile(r"\s*\w[\w.+-]*([ \t]+[\w./:,=@%+-]+)*\s*")

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
IMAGE = "ZELDA_IMAGE"
"""The variable that our image sets."""


def missing_program(output: str) -> str | None:
    """The program that the last lines of an output call missing."""
    for line in reversed(output.rstrip().splitlines()[-LAST_LINES:]):
        if found := next(filter(None, (pattern.search(line.strip()) for pattern in MISSING)), None):
            return found["name"]
    return None


def first_word(command: Command) -> str:
    """The first word of a command, which may be a program."""
    words = command.split() if isinstance(command, str) else command
    return next(iter(words), "")


def absent_program(command: Command, suite: ResolvedSuite, path: str) -> str | None:
    """The program without which a command certainly fails at once, and which is nowhere in `path`.

    In doubt nothing is said: the command is tried before a session anyway, which takes longer.
    """
    program = first_word(command)
    if not PLAIN.fullmatch(program if isinstance(command, tuple) else command) or shutil.which(program, path=path):
        return None
    if isinstance(command, str):
        # A shell of the suite's own may know any word; each knows some without a file.
        if suite.shell not in {None, *STRICT} or "BASH_ENV" in suite.execution.env:
            return None
        # That of the system: in PATH there may be programs of the tested tree, which are not to be started here.
        shell = shutil.which(str(suite.shell or "bash"), path=os.defpath) or "/bin/sh"
        if _answer(path, shell, "-c", 'type "$0"', program) is not None:
            return None
    return program


def found_elsewhere(commands: Iterable[Command], usual: str, inside: str) -> Iterator[str]:
    """Programs that a run finds at another place than the user's shell, with the versions of both, in words.

    The run's PATH is `inside`, that of the shell `usual`.
    """
    for program in dict.fromkeys([*filter(PLAIN.fullmatch, map(first_word, commands)), *ACTIONS]):
        mine, other = (shutil.which(program, path=path) for path in (usual, inside))
        if mine and other and os.path.realpath(mine) != os.path.realpath(other):
            places = [f"{place} ({_version(path, place)})" for path, place in ((inside, other), (usual, mine))]
            yield f"{program} is {places[0]} in the run, {places[1]} in your shell"


def _version(path: str, program: str) -> str:
    return (_answer(path, program, "--version") or "of unknown version").splitlines()[0][:80]


def _answer(path: str, *argv: str) -> str | None:
    """What a program says; absent where it does not end well. Of the project, which may steer it, it sees nothing."""
    try:
        said = process.answer(argv, timeout_seconds=ANSWER_SECONDS, cwd=Path("/"), environment={"PATH": path})
    except (OSError, TimeoutError):
        return None
    return (said.stdout or said.stderr).decode("utf-8", "replace").strip() if said.exit_code == 0 else None


def how_to_get(program: str, environ: Mapping[str, str], inside: str) -> str:
    """What helps where a program is missing: `environ` tells where Zelda itself runs, `inside` is PATH of the run."""
    found = shutil.which(program, path=environ.get("PATH", ""))
    closed = unreachable(Path(found)) if found else None
    if found and closed and str(Path(found).parent) not in inside.split(os.pathsep):
        return closed
    action, ways = ACTIONS.get(program), "or let setupCommand install it"
    in_workflow = environ.get("GITHUB_ACTIONS") == "true"
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
