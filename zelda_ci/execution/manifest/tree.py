"""The files of a project, which anybody may have written, and what a scan found in them, made safe to keep."""

import json
import os
import posixpath
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem, RefusedSetting
from zelda_ci.execution.manifest.front_matter import MarkdownDocument, parse
from zelda_ci.files import untrusted
from zelda_ci.redact import Redactor, SafeText

# Claude Code's own; the last is its limit for what it shows the model of a skill.
MAX_FILE_BYTES, MAX_LINKS, MAX_DESCRIPTION_LENGTH = 4 << 20, 16, 1536
MAX_TEXT_LENGTH = 10_000


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
        with suppress(Unfit), _explained(), os.scandir(self._real(folder)) as listing:
            return [self._entry(folder, entry) for entry in sorted(listing, key=lambda entry: entry.name)]
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


class ScanFindings:
    """Reads the files of a tree for a session in one of its folders, and collects entries of the manifest."""

    def __init__(self, top: Path, folder: Path, redact: Redactor) -> None:
        self.tree, self.redact = Tree(top), redact
        self.start = "" if folder == top else folder.relative_to(top).as_posix()
        """Folder of the session, from the top of the tree."""
        self.settings: Mapping[str, Any] = {}
        self.refusals: tuple[RefusedSetting, ...] = ()
        """What Claude Code itself says that it does not load."""
        self.items = list[ManifestItem]()
        self.notes = list[SafeText]()
        self._taken = dict[tuple[str, str], str]()
        """Files by what calls them and their name."""

    def add(self, kind: ItemKind, name: str, file: str, **facts: Any) -> None:
        """Keep a finding; `facts` are fields of `ManifestItem` as plain text."""
        fields = {key: self._safe(value, key) for key, value in facts.items()}
        self.items.append(ManifestItem(kind=kind, name=self._safe(name), file=self._safe(file), **fields))

    def note(self, sentence: str) -> None:
        """Keep what the user should know about the scan itself."""
        self.notes.append(self._safe(sentence))

    def refused(self, file: str, entry: str) -> str | None:
        """Return why Claude Code does not load an entry of a settings file, where it says so."""
        found = (each for each in self.refusals if each.file == file and each.concerns(entry))
        return next((f"Claude Code does not load it: {each.problem}" for each in found), None)

    def claim(self, call: str, name: str, file: str) -> str:
        """Take a name for a file, and return the file that has it: another one that came before."""
        return self._taken.setdefault((call, name), file)

    def document(self, kind: ItemKind, name: str, file: str) -> MarkdownDocument | None:
        """Read a document; where it cannot be read, that is the finding."""
        try:
            return parse(self.tree.read(file))
        except Unfit as problem:
            self.add(kind, name, file, problem=f"{problem}")
            return None

    def json_object(self, file: str) -> dict[str, Any]:
        """Read a JSON file that holds an object; anything else is empty, and noted unless the file is missing."""
        try:
            content = json.loads(self.tree.read(file))
        except Missing:
            return {}
        except (Unfit, ValueError, RecursionError) as problem:
            cause = problem if isinstance(problem, Unfit) else "it is not valid JSON"
            if not self.refused(file, ""):
                self.note(f"Nothing in {file} was loaded: {cause}.")
            return {}
        return content if isinstance(content, dict) else {}

    def _safe(self, value: Any, key: str = "") -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._safe, value))
        if not isinstance(value, str):
            return value
        limit = MAX_TEXT_LENGTH if key == "text" else MAX_DESCRIPTION_LENGTH
        # Redacted before it is cut: half a secret would not be known as one.
        safe = self.redact(value)
        return safe if len(safe) <= limit else self.redact(safe[: limit - 1] + "…")
