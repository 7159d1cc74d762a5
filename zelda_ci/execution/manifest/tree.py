"""A tree that somebody hostile may have written, read within limits, and the findings of a scan in it."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem, RefusedSetting
from zelda_ci.files import untrusted
from zelda_ci.redact import Redactor, SafeText

# Claude Code's own.
MAX_FILE_BYTES = 4 << 20
MAX_BYTES = 20_000_000
MAX_LOOKUPS = 200_000
MAX_NAMES = 2_000
MAX_LINKS = 16
MAX_TREE_DEPTH = 10

_Kind = Literal["folder", "link", "other"]


class Unfit(Exception):  # noqa: N818 - a finding about a file, not a failure of Zelda
    """A file that cannot be used; the message says why, continuing a sentence about it."""


class Missing(Unfit):
    """Nothing is there."""


class Exhausted(Exception):  # noqa: N818 - the end of looking, not a failure
    """The tree has more than anybody wants to look at."""


@dataclass(frozen=True)
class TreeEntry:
    """Something in a folder, links followed."""

    name: str
    path: str
    is_folder: bool
    is_link: bool = False


class Tree:
    """A folder and everything in it, by paths relative to it. Links are followed as long as they stay inside."""

    def __init__(self, root: Path) -> None:
        self._root = untrusted.open_folder(root)
        self._looks = 0
        self._bytes = 0
        self.crowded = False
        """Whether a folder had more names than were looked at."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._root)

    def read(self, path: str) -> str:
        """The text of a regular file.

        Raises:
            Missing: There is no such file.
            Unfit: It cannot be read as text.
        """
        with _explained():
            *folders, name = self._real(path) or (".",)
            with untrusted.entered(self._root, folders) as folder:
                data = untrusted.read(name, MAX_FILE_BYTES, folder=folder)
        self._bytes += len(data)
        # In all: a repository can hold thousands of files, each just below its own limit.
        if self._bytes > MAX_BYTES:
            raise Exhausted
        return data.decode("utf-8", "replace").removeprefix("\ufeff")

    def entries(self, folder: str) -> list[TreeEntry]:
        """What lies in a folder, by name; empty where there is no such folder."""
        try:
            with _explained(), untrusted.entered(self._root, self._real(folder)) as descriptor:
                listed = _listed(descriptor)
        except Unfit:
            return []
        self._count(len(listed))
        if len(listed) > MAX_NAMES:
            self.crowded = True
        return [self._entry(folder, name, kind) for name, kind in sorted(listed[:MAX_NAMES])]

    def exists(self, path: str) -> bool:
        """Whether something is there, whatever it is."""
        try:
            with _explained():
                return bool(self._real(path))
        except Missing:
            return False
        except Unfit:
            return True

    def is_inside(self, path: str) -> bool:
        """Whether it lies in the tree, or is not there: no link leads elsewhere."""
        try:
            with _explained():
                self._real(path)
        except Missing:
            return True
        except Unfit:
            return False
        return True

    def real(self, path: str) -> str:
        """The path without links; as it is where they lead nowhere."""
        try:
            with _explained():
                return "/".join(self._real(path))
        except Unfit:
            return path

    def files(self, folder: str, suffix: str) -> Iterator[str]:
        """Paths of the files below a folder whose names end so; no folder is entered twice."""
        visited: set[str] = set()
        waiting = [(folder, 0)]
        while waiting:
            current, depth = waiting.pop()
            if depth > MAX_TREE_DEPTH or (real := self.real(current)) in visited:
                continue
            visited.add(real)
            entries = self.entries(current)
            yield from (entry.path for entry in entries if not entry.is_folder and entry.name.endswith(suffix))
            waiting += [(entry.path, depth + 1) for entry in reversed(entries) if entry.is_folder]

    def _entry(self, folder: str, name: str, kind: _Kind) -> TreeEntry:
        path = f"{folder}/{name}" if folder else name
        return TreeEntry(
            name, path, kind == "folder" or (kind == "link" and self._leads_to_folder(path)), kind == "link"
        )

    def _leads_to_folder(self, link: str) -> bool:
        try:
            with _explained():
                real = self._real(link)
                # The empty path is the tree itself.
                return not real or stat.S_ISDIR(self._status(real).st_mode)
        except Unfit:
            return False

    def _real(self, path: str) -> tuple[str, ...]:
        """The path without links. What the kernel would follow out of the tree is refused here."""
        waiting, real, links = path.split("/")[::-1], list[str](), 0
        while waiting:
            part = waiting.pop()
            if part == "..":
                if not real:
                    raise Unfit("it leads out of the project")
                real.pop()
            elif part not in ("", "."):
                real.append(part)
                if stat.S_ISLNK(self._status(tuple(real)).st_mode):
                    links += 1
                    waiting += self._target(real, links).split("/")[::-1]
                    # The link itself is no part of the way; its target takes its place.
                    real.pop()
        return tuple(real)

    def _target(self, link: list[str], count: int) -> str:
        if count > MAX_LINKS:
            raise Unfit("its links lead in circles")
        target = os.readlink("/".join(link), dir_fd=self._root)
        if target.startswith("/"):
            raise Unfit("it is a link out of the project")
        return target

    def _status(self, real: tuple[str, ...]) -> os.stat_result:
        self._count(1)
        return os.stat("/".join(real), dir_fd=self._root, follow_symlinks=False)

    def _count(self, looks: int) -> None:
        self._looks += looks
        if self._looks > MAX_LOOKUPS:
            raise Exhausted


def _listed(descriptor: int) -> list[tuple[str, _Kind]]:
    with os.scandir(descriptor) as listing:
        return [(entry.name, _kind(entry)) for entry in islice(listing, MAX_NAMES + 1)]


def _kind(entry: os.DirEntry[str]) -> _Kind:
    if entry.is_symlink():
        return "link"
    return "folder" if entry.is_dir(follow_symlinks=False) else "other"


@contextmanager
def _explained() -> Iterator[None]:
    """What the system says about a file, as a finding."""
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


MAX_ITEMS = 500
# Claude Code's own limit for what it tells the model of a skill.
MAX_DESCRIPTION_LENGTH = 1536

MAX_TEXT_LENGTH = 10_000
MAX_NAME_LENGTH = 300
MAX_GLOBS = 50


@dataclass
class ScanFindings:
    """Collects entries of the manifest."""

    tree: Tree
    redact: Redactor
    refusals: tuple[RefusedSetting, ...] = ()
    """What Claude Code itself says that it does not load."""
    items: list[ManifestItem] = field(default_factory=list)
    settings: list[ManifestItem] = field(default_factory=list)
    notes: list[SafeText] = field(default_factory=list)

    def add(self, kind: ItemKind, name: str, file: str, **facts: Any) -> None:
        """Keep a finding; `facts` are fields of `ManifestItem` as plain text."""
        if len(self.items) >= MAX_ITEMS:
            return
        fields = {key: self._safe(key, value) for key, value in facts.items()}
        self.items.append(ManifestItem(kind=kind, name=self._cut(name), file=self._cut(file), **fields))
        if len(self.items) == MAX_ITEMS:
            self.note(f"Only the first {MAX_ITEMS} skills, rules and other items are listed.")

    def note(self, sentence: str) -> None:
        """Keep what the user should know about the scan itself."""
        self.notes.append(self._cut(sentence, MAX_DESCRIPTION_LENGTH))

    def refused(self, file: str, entry: str) -> str | None:
        """Why Claude Code does not load an entry of a settings file, where it says so."""
        found = (each for each in self.refusals if each.file == file and each.concerns(entry))
        return next((f"Claude Code does not load it: {each.problem}" for each in found), None)

    def text(self, kind: ItemKind, name: str, file: str) -> str | None:
        """The text of a file; where it cannot be read, that is the finding."""
        try:
            return self.tree.read(file)
        except Unfit as problem:
            self.add(kind, name, file, problem=f"{problem}")
            return None

    def _safe(self, key: str, value: Any) -> Any:
        match value:
            case str():
                return self._cut(value, MAX_TEXT_LENGTH if key == "text" else MAX_DESCRIPTION_LENGTH)
            case tuple():
                return tuple(self._cut(item) for item in value[:MAX_GLOBS])
            case _:
                return value

    def _cut(self, text: str, limit: int = MAX_NAME_LENGTH) -> SafeText:
        # Redacted before it is cut: half a secret would not be known as one.
        safe = self.redact(text)
        return safe if len(safe) <= limit else self.redact(safe[: limit - 1] + "…")
