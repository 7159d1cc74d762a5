"""The files of one commit, and what a word of a text may mean among them. Pure."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache

from zelda_ci.execution.manifest.tree import MAX_LINKS
from zelda_ci.files import globs
from zelda_ci.selection.effects import PROGRAM_ENDINGS, is_code
from zelda_ci.selection.mentions import Mention

# Of a word that means no file from where it stands, how many files of that name may be meant by mere mention.
MAX_NAMESAKES = 3
PATTERN = re.compile(r"[*?{\[]")
_MODULES = ("__init__.py", "__main__.py", "index.js", "index.ts", "index.mjs")


class RepositoryFiles:
    """The files of a commit, and what a word may mean among them."""

    def __init__(self, paths: Collection[str], links: Mapping[str, str], folder: str) -> None:
        self.paths, self.links, self.folder = paths, links, folder
        """All files; where each link leads, as it is written; the project's folder, from the top."""
        self.inside: dict[str, list[str]] = {}
        """Of each folder apart from the top, the files below it."""
        self._namesakes: defaultdict[str, list[str]] = defaultdict(list)
        for path in paths:
            self._namesakes[posixpath.basename(path)].append(path)
            for above in globs.upwards(path)[1:-1]:
                self.inside.setdefault(above, []).append(path)
        names = {*self._namesakes, *map(posixpath.basename, self.inside)}
        self._stems = names | {name.partition(".")[0] for name in names}
        self._found, self._matched = cache(self._search), cache(self._match)

    def is_file(self, path: str) -> bool:
        return path in self.paths and path not in self.links

    def real(self, path: str) -> str:
        """A path without the links that are on its way."""
        for _ in range(MAX_LINKS if path.startswith(tuple(self.links)) else 0):
            link = next((step for step in reversed(globs.upwards(path)) if step in self.links), None)
            if link is None:
                break
            path = posixpath.normpath(posixpath.join(posixpath.dirname(link), self.links[link]) + path[len(link) :])
        return path

    def meant(self, mention: Mention, importer: str) -> list[str]:
        """Files and folders that a word may mean: from the importer's folder, those above it, and the project's."""
        return self._found(mention, posixpath.dirname(importer), posixpath.splitext(importer)[1])

    def matched(self, pattern: str, importer: str) -> list[str]:
        """Files that a pattern with a slash in it means."""
        relative = pattern.lstrip("/").removeprefix("./")
        # `*/*` and `**/*.py` are of any text; what a folder begins, means files of the project.
        if not re.match(r"[\w.@-]+/", relative) and not pattern.startswith("./"):
            return []
        head = PATTERN.split(relative, maxsplit=1)[0].rpartition("/")[0]
        rest = relative[len(head) :].lstrip("/")
        starts = (posixpath.normpath(posixpath.join(base, head)) for base in self._bases(posixpath.dirname(importer)))
        return [path for start in starts if self._is_part(start) for path in self._matched(start, rest)]

    def _match(self, start: str, pattern: str) -> list[str]:
        return [path for path in self.inside[start] if globs.matches([f"/{pattern}"], path[len(start) + 1 :])]

    def _bases(self, folder: str) -> Iterable[str]:
        return dict.fromkeys((*globs.upwards(folder)[:-1], self.folder, ""))

    def _is_part(self, place: str) -> bool:
        """Whether it is a folder, and neither the project's nor one above it."""
        return place in self.inside and place != self.folder and not self.folder.startswith(f"{place}/")

    def _search(self, mention: Mention, folder: str, ending: str) -> list[str]:
        word, is_run = mention.word.lstrip("/"), mention.how == "runs"
        if not word or word.startswith("~") or PATTERN.search(word):
            return []
        forms = [word, *(_forms(word, ending) if is_run else ())]
        likely = [form for form in forms if form[-1] in "./" or posixpath.basename(form) in self._stems]
        joined = (posixpath.join(base, form) for base in self._bases(folder) for form in likely)
        places = [self.real(posixpath.normpath(place)) for place in joined]
        found = [place for place in places if self.is_file(place)]
        # `import web` is a package in Python alone.
        is_package = mention.is_started and (ending == ".py" or not is_code(ending))
        if "/" in word or is_package or (is_run and "." in word):
            found += filter(self._is_part, places)
        if not found and ("/" in word or "." in word):
            # Files of that name elsewhere: a command may have gone there first, or a program have joined the path.
            for tail in (re.sub(r"^(\.{0,2}/)+", "", form) for form in likely):
                same = self._namesakes.get(posixpath.basename(tail), []) if "." in tail or "/" in tail else []
                ends = [path for path in same if f"/{path}".endswith(f"/{tail}")]
                found += filter(self.is_file, ends if mention.how != "names" or len(ends) <= MAX_NAMESAKES else ())
        return list(dict.fromkeys(found))


def _forms(word: str, ending: str) -> Iterator[str]:
    """What a module, or a program without its ending, may be called in a file with an ending."""
    relative = re.fullmatch(r"(\.+)([A-Za-z_][\w.]*)?", word)
    if relative and ending == ".py":
        word = "../" * (len(relative[1]) - 1) + (relative[2] or ".").replace(".", "/")
    dotted = word.replace(".", "/") if re.fullmatch(r"\w+(\.\w+)+", word) else ""
    if ending == ".go":
        # A package begins with the name of the module.
        yield from (word[match.end() :] for match in re.finditer("/", word))
    for stem in filter(None, (word, dotted, posixpath.splitext(word)[0] if word.endswith((".js", ".mjs")) else "")):
        yield from (stem, *(f"{stem}{end}" for end in PROGRAM_ENDINGS), *(f"{stem}/{name}" for name in _MODULES))
