"""The files of a project, which anybody may have written, and what its `.claude/settings.json` says of others.

What a scan found in them is made safe to keep.
"""

import fnmatch
import json
import os
import posixpath
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from zelda_ci.domain.kinds import CLAUDE, ItemKind
from zelda_ci.domain.manifest import ManifestItem, RefusedSetting
from zelda_ci.errors import ExecutionError
from zelda_ci.execution.manifest.front_matter import MarkdownDocument, parse
from zelda_ci.files import untrusted
from zelda_ci.redact import Redactor, SafeText

# Claude Code's own; the last is its limit for what it shows the model of a skill.
MAX_FILE_BYTES, MAX_LINKS, MAX_DESCRIPTION_LENGTH = 4 << 20, 16, 1536
MAX_TEXT_LENGTH = 10_000
# With it, Claude Code reads no CLAUDE.md and no rule.
NO_MEMORY = "CLAUDE_CODE_DISABLE_CLAUDE_MDS"
SETTINGS_FILE = f"{CLAUDE}/settings.json"
SERVERS_FILE = ".mcp.json"


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
    """A folder and everything in it, by paths relative to it, while nothing runs that could change it."""

    # Links are followed as long as each of their steps stays inside: elsewhere a session may see others than Zelda.

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

    def memory_excluded(self) -> tuple[str, ...]:
        """Return globs of CLAUDE.md files and rules that are not read."""
        if table(self.settings, "env").get(NO_MEMORY) not in (None, "", "0", "false", False):
            return ("**",)
        # They are held against absolute paths, which of a test run nobody can know.
        return tuple(glob for glob in texts(self.settings.get("claudeMdExcludes")) if glob.startswith("**"))

    def denial(self, call: str, *names: str | None) -> tuple[str, bool] | None:
        """Return the rule that denies a call of a tool under one of these names, and whether it denies all calls."""
        labels = {f"{call}({name})" for name in names if name}
        for written in texts(table(self.settings, "permissions").get("deny")):
            # Sub-agents had another name; skills may be written with the slash of a command line.
            rule = re.sub(r"^Task\b", "Agent", written).replace("(/", "(", 1)
            if rule in ("*", call, f"{call}(*)"):
                return written, True
            begin = rule[:-3] if call == "Skill" and rule.endswith((":*)", " *)")) else rule
            if rule in labels or (begin != rule and any(label.startswith(begin) for label in labels)):
                return written, False
        return None

    def denials(self, prefix: str) -> Iterator[str]:
        """Yield the rules that may deny tools of a server, by what their names begin with."""
        own = f"{prefix}__"
        for rule in dict.fromkeys(texts(table(self.settings, "permissions").get("deny"))):
            begin, star, _ = rule.partition("*")
            is_fit = begin.startswith(own) or (star and own.startswith(begin)) or rule == prefix
            if is_fit and (rule == "*" or rule.startswith("mcp__")):
                yield rule

    def _safe(self, value: Any, key: str = "") -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._safe, value))
        if not isinstance(value, str):
            return value
        limit = MAX_TEXT_LENGTH if key == "text" else MAX_DESCRIPTION_LENGTH
        # Redacted before it is cut: half a secret would not be known as one.
        safe = self.redact(value)
        return safe if len(safe) <= limit else self.redact(safe[: limit - 1] + "…")


def table(value: object, *keys: str) -> dict[str, Any]:
    """Return the object at a path of keys; an empty one where something else is there."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, dict) else {}


def parse_object(file: str, text: str) -> dict[str, Any] | None:
    """Parse a settings file; None where it is no JSON object, which Claude Code does not apply either."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError:
        return None
    except (ValueError, RecursionError):
        raise ExecutionError(f"{file} holds a number of thousands of digits, or nests values by the hundred.") from None
    return values if isinstance(values, dict) else None


def texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list, or a text alone."""
    return tuple(each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str))


def denies(rule: str, tool: str) -> bool:
    """Return whether a rule denies a tool of an MCP server: it names server or tool, with `*` for anything."""
    return tool.startswith(f"{rule}__") or fnmatch.fnmatchcase(tool, re.sub(r"[?[]", r"[\g<0>]", rule))
