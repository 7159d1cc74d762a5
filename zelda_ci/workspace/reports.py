"""Report files that a command wrote, collected from a folder that may hold traps."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

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


class Watch:
    """Knows the reports that were there before, so that a stale or committed one never counts.

    Their globs, by kind of report, are relative to the folder where commands work. A file counts when its content was
    written after the watch began, by the clock of the file system that holds it, and when it is not as it was then: a
    clock that is wrong, or a forged time, makes nothing new.
    """

    def __init__(self, workspace: Workspace, patterns: Mapping[str, Sequence[str]]) -> None:
        self._base = workspace.base
        self._place = workspace.path.relative_to(workspace.base)
        # A leading slash: without one, gitignore takes a name for a pattern that fits in every folder.
        self._specs = {
            kind: PathSpec.from_lines("gitignore", [f"/{glob}" for glob in globs], backend="simple")
            for kind, globs in patterns.items()
            if globs
        }
        self._skipped = SKIPPED - {part for globs in patterns.values() for glob in globs for part in glob.split("/")}
        self._before = dict(self._stamps())
        # By the clock of the file system that holds them: it may differ from ours, and be coarser.
        with tempfile.TemporaryFile(dir=workspace.base) as probe:
            self._since = os.fstat(probe.fileno()).st_mtime_ns

    def written(self) -> tuple[dict[str, tuple[ReportFile, ...]], tuple[str, ...]]:
        """Read the reports that a command wrote, by kind; of a kind beyond a limit none, and a note that says so."""
        # Both: a clock may be coarse, and a command may touch an old file without writing it.
        stamps = self._stamps()
        fresh = sorted(it for it, stamp in stamps if stamp[0] >= self._since and self._before.get(it) != stamp)
        files, notes = dict[str, tuple[ReportFile, ...]](), list[str]()
        for kind, spec in self._specs.items():
            found = self._read([path for path in fresh if spec.match_file(path)])
            if isinstance(found, str):
                notes.append(f"The {kind} reports were not used: {found}.")
            else:
                files[kind] = found
        return files, tuple(notes)

    def _stamps(self) -> Iterator[tuple[str, tuple[int, int, int]]]:
        """Yield files that a pattern names, with time, number and size; what cannot be read is passed over."""
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
                            status = os.stat(name, dir_fd=number, follow_symlinks=False)
                            yield path, (status.st_mtime_ns, status.st_ino, status.st_size)

    def _read(self, paths: Sequence[str]) -> tuple[ReportFile, ...] | str:
        """Read reports; where they are more, or larger, than is read, return what is too much of them."""
        if len(paths) > MAX_FILES:
            return f"there are {len(paths)} of them"
        found, budget = list[ReportFile](), MAX_TOTAL_BYTES
        for path in paths:
            try:
                content = untrusted.read_below(self._base, f"{self._place.as_posix()}/{path}", MAX_FILE_BYTES)
            except untrusted.TooLargeError:
                return f"{path} is larger than {MAX_FILE_BYTES >> 20} MB"
            except OSError:  # no plain file
                continue
            budget -= len(content)
            if budget < 0:
                return f"together they are larger than {MAX_TOTAL_BYTES >> 20} MB"
            found.append(ReportFile(path, content))
        return tuple(found)
