"""Which files are restored before build and tests: those that the suite names, and by default those that decide.

By default these are scripts and tests that build and test command name, where the tested commit has them (what it
lacks, the session was to write), and what test runners read on their own, also where the session added it. Files that
hold dependencies too (package.json, pyproject.toml, setup.cfg, Makefile) are not among them: honest work changes them.
"""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from pathspec import PathSpec

from zelda_ci.domain.suite import Command, ResolvedSuite
from zelda_ci.workspace.ignored import GLOB_SIGNS

# What runners, and Python itself, read without being told.
CONFIGURATION = (
    "conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "sitecustomize.py", "usercustomize.py", ".coveragerc",
    "jest.config.*", "jest.setup.*", "vitest.config.*", "vitest.workspace.*", "vitest.setup.*", ".mocharc*",
    "karma.conf.*", "playwright.config.*", "cypress.config.*", "ava.config.*", ".taprc", ".nycrc*", ".c8rc*",
    ".npmrc", ".rspec", "phpunit.xml", "phpunit.xml.dist", "runsettings", "*.runsettings",
)  # fmt: skip

# Modules that a project would have only to stand in the place of the real ones.
RUNNER_MODULES = ("unittest", "pytest", "_pytest", "coverage", "nose2")

# Programs whose first file is the script that they run, and options after which there is none.
INTERPRETERS = {
    "python": {"-c", "-m"}, "pypy": {"-c", "-m"}, "node": {"-c", "--check", "-e", "--eval", "-p", "--print"},
    "sh": {"-n"}, "bash": {"-n"}, "zsh": {"-n"}, "dash": {"-n"}, "ruby": {"-c", "-e"}, "perl": {"-c", "-e"},
    "php": {"-l", "-r"}, "deno": {"check", "lint", "fmt"}, "bun": {"build"}, "tsx": set(), "ts-node": set(),
    "source": set(), ".": set(),
}  # fmt: skip

# All files that these are given are tests or their settings.
RUNNERS = frozenset({
    "pytest", "py.test", "unittest", "nose2", "nosetests", "jest", "vitest", "mocha", "ava", "tap", "jasmine", "rspec",
    "phpunit", "bats", "prove", "playwright", "cypress", "karma", "--test",
})  # fmt: skip

# It says how something is installed, not whether it works.
INSTALLER = "setup.py"

# Between commands, also those that a shell in a shell is given in quotes.
SEPARATORS = re.compile(r"""[;&|()\n'"`]+""")
QUOTED_WORD = re.compile(r"""(['"])([^\s'"]*)\1""")
# What stands before the program that a command starts.
PREFIX = re.compile(r"\w+=.*|env|exec|time|command|nice|!|if")


def protection(suite: ResolvedSuite, prefix: str, is_committed: Callable[[str], bool]) -> PathSpec[Any]:
    """The files, there or not, that are as they were committed when build and tests run, by paths from the top.

    Args:
        suite: An empty list of its own protects nothing.
        prefix: The project's folder, relative to the top of the tree.
        is_committed: Says whether the tested commit has a file, by its path from the top.
    """
    own = suite.protected_paths
    if own == ():
        return spec((), prefix)
    globs = [f"**/{name}" for name in CONFIGURATION]
    for name in RUNNER_MODULES:
        places = (f"{name}.py", f"{name}/__init__.py")
        if not any(is_committed(posixpath.normpath(posixpath.join(prefix, place))) for place in places):
            globs += [f"{name}.py", f"{name}/**"]
    # What commands would start in place of the machine's programs.
    folders = map(posixpath.normpath, suite.execution.path)
    globs += [f"{folder}/**" for folder in folders if folder != "." and not folder.startswith("/")]
    commands = [command for command in (suite.build_command, suite.test_command) if command]
    named = {name for command in commands for name in named_files(command, prefix, is_committed)}
    return spec([*globs, *(own or ())], prefix, named)


def spec(globs: Sequence[str], prefix: str, names: Iterable[str] = ()) -> PathSpec[Any]:
    """Globs in the folder `prefix`, and names from the top of the tree: the last that fits a path decides.

    Without a slash in front, gitignore takes a name to fit in every folder.
    """
    above = "" if prefix == "." else f"{_escaped(prefix)}/"
    lines = (f"!/{above}{glob[1:]}" if glob.startswith("!") else f"/{above}{glob}" for glob in globs)
    return PathSpec.from_lines("gitignore", [*(f"/{_escaped(name)}" for name in names), *lines], backend="simple")


def _escaped(name: str) -> str:
    return GLOB_SIGNS.sub(r"\\\g<0>", name)


def named_files(command: Command, prefix: str, is_committed: Callable[[str], bool]) -> Iterator[str]:
    """Scripts and tests of the tested commit that a command names, as far as that shows without a shell."""
    line = command if isinstance(command, str) else shlex.join(command)
    folder = prefix
    for part in SEPARATORS.split(QUOTED_WORD.sub(r"\2", line)):
        words = part.split()
        while words and PREFIX.fullmatch(words[0]):
            words.pop(0)
        if words[:1] == ["cd"] and len(words) > 1:
            folder = posixpath.join(folder, words[1])
        elif words:
            is_runner = any(PurePosixPath(word).name in RUNNERS for word in words)
            candidates = _given_to_runner(words) if is_runner else _scripts(words)
            paths = (posixpath.normpath(posixpath.join(folder, word)) for word in candidates)
            committed = [path for path in paths if not path.startswith(("/", "../")) and is_committed(path)]
            yield from committed if is_runner else committed[:1]


def _given_to_runner(words: Sequence[str]) -> Iterator[str]:
    """All that a test runner gets, and the runner itself: files, or modules."""
    yield words[0]
    for word in words[1:]:
        # Also what an option has after its sign: --config=FILE; and one test of a file: FILE::NAME.
        name = word.rpartition("=")[2] if word.startswith("-") else word.partition("::")[0]
        yield from (name, f"{name.replace('.', '/')}.py")


def _scripts(words: Sequence[str]) -> Iterator[str]:
    """Words that may name a script: the program itself, and what an interpreter runs."""
    if "/" in words[0]:
        yield words[0]
    for number, word in enumerate(words):
        # Its name without folder and version.
        without = INTERPRETERS.get(re.sub(r"[\d.]+$", "", PurePosixPath(word).name) or word)
        if without is not None:
            rest = words[number + 1 :]
            if not without & set(rest):
                yield from (word for word in rest if not word.startswith("-") and word != INSTALLER)
            return
