"""Which files are restored before build and tests: those that the suite names, and by default those that decide.

By default these are scripts and tests that build and test command name, where the tested commit has them (what it
lacks, the session was to write), and what test runners read on their own, also where the session added it. Files that
hold dependencies too (package.json, pyproject.toml, setup.cfg, Makefile) are not among them: honest work changes them.
"""

import os
import posixpath
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from pathspec import PathSpec

from zelda_ci.domain.suite import Command, ResolvedSuite

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

SEPARATORS = re.compile(r"[;&|()\n]+")
ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
MAX_NESTING = 3


@dataclass(frozen=True)
class Protection:
    """What is protected, by paths from the top of the tree."""

    configured: PathSpec[Any]
    named: frozenset[bytes]

    def covers(self, path: bytes) -> bool:
        """Whether a file, there or not, is as it was committed when build and tests run."""
        decided = self.configured.check_file(os.fsdecode(path)).include
        return path in self.named if decided is None else bool(decided)


def protection(suite: ResolvedSuite, prefix: str, committed: Collection[bytes]) -> Protection:
    """What the suite protects.

    Args:
        suite: An empty list of its own protects nothing.
        prefix: The project's folder, relative to the top of the tree.
        committed: The files of the tested commit.
    """
    own = suite.protected_paths
    if own == ():
        return Protection(spec((), prefix), frozenset())
    usual = [*(f"**/{name}" for name in CONFIGURATION), *_stand_ins(prefix, committed), *_programs(suite)]
    commands = (suite.build_command, suite.test_command)
    names = {name for command in commands if command for name in named_files(command, prefix, committed)}
    return Protection(spec([*usual, *(own or ())], prefix), frozenset(names))


def spec(globs: Sequence[str], prefix: str) -> PathSpec[Any]:
    """The globs from the top of the tree; without a slash in front, gitignore takes a name to fit in every folder."""
    return PathSpec.from_lines("gitignore", _rooted(globs, prefix), backend="simple")


def _rooted(globs: Sequence[str], prefix: str) -> Iterator[str]:
    # The project's own folder is a name, not a pattern.
    prefix = "" if prefix == "." else prefix
    above = "".join(f"\\{sign}" if sign in "*?[]\\!# " else sign for sign in prefix)
    for glob in globs:
        sign, pattern = ("!", glob[1:]) if glob.startswith("!") else ("", glob)
        yield f"{sign}/{above}/{pattern}" if above else f"{sign}/{pattern}"


def _programs(suite: ResolvedSuite) -> Iterator[str]:
    """What commands would start in place of the machine's programs."""
    for entry in suite.execution.path:
        folder = posixpath.normpath(entry)
        if folder != "." and not folder.startswith("/"):
            yield f"{folder}/**"


def _stand_ins(prefix: str, committed: Collection[bytes]) -> Iterator[str]:
    top = b"" if prefix == "." else os.fsencode(prefix) + b"/"
    for name in RUNNER_MODULES:
        places = (top + name.encode() + b".py", top + name.encode() + b"/__init__.py")
        if not any(place in committed for place in places):
            yield from (f"{name}.py", f"{name}/**")


def named_files(command: Command, prefix: str, committed: Collection[bytes]) -> Iterator[bytes]:
    """Scripts and tests of the tested commit that a command names."""
    folder = "" if prefix == "." else prefix
    for words, place in simple_commands(command, MAX_NESTING):
        for word in _candidates(words):
            path = os.fsencode(posixpath.normpath(posixpath.join(folder, place, word)))
            if path in committed:
                yield path
                if not _is_runner(words):
                    break


def simple_commands(command: Command, depth: int) -> Iterator[tuple[list[str], str]]:
    """Each program with its arguments, and the folder that a `cd` before it names."""
    place = ""
    for words in _split(command) if isinstance(command, str) else [list(command)]:
        plain = _without_prefixes(words)
        if plain[:1] == ["cd"] and len(plain) > 1:
            place = posixpath.join(place, plain[1])
        elif depth and (line := _inner_line(plain)):
            yield from ((inner, posixpath.join(place, below)) for inner, below in simple_commands(line, depth - 1))
        elif plain:
            yield plain, place


def _split(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line.replace("\n", ";"), posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        for word in lexer:
            if SEPARATORS.fullmatch(word):
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:  # a quote that nothing closes: the shell will say so
        pass
    yield words


def _without_prefixes(words: Sequence[str]) -> list[str]:
    """Without assignments and with what only starts another program."""
    left = list(words)
    while left and (ASSIGNMENT.fullmatch(left[0]) or left[0] in {"env", "exec", "time", "command", "nice", "!", "if"}):
        left.pop(0)
    return left


def _inner_line(words: Sequence[str]) -> str | None:
    """The line that a shell is given."""
    if words and _program(words[0]) in {"sh", "bash", "zsh", "dash"}:
        for option, word in pairwise(words):
            if re.fullmatch(r"-[a-z]*c", option):
                return word
    return None


def _program(word: str) -> str:
    """Its name without folder and version."""
    return re.sub(r"[\d.]+$", "", PurePosixPath(word).name) or word


def _is_runner(words: Iterable[str]) -> bool:
    return any(PurePosixPath(word).name in RUNNERS for word in words)


def _candidates(words: Sequence[str]) -> Iterator[str]:
    """Words that may name a script or tests: the program itself, what an interpreter runs, all that a runner gets."""
    if "/" in words[0]:
        yield words[0]
    if _is_runner(words):
        for word in words[1:]:
            # Also what an option has after its sign: --config=FILE; and one test of a file: FILE::NAME.
            name = word.rpartition("=")[2] if word.startswith("-") else word.partition("::")[0]
            yield name
            yield f"{name.replace('.', '/')}.py"
        return
    for number, word in enumerate(words):
        without = INTERPRETERS.get(_program(word))
        if without is not None:
            rest = words[number + 1 :]
            if not without & set(rest):
                yield from (word for word in rest if not word.startswith("-") and word != INSTALLER)
            return
