"""A fresh checkout of what a session changed, except for protected files, which are as they were committed.

The suites may be among them, where commands need to see them. Nothing else of the session is in it: no ignored file
that the suite does not name, no HOME, no configuration or hook of its repository.

Protected are the files that the suite names, and by default those that decide: scripts and tests that build and test
command name, where the tested commit has them (what it lacks, the session was to write), and what test runners read on
their own, also where the session added it. Files that hold dependencies too (package.json, pyproject.toml, setup.cfg,
Makefile) are not among them: honest work changes them.
"""

import os
import posixpath
import re
import secrets
import shlex
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import anyio.to_thread
from pathspec import PathSpec

from zelda_ci.domain.suite import Command, ResolvedSuite
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import WorkspaceError
from zelda_ci.files import untrusted
from zelda_ci.redact import SafeText
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace import store
from zelda_ci.workspace.changes import OpenRun, StagedTree, escaped, folders_above
from zelda_ci.workspace.git import ABSENT, SUBMODULE, Git, split_names, tree_files
from zelda_ci.workspace.objects import is_below


class ProtectedFiles:
    """Copies of protected files, by their path below the root of a fresh checkout, where no run can reach."""

    def __init__(self, root: Path, copies: Path, files: Sequence[str]) -> None:
        self.root, self.copies = root, copies
        copies.mkdir(mode=0o700)
        # Links and submodules are left alone.
        self.files = [name for name in files if untrusted.is_regular((root / name).lstat())]
        for number, name in enumerate(self.files):
            shutil.copy(root / name, copies / str(number))

    def restore(self) -> list[str]:
        """Put back what is different; returns its names."""
        restored = []
        for number, name in enumerate(self.files):
            *above, last = name.split("/")
            kept = self.copies / str(number)
            with self._inside(above) as folder:
                content, mode = kept.read_bytes(), 0o755 if kept.stat().st_mode & stat.S_IXUSR else 0o644
                with suppress(OSError):
                    if untrusted.read(last, len(content), folder=folder) == content:
                        continue
                self._aside(last, folder)
                descriptor = untrusted.open_regular(last, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode, folder=folder)
                with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor
                    file.write(content)
                self._hand_over(last, folder)
            restored.append(name)
        return restored

    def bring(self, source: Path, names: Sequence[str]) -> None:
        """Move files here from another tree, to the same places; no link is followed in either."""
        for name in names:
            *above, last = name.split("/")
            with suppress(OSError), untrusted.entered(source, above) as origin, self._inside(above) as folder:
                self._aside(last, folder)
                untrusted.move(last, origin, last, folder)

    @contextmanager
    def _inside(self, parts: Sequence[str]) -> Iterator[int]:
        """Open a real folder below the root; whatever else stands in its way is moved aside."""
        for depth, part in enumerate(parts):
            with untrusted.entered(self.root, parts[:depth]) as above:
                try:
                    os.close(untrusted.open_folder(part, folder=above))
                except OSError:
                    self._aside(part, above)
                    os.mkdir(part, dir_fd=above)
                    self._hand_over(part, above)
        with untrusted.entered(self.root, parts) as folder:
            yield folder

    def _aside(self, name: str, folder: int) -> None:
        with untrusted.entered(self.copies) as top, suppress(FileNotFoundError):
            untrusted.move(name, folder, secrets.token_hex(8), top)

    def _hand_over(self, name: str, folder: int) -> None:
        if os.geteuid() == 0:
            owner = self.root.lstat()
            os.chown(name, owner.st_uid, owner.st_gid, dir_fd=folder, follow_symlinks=False)


NAME = "checked"


@dataclass(frozen=True)
class CheckedOut:
    """A workspace with a fresh checkout of what a session changed."""

    workspace: Workspace
    restored: tuple[SafeText, ...]
    """Protected files that the session had changed, added or removed, relative to the top of the tree."""
    left_out: tuple[SafeText, ...]
    """Changes that are not in it, such as very large files."""
    protection: PathSpec[Any]
    """Which files are as they were committed, there or not, by their paths from the top of the tree."""
    protected: ProtectedFiles
    update: tuple[str, ...] | None = None
    """The command that brings the session's changes into it after setup; it runs confined, without a network."""


async def check_out(workspace: Workspace, run: OpenRun, staged: StagedTree, git: Git) -> CheckedOut:
    """Make the checkout in the folder of a session's run, where it could not reach; it is not confined yet."""
    # The index of what was staged after the session becomes that of the checkout.
    folder, suite, start = WorkspaceFolder(run.folder.path / NAME, run.folder.number), run.suite, run.store.commit
    prefix = workspace.path.relative_to(workspace.root)
    for place in (folder.path, folder.home, folder.tmp):
        place.mkdir(mode=0o700)
    await store.add_worktree(folder, run.project, run.store, git)
    if not folder.is_intact():
        raise WorkspaceError("The fresh checkout is not where it should be.")
    protected = protection(suite, prefix.as_posix(), lambda path: (folder.root / path).is_file())
    changed = staged.changed.items()
    restored = {path: (it.old_mode, it.old_content) for path, it in changed if protected.match_file(path)}
    uncovered = await _uncovered(run, staged.repository, git)
    above = {*uncovered, *(place[:-1] for path in uncovered for place in folders_above(path))}
    forged = {path for path, it in changed if path in above and uncovered.get(path) != (it.mode, it.content)}
    # The uncovered win: what the session has put in the place of a suite or criterion must not be run. Removals come
    # first, and a file or link that has taken the place of a folder gives way.
    entries = sorted((restored | uncovered).items(), key=lambda entry: entry[1][0] != ABSENT)
    lines = [f"{0 if mode == ABSENT else mode} {blob}\t{path}\0" for path, (mode, blob) in entries]
    if lines:
        await staged.git("update-index", "-z", "--replace", "--index-info", stdin=os.fsencode("".join(lines)))
    tree = (await staged.git("write-tree")).decode().strip()
    copy = partial(shutil.copytree, dirs_exist_ok=True, ignore=shutil.ignore_patterns("info", "tmp_*"))
    await anyio.to_thread.run_sync(copy, staged.repository / "objects", folder.git_dir / "objects")
    # Only as long as nothing has run in it.
    inside = git.within(folder.root, GIT_DIR=str(folder.session_index.parent), GIT_WORK_TREE=str(folder.root))
    # What is the same in both is not written again, and so keeps the bytes that the committed attributes give it,
    # whatever the session's own say.
    await inside("read-tree", "-m", "-u", start, tree, inherit=(folder.number,))
    store.make_folder(folder.root, prefix)
    tracked = split_names(await staged.git("ls-files", "-z"))
    names = [path for path in tracked if path in uncovered or protected.match_file(path)]
    copies = await anyio.to_thread.run_sync(ProtectedFiles, folder.root, folder.path / "kept", names)
    update, network = None, suite.isolation.network
    # Setup with a network must not run what a session without one wrote: the session's changes come after it.
    if suite.setup_command is not None and network.setup == "open" and network.session == "none":
        await inside("read-tree", "-m", "-u", tree, start, inherit=(folder.number,))
        update = ("git", "read-tree", "--reset", "-u", tree)
    base, root, home, tmp = folder.path, folder.root, folder.home, folder.tmp
    checked = replace(workspace, base=base, root=root, path=root / prefix, home=home, tmp=tmp, git_dir=folder.git_dir)
    back, left_out = (tuple(map(git.redact, sorted(some))) for some in (restored.keys() | forged, staged.left_out))
    return CheckedOut(checked, back, left_out, protected, copies, update)


async def _uncovered(run: OpenRun, repository: Path, git: Git) -> dict[str, tuple[str, str]]:
    """Mode and blob, by path, of what the session did not see and commands shall; copies the objects."""
    hidden = run.store.withheld.paths
    if run.whole is None or not hidden:
        return {}
    whole = git.within(run.whole.folder, GIT_DIR=str(run.whole.folder))
    files = tree_files(await whole("ls-tree", "-r", "-z", "--full-tree", run.whole.commit))
    entries = {it.path: (it.mode, it.content) for it in files if it.mode != SUBMODULE and is_below(it.path, hidden)}
    blobs = "".join(f"{blob}\n" for _, blob in entries.values()).encode()
    await whole("pack-objects", "-q", str(repository / "objects/pack/pack"), stdin=blobs)
    return entries


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

# Between commands, also those that a shell in a shell is given in quotes.
SEPARATORS = re.compile(r"""[;&|()\n'"`]+""")
QUOTED_WORD = re.compile(r"""(['"])([^\s'"]*)\1""")
# What stands before the program that a command starts.
PREFIX = re.compile(r"\w+=.*|env|exec|time|command|nice|!|if")


def protection(suite: ResolvedSuite, prefix: str, is_committed: Callable[[str], bool]) -> PathSpec[Any]:
    """The files, there or not, that are as they were committed when build and tests run, by paths from the top."""
    # A suite's own list protects nothing where it is empty; the prefix is the project's folder.
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
    named = {name for command in suite.deciding_commands for name in named_files(command, prefix, is_committed)}
    return spec([*globs, *(own or ())], prefix, named)


def spec(globs: Sequence[str], prefix: str, names: Iterable[str] = ()) -> PathSpec[Any]:
    """Globs in the folder `prefix`, and names from the top of the tree: the last that fits a path decides."""
    # Without a slash in front, gitignore takes a name to fit in every folder.
    above = "" if prefix == "." else f"{escaped(prefix)}/"
    lines = (f"!/{above}{glob[1:]}" if glob.startswith("!") else f"/{above}{glob}" for glob in globs)
    return PathSpec.from_lines("gitignore", [*(f"/{escaped(name)}" for name in names), *lines], backend="simple")


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
            # Also what an option has after its sign: --config=FILE; and one test of a file: FILE::NAME.
            given = [it.rpartition("=")[2] if it.startswith("-") else it.partition("::")[0] for it in words[1:]]
            # Files, or modules; and the runner itself.
            of_runner = [words[0], *(name for it in given for name in (it, f"{it.replace('.', '/')}.py"))]
            candidates = of_runner if is_runner else _scripts(words)
            paths = (posixpath.normpath(posixpath.join(folder, word)) for word in candidates)
            committed = [path for path in paths if not path.startswith(("/", "../")) and is_committed(path)]
            yield from committed if is_runner else committed[:1]


def _scripts(words: Sequence[str]) -> Iterator[str]:
    """Words that may name a script: the program itself, and what an interpreter runs.

    Not `setup.py`, which says how something is installed, not whether it works.
    """
    if "/" in words[0]:
        yield words[0]
    for number, word in enumerate(words):
        # Its name without folder and version.
        without = INTERPRETERS.get(re.sub(r"[\d.]+$", "", PurePosixPath(word).name) or word)
        if without is not None:
            rest = words[number + 1 :]
            if not without & set(rest):
                yield from (word for word in rest if not word.startswith("-") and word != "setup.py")
            return
