"""Report files that a command wrote, collected from a folder that may hold traps."""

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import PathSpec

from zelda_ci.domain.workspace import Workspace
from zelda_ci.files import untrusted
from zelda_ci.test_output.reports import ReportFile

MAX_FILES = 10_000
MAX_FILE_BYTES = 32 << 20
MAX_TOTAL_BYTES = 128 << 20
MAX_DEPTH = 32
# Folders that are not searched, unless a pattern names them.
SKIPPED = frozenset({".git", "node_modules"})

# Globs by kind of report, relative to the folder where commands work.
Patterns = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Written:
    """Reports that a command wrote, by kind; of a kind that went beyond a limit none, and a note that says so."""

    files: Mapping[str, tuple[ReportFile, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Watch:
    """Knows the reports that were there before, so that a stale or committed one never counts.

    A file counts when its content was written after the watch began, by the clock of the file system that holds it,
    and when it is not as it was then: a clock that is wrong, or a forged time, makes nothing new.
    """

    def __init__(self, workspace: Workspace, patterns: Patterns) -> None:
        self._base = workspace.base
        self._place = workspace.path.relative_to(workspace.base)
        # A leading slash: without one, gitignore takes a name for a pattern that fits in every folder.
        self._specs = {
            kind: PathSpec.from_lines("gitignore", [f"/{glob}" for glob in globs], backend="simple")
            for kind, globs in patterns.items()
            if globs
        }
        self._skipped = SKIPPED - {part for globs in patterns.values() for glob in globs for part in glob.split("/")}
        self._before = {path: _stamp(status) for path, status in self._reports()}
        self._since = _now(workspace.base)

    def written(self) -> Written:
        """Read the reports as they are now."""
        # Both: a clock may be coarse, and a command may touch an old file without writing it.
        fresh = sorted(
            path
            for path, status in self._reports()
            if status.st_mtime_ns >= self._since and self._before.get(path) != _stamp(status)
        )
        files: dict[str, tuple[ReportFile, ...]] = {}
        notes: list[str] = []
        for kind, spec in self._specs.items():
            try:
                files[kind] = tuple(self._read([path for path in fresh if spec.match_file(path)]))
            except _TooMuchError as problem:
                notes.append(f"The {kind} reports were not used: {problem}.")
        return Written(files, tuple(notes))

    def _reports(self) -> Iterator[tuple[str, os.stat_result]]:
        """Files that a pattern names; no link is followed, and a folder that cannot be read is passed over."""
        if not self._specs:
            return
        with suppress(OSError), untrusted.entered(self._base, self._place.parts) as top:
            for above, folders, names, number in os.fwalk(".", dir_fd=top):
                depth = above.count("/")
                folders[:] = [name for name in folders if name not in self._skipped and depth < MAX_DEPTH]
                for name in names:
                    path = f"{above}/{name}".removeprefix("./")
                    if any(spec.match_file(path) for spec in self._specs.values()):
                        with suppress(OSError):
                            yield path, os.stat(name, dir_fd=number, follow_symlinks=False)

    def _read(self, paths: Sequence[str]) -> Iterator[ReportFile]:
        if len(paths) > MAX_FILES:
            raise _TooMuchError(f"there are {len(paths)} of them")
        budget = MAX_TOTAL_BYTES
        for path in paths:
            try:
                content = untrusted.read_below(self._base, f"{self._place.as_posix()}/{path}", MAX_FILE_BYTES)
            except untrusted.TooLargeError:
                raise _TooMuchError(f"{path} is larger than {MAX_FILE_BYTES >> 20} MB") from None
            except OSError:  # no plain file
                continue
            budget -= len(content)
            if budget < 0:
                raise _TooMuchError(f"together they are larger than {MAX_TOTAL_BYTES >> 20} MB")
            yield ReportFile(path, content)


class _TooMuchError(Exception):
    """More, or larger, than is read."""


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _now(folder: Path) -> int:
    """Read the clock of a folder's file system, in nanoseconds: it may differ from ours, and be coarser."""
    probe = folder / f".{secrets.token_hex(4)}"
    probe.touch()
    try:
        return probe.stat().st_mtime_ns
    finally:
        probe.unlink()
