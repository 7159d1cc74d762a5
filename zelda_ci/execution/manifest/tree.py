"""The files of a project, which anybody may have written."""

import os
import posixpath
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import NamedTuple

from zelda_ci.files import untrusted

# Claude Code's own.
MAX_FILE_BYTES = 4 << 20
MAX_LINKS = 16


class Unfit(Exception):  # noqa: N818 - a finding about a file, not a failure of Zelda
    """A file that cannot be used; the message says why, continuing a sentence about it."""


class Missing(Unfit):
    """Nothing is there."""


class TreeEntry(NamedTuple):
    """Something in a folder; what it is, is said of what a link leads to."""

    name: str
    path: str
    is_folder: bool
    is_link: bool


class Tree:
    """A folder and everything in it, by paths relative to it, while nothing runs that could change it.

    Links are followed as long as each of their steps stays inside: elsewhere a session may see other files than Zelda.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def read(self, path: str) -> str:
        """Read a regular file as text; raise `Missing` where there is none, `Unfit` where it cannot be read."""
        with _explained():
            data = untrusted.read(self._real(path), MAX_FILE_BYTES)
        return data.decode("utf-8", "replace").removeprefix("\ufeff")

    def entries(self, folder: str) -> list[TreeEntry]:
        """Return what lies in a folder, by name; nothing where there is no such folder."""
        try:
            with _explained(), os.scandir(self._real(folder)) as listing:
                return [self._entry(folder, entry) for entry in sorted(listing, key=lambda entry: entry.name)]
        except Unfit:
            return []

    def problem(self, path: str) -> Unfit | None:
        """Return why a path leads to nothing in the tree."""
        try:
            self._real(path)
        except Unfit as problem:
            return problem
        return None

    def exists(self, path: str) -> bool:
        """Return whether something is there, whatever it is."""
        return not isinstance(self.problem(path), Missing)

    def real(self, path: str) -> str:
        """Return the path without links; as it is where they lead nowhere."""
        return path if self.problem(path) else self._real(path).relative_to(self._root).as_posix()

    def files(self, folder: str, suffix: str) -> Iterator[str]:
        """Yield paths of the files below a folder whose names end so; no folder is entered twice."""
        visited, waiting = set[str](), [folder]
        while waiting:
            current = waiting.pop()
            if (real := self.real(current)) not in visited:
                visited.add(real)
                entries = self.entries(current)
                yield from (entry.path for entry in entries if not entry.is_folder and entry.name.endswith(suffix))
                waiting += [entry.path for entry in reversed(entries) if entry.is_folder]

    def _entry(self, folder: str, entry: os.DirEntry[str]) -> TreeEntry:
        path, is_link = posixpath.join(folder, entry.name), entry.is_symlink()
        is_folder = not self.problem(path) and posixpath.isdir(entry.path) if is_link else entry.is_dir()
        return TreeEntry(entry.name, path, is_folder, is_link)

    def _real(self, path: str) -> Path:
        """Return the path without links; raise `Missing` where nothing is there, `Unfit` where it leads out."""
        waiting, real, links = [*reversed(PurePath(path).parts)], self._root, 0
        while waiting:
            part = waiting.pop()
            if part == "/" or (part == ".." and real == self._root) or links > MAX_LINKS:
                raise Unfit("it leads out of the project, or in circles")
            place = real.parent if part == ".." else real / part
            with _explained():
                if stat.S_ISLNK(place.lstat().st_mode):
                    links += 1
                    waiting += reversed(place.readlink().parts)
                else:
                    real = place
        return real


@contextmanager
def _explained() -> Iterator[None]:
    """Raise what the system says about a file as a finding."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise Missing("it does not exist") from None
    except untrusted.NotRegularError:
        raise Unfit("it is not a regular file") from None
    except untrusted.TooLargeError:
        raise Unfit(f"it is larger than {MAX_FILE_BYTES >> 20} MiB") from None
    except OSError as error:
        raise Unfit(f"it cannot be read ({error.strerror})") from None
    except ValueError:
        raise Unfit("it has an impossible name") from None
