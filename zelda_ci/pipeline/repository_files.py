"""The files of one commit, and what a word of a text may mean among them. Pure."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from zelda_ci.execution.manifest.tree import MAX_LINKS
from zelda_ci.files import globs
from zelda_ci.pipeline.mentions import Mention
from zelda_ci.selection.effects import PROGRAM_ENDINGS, is_code, steps

# Of a word that means no file from where it stands, how many files of that name may be meant by mere mention.
MAX_NAMESAKES = 3
PATTERN = re.compile(r"[*?{]|\[")


@dataclass(frozen=True)
class RepositoryFiles:
    """The files of a commit, and what a word may mean among them."""

    modes: Mapping[str, str]
    """Of each file, as git has it."""
    links: Mapping[str, str]
    """Where each link leads, as it is written."""
    folder: str
    """The project's, from the top; empty at the top."""
    _answers: dict[tuple[str, str, bool, str, str], list[str]] = field(default_factory=dict)
    _matches: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    @cached_property
    def folders(self) -> frozenset[str]:
        """All of them, apart from the top."""
        return frozenset(self._contents)

    @cached_property
    def _stems(self) -> frozenset[str]:
        """Names of files and folders, with and without their endings, and without where they lie."""
        names = [*map(posixpath.basename, self.modes), *map(posixpath.basename, self.folders)]
        return frozenset((*names, *(name.partition(".")[0] for name in names)))

    @cached_property
    def _namesakes(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.modes:
            found.setdefault(posixpath.basename(path), []).append(path)
        return found

    def is_file(self, path: str) -> bool:
        return path in self.modes and path not in self.links

    def inside(self, folder: str) -> list[str]:
        """Files below a folder."""
        return self._contents.get(folder, [])

    @cached_property
    def _contents(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.modes:
            for above in [*steps(path)][1:]:
                found.setdefault(above, []).append(path)
        return found

    @cached_property
    def _link_paths(self) -> tuple[str, ...]:
        return tuple(self.links)

    def real(self, path: str) -> str:
        """A path without the links that are on its way."""
        for _ in range(MAX_LINKS if path.startswith(self._link_paths) else 0):
            link = next((step for step in reversed([*steps(path)]) if step in self.links), None)
            if link is None:
                break
            path = posixpath.normpath(posixpath.join(posixpath.dirname(link), self.links[link]) + path[len(link) :])
        return path

    def meant(self, mention: Mention, importer: str) -> list[str]:
        """Files and folders that a word may mean: from the importer's folder, those above it, and the project's."""
        word = mention.word.lstrip("/")
        tail = word.rstrip("/").rpartition("/")[2]
        known = tail.strip(".") == "" or not self._stems.isdisjoint({tail, *tail.split("."), *tail.split(":")[:1]})
        if not word or word.startswith("~") or PATTERN.search(word) or not known:
            return []
        key = (word, mention.how, mention.is_started, posixpath.dirname(importer), posixpath.splitext(importer)[1])
        if key not in self._answers:
            self._answers[key] = list(dict.fromkeys(self._looked_up(word, mention, importer)))
        return self._answers[key]

    def _looked_up(self, word: str, mention: Mention, importer: str) -> Iterator[str]:
        is_run = mention.how == "runs"
        forms = [word, *(_forms(word, importer) if is_run else ())]
        likely = [form for form in forms if form[-1] in "./" or posixpath.basename(form) in self._stems]
        joined = (posixpath.join(base, form) for base in self._bases(importer) for form in likely)
        places = [self.real(posixpath.normpath(place)) for place in joined]
        found = [place for place in places if self.is_file(place)]
        # `import web` is a package in Python alone.
        is_package = mention.is_started and (importer.endswith(".py") or not is_code(importer))
        if "/" in word or is_package or (is_run and "." in word):
            found += [place for place in places if place in self.folders and not self._is_project(place)]
        yield from found
        if not found and ("/" in word or "." in word):
            yield from self._named_elsewhere(likely, is_run=mention.how != "names")

    def _bases(self, importer: str) -> Iterable[str]:
        return dict.fromkeys((*[*steps(importer)][1:], self.folder, ""))

    def _is_project(self, place: str) -> bool:
        return place == self.folder or self.folder.startswith(f"{place}/")

    def _named_elsewhere(self, forms: Iterable[str], *, is_run: bool) -> Iterator[str]:
        """Files of that name elsewhere: a command may have gone there first, or a program have joined the path."""
        for form in forms:
            tail = re.sub(r"^(\.{0,2}/)+", "", form)
            if "." in tail or "/" in tail:
                same = self._namesakes.get(posixpath.basename(tail), ())
                ends = [path for path in same if f"/{path}".endswith(f"/{tail}")]
                if is_run or len(ends) <= MAX_NAMESAKES:
                    yield from filter(self.is_file, ends)

    def matched(self, pattern: str, importer: str) -> Iterator[str]:
        """Files that a pattern with a slash in it means."""
        is_here = pattern.startswith("./")
        pattern = pattern.lstrip("/").removeprefix("./")
        # `*/*` and `**/*.py` are of any text; what a folder begins, means files of the project.
        if not re.match(r"[\w.@-]+/", pattern) and not is_here:
            return
        for base in self._bases(importer):
            head = re.split(r"[*?{\[]", pattern, maxsplit=1)[0].rpartition("/")[0]
            start = posixpath.normpath(posixpath.join(base, head))
            rest = pattern[len(head) :].lstrip("/")
            if start in self.folders and not self._is_project(start):
                if (start, rest) not in self._matches:
                    inside = (
                        path for path in self.inside(start) if globs.matches([f"/{rest}"], path[len(start) + 1 :])
                    )
                    self._matches[start, rest] = list(inside)
                yield from self._matches[start, rest]


def _forms(word: str, importer: str) -> Iterator[str]:
    """What a module, or a program without its ending, may be called."""
    relative = re.fullmatch(r"(\.+)([A-Za-z_][\w.]*)?", word)
    if relative and importer.endswith(".py"):
        word = "../" * (len(relative[1]) - 1) + (relative[2] or ".").replace(".", "/")
    dotted = word.replace(".", "/") if re.fullmatch(r"\w+(\.\w+)+", word) else ""
    if importer.endswith(".go"):
        # A package begins with the name of the module.
        yield from (word[match.end() :] for match in re.finditer("/", word))
    for stem in filter(None, (word, dotted, posixpath.splitext(word)[0] if word.endswith((".js", ".mjs")) else "")):
        yield stem
        yield from (f"{stem}{ending}" for ending in PROGRAM_ENDINGS)
        yield from (f"{stem}/{name}" for name in ("__init__.py", "__main__.py", "index.js", "index.ts", "index.mjs"))
