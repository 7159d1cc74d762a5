"""Report files that a command wrote, collected from a folder that may hold traps."""

import os
import secrets
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathspec import PathSpec

from zelda_ci.domain.workspace import Workspace
from zelda_ci.files import untrusted
from zelda_ci.test_output.reports import ReportFile

MAX_ENTRIES = 500_000
MAX_FILES = 10_000
MAX_FILE_BYTES = 32 << 20
MAX_TOTAL_BYTES = 128 << 20
MAX_DEPTH = 32
# Folders that are not searched, unless a pattern names them.
SKIPPED = frozenset({".git", "node_modules"})

# Globs by kind of report, relative to the folder where commands work.
Patterns = Mapping[str, Sequence[str]]

Parts = tuple[str, ...]
Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Written:
    """What a command wrote, by kind; of a kind that went beyond a limit nothing, and a note that says so."""

    files: Mapping[str, tuple[ReportFile, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Watch:
    """Knows the reports that were there before, so that a stale or committed one never counts.

    A file counts when its content was written after the watch began, by the clock of the file system that holds it,
    and when it is not as it was then: a clock that is wrong, or a forged time, makes nothing new.
    """

    def __init__(self, workspace: Workspace, patterns: Patterns) -> None:
        self._base = workspace.base
        self._place = workspace.path.relative_to(workspace.base).parts
        self._specs = {kind: _spec(globs) for kind, globs in patterns.items() if globs}
        self._skipped = SKIPPED - {part for globs in patterns.values() for glob in globs for part in glob.split("/")}
        self._before = {parts: _stamp(status) for _, parts, status in self._candidates()}
        self._since = _now(workspace.base)

    def written(self) -> Written:
        """The reports as they are now."""
        fresh: dict[str, list[Parts]] = {kind: [] for kind in self._specs}
        for kind, parts, status in self._candidates():
            # Both: a clock may be coarse, and a command may touch an old file without writing it.
            if status.st_mtime_ns >= self._since and self._before.get(parts) != _stamp(status):
                fresh[kind].append(parts)
        files: dict[str, tuple[ReportFile, ...]] = {}
        notes: list[str] = []
        with _opened(self._base, self._place) as top:
            for kind, paths in fresh.items():
                try:
                    files[kind] = tuple(_read(top, sorted(paths)))
                except _TooMuchError as problem:
                    notes.append(f"The {kind} reports were not used: {problem}.")
        return Written(files, tuple(notes))

    def _candidates(self) -> Iterator[tuple[str, Parts, os.stat_result]]:
        if not self._specs:
            return
        with _opened(self._base, self._place) as top:
            for parts, entry in _walk(top, self._skipped):
                name = "/".join(parts)
                for kind in [kind for kind, spec in self._specs.items() if spec.match_file(name)]:
                    with suppress(OSError):
                        yield kind, parts, entry.stat(follow_symlinks=False)


class _TooMuchError(Exception):
    """More, or larger, than is read."""


def _spec(globs: Sequence[str]) -> PathSpec[Any]:
    # A leading slash: without one, gitignore takes a name for a pattern that fits in every folder.
    return PathSpec.from_lines("gitignore", [f"/{glob}" for glob in globs], backend="simple")


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _now(folder: Path) -> int:
    """The time by the file system's own clock, in nanoseconds."""
    # The disk's clock may differ from ours (network file systems), and its times may be coarser.
    probe = folder / f".{secrets.token_hex(4)}"
    probe.touch()
    try:
        return probe.stat().st_mtime_ns
    finally:
        probe.unlink()


@contextmanager
def _opened(base: Path, place: Sequence[str]) -> Iterator[int | None]:
    """A folder, entered step by step so that no link leads elsewhere; nothing where it is gone."""
    with ExitStack() as held:
        try:
            descriptor = held.enter_context(untrusted.entered(base, place))
        except OSError:
            yield None
            return
        yield descriptor


def _walk(top: int | None, skipped: frozenset[str]) -> Iterator[tuple[Parts, "os.DirEntry[str]"]]:
    """Plain files, those near the top first, up to `MAX_ENTRIES`; a folder that cannot be read is passed over."""
    if top is None:
        return
    budget = MAX_ENTRIES
    waiting: deque[Parts] = deque([()])
    while waiting:
        folder = waiting.popleft()
        with suppress(OSError), untrusted.entered(top, folder) as descriptor, os.scandir(descriptor) as entries:
            for entry in entries:
                budget -= 1
                if budget < 0:
                    return
                if entry.is_file(follow_symlinks=False):
                    yield (*folder, entry.name), entry
                elif entry.is_dir(follow_symlinks=False) and entry.name not in skipped and len(folder) < MAX_DEPTH:
                    waiting.append((*folder, entry.name))


def _read(top: int | None, paths: Sequence[Parts]) -> Iterator[ReportFile]:
    if len(paths) > MAX_FILES:
        raise _TooMuchError(f"there are {len(paths)} of them")
    budget = MAX_TOTAL_BYTES
    for parts in paths:
        content = _content(top, parts)
        if content is not None:
            budget -= len(content)
            if budget < 0:
                raise _TooMuchError(f"together they are larger than {MAX_TOTAL_BYTES >> 20} MB")
            yield ReportFile("/".join(parts), content)


def _content(top: int | None, parts: Parts) -> bytes | None:
    """What is in a plain file; nothing where it has become something else."""
    if top is None:
        return None
    try:
        with untrusted.entered(top, parts[:-1]) as folder:
            return untrusted.read(parts[-1], MAX_FILE_BYTES, folder=folder)
    except untrusted.TooLargeError:
        raise _TooMuchError(f"{'/'.join(parts)} is larger than {MAX_FILE_BYTES >> 20} MB") from None
    except OSError:
        return None
