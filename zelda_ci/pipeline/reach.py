"""What the files that steer can reach: each file that they name, run or import, and what these lead to. Pure.

A word is a reference if a file or folder of the project answers to it. Whether the session follows one that a text
merely names, or tells to run, stored trials say; what Claude Code itself starts, and the code that this imports, is
felt by whoever feels the file that starts it.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from zelda_ci.domain.kinds import CLAUDE, KINDS, PLUGIN_PARTS, ItemKind, may_steer
from zelda_ci.execution.manifest.documents import parse
from zelda_ci.execution.manifest.tree import MAX_LINKS
from zelda_ci.pipeline.mentions import (
    MANIFESTS,
    RUNNERS,
    Mention,
    in_code,
    in_document,
    in_program,
    in_reading,
    in_settings,
    recipes,
)
from zelda_ci.pipeline.repository_files import PATTERN, RepositoryFiles
from zelda_ci.selection.effects import FileChange, FileText, ProjectFiles, Reach, is_code, steering_effect

DOCUMENT_ENDINGS = (".md", ".mdx", ".txt", ".rst", ".adoc")
SHELL = (".sh", ".bash")
RECIPES = frozenset(name for names in RUNNERS.values() for name in names)
PLUGIN_FILE = re.compile(r"(?:(.*)/)?\.claude-plugin/[^/]+")
# Beyond these, a folder that a program names is where it works, and not what it reads.
MAX_DATA_FILES = 50
# What one file that steers leads to; what lies further concerns those who touched what leads there.
MAX_FOLLOWED = 200

_READ_OF_STEERING = re.compile(r"\.md$|(^|/)(hooks|settings|settings\.local|plugin|\.mcp|\.lsp)\.json$")
_OTHER_LANGUAGE = re.compile(r"#!.*\b(python|node|deno|bun|ruby|perl|php)")


@dataclass
class Graph:
    """Which file leads to which, as far as texts were looked into."""

    tree: RepositoryFiles
    project: ProjectFiles
    recipes: Mapping[str, str]
    """The texts of Makefiles and the like."""
    steering: set[str] = field(default_factory=set)
    """Files that steer although neither name nor place says so: a link or a plugin leads there."""
    start: dict[str, str] = field(default_factory=dict)
    """What every suite feels from the outset, with words on how."""
    texts: dict[str, FileText] = field(default_factory=dict)
    """Of the files that steer, when they are loaded."""
    _follows: dict[str, dict[str, str]] = field(default_factory=dict)
    """By file, what whoever feels it feels, too; with words on how."""
    _names: dict[str, dict[str, bool]] = field(default_factory=dict)
    """By file, the files and folders that it only names; and whether only a pattern does."""
    _starts: dict[str, str] = field(default_factory=dict)
    """By file that is followed, the file that steers from which it was found first."""
    _looked_into: dict[str, set[str]] = field(default_factory=dict)
    _scopes: dict[str, str] = field(default_factory=dict)
    _agents: dict[str, set[str]] = field(default_factory=dict)
    _forks: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for path in self.tree.modes:
            if path in self.tree.links and may_steer(path):
                self._add_steering(self.tree.real(path), f"{path} leads there")
            elif match := PLUGIN_FILE.fullmatch(path):
                home = match[1] or "."
                parts = (".",) if f"/{CLAUDE}/{KINDS[ItemKind.SKILL].folder}/" in f"/{home}/" else PLUGIN_PARTS
                for part in parts:
                    self._add_steering(posixpath.normpath(f"{home}/{part}"), "part of a plugin")

    def _add_steering(self, place: str, how: str) -> None:
        """A file or folder whose files steer, wherever it lies; links in it lead on."""
        places = [place]
        for each in places:
            if each in (".", "", self.tree.folder):
                continue
            self.start.setdefault(each, how)
            inside = [path for path in (each, *self.tree.inside(each)) if path in self.tree.modes]
            self.steering.update(path for path in inside if _READ_OF_STEERING.search(path))
            further = {self.tree.real(path) for path in inside if path in self.tree.links}
            places += [path for path in sorted(further) if path not in self.start and len(places) <= MAX_LINKS]

    def steers(self, path: str) -> bool:
        return may_steer(path) or path in self.steering

    def look_into(self, path: str, text: str, described: FileText, *, is_felt: bool) -> Iterator[tuple[str, bool]]:
        """Note what a file leads to; gives the files to look into next, and whether who feels this one feels them."""
        if self.steers(path):
            self.texts[path] = described
        self._add_all(path, self._mentions(path, text, is_felt=is_felt))
        if is_felt:
            yield from ((place, True) for place in self._further(path))
        for place, is_listed in self._names.get(path, {}).items() if path.endswith(DOCUMENT_ENDINGS) else ():
            if not is_listed and (_is_program(place) or place.endswith(DOCUMENT_ENDINGS)):
                yield place, False

    def _mentions(self, path: str, text: str, *, is_felt: bool) -> Iterator[Mention]:
        if self.steers(path) and path.endswith(".json"):
            if re.search(r'"agent"\s*:\s*"', text):
                self._follow(path, f"{posixpath.dirname(path)}/agents", f"chosen by {path}")
            return in_settings(text)
        if path.endswith(DOCUMENT_ENDINGS):
            if self.steers(path):
                self._note_agents(path, text)
                return in_document(text)
            return in_reading(text, has_imports=is_felt)
        is_shell = path.endswith(SHELL) or not (is_code(path) or _OTHER_LANGUAGE.match(text))
        return in_program(text) if is_shell else in_code(text, path)

    def _further(self, path: str) -> Iterator[str]:
        """Of what a file leads to, programs: code leads to code, and only texts and what steers to anything else."""
        follows, is_text = self._follows.get(path, {}), self.steers(path) or path.endswith(DOCUMENT_ENDINGS)
        within = (file for place in follows if place in self.tree.folders for file in self._follows.get(place, ()))
        for place in (*follows, *within):
            if _is_program(place) or (is_text and posixpath.basename(place) not in RECIPES):
                start = self._starts.setdefault(place, self._starts.get(path, path))
                looked_into = self._looked_into.setdefault(start, set())
                if len(looked_into) < MAX_FOLLOWED:
                    looked_into.add(place)
                    yield place

    def _add_all(self, path: str, mentions: Iterable[Mention], how: str = "") -> None:
        is_always = self._is_always_document(path)
        for mention in dict.fromkeys(mentions):
            if mention.arguments and not how and (not is_code(path) or path.endswith(SHELL)):
                self._add_runner(path, mention)
                continue
            # Whether a trial did what a text tells, its commands say.
            known = mention._replace(how="names") if is_always and mention.is_told else mention
            if PATTERN.search(mention.word):
                self._add_files(path, list(self.tree.matched(mention.word, path)), known, how)
            else:
                for place in self.tree.meant(mention, path):
                    self._add(path, place, known, how)

    def _add(self, path: str, place: str, mention: Mention, how: str) -> None:
        if place in self.tree.folders:
            if mention.how == "runs" and mention.is_started:
                self._follow(path, place, how or f"run by {path}")
                self._follows.setdefault(place, dict.fromkeys(filter(is_code, self.tree.inside(place)), f"in {place}"))
            else:
                self._add_files(path, self.tree.inside(place), mention, how, place)
        elif mention.how == "names":
            self._name(path, place)
        else:
            self._follow(path, place, how or f"{_WORDS[mention.how]} by {path}")
            if path.endswith(".json") and self.steers(path) and posixpath.basename(posixpath.dirname(place)) != CLAUDE:
                self._follow(path, posixpath.dirname(place), f"beside a program that {path} runs")

    def _add_files(self, path: str, files: list[str], mention: Mention, how: str, folder: str = "") -> None:
        """Of a folder that a program names, and of a pattern, documents and data; code is the project's own work."""
        is_place = mention.how == "names" or len(files) > MAX_DATA_FILES or (folder and path.endswith(DOCUMENT_ENDINGS))
        if folder:
            self._name(path, folder)
        for file in files if not (folder and is_place) else ():
            is_work = is_code(file) and (folder or (mention.how != "runs" and not file.endswith(SHELL)))
            if not is_place and not is_work:
                self._follow(path, file, how or f"{_WORDS[mention.how]} by {path}")
            elif not folder:
                self._name(path, file, is_listed=True)

    def _add_runner(self, path: str, mention: Mention) -> None:
        """A program that runs what a file says: that file, and what its recipes for the targets name.

        Commands do not say which files these are, so trials cannot tell who ran them.
        """
        for name in RUNNERS[mention.word]:
            for file in self.tree.meant(Mention(name, "names"), path):
                found = recipes(self.recipes.get(file, ""), mention.arguments)
                if (mention.how == "runs" or found) and not (name in MANIFESTS and path.endswith(DOCUMENT_ENDINGS)):
                    self._follow(path, file, f"run by {path}")
                else:
                    self._name(path, file)
                self._add_all(path, in_program(found), f"run by {file} for {path}")

    def _follow(self, path: str, place: str, how: str) -> None:
        if place in (path, ".", "", self.tree.folder):
            return
        if self._is_always_document(path) and not how.startswith("imported"):
            # What a recipe runs: of a text, and not by Claude Code itself.
            self.start.setdefault(place, how)
        else:
            self._follows.setdefault(path, {}).setdefault(place, how)

    def _name(self, path: str, place: str, *, is_listed: bool = False) -> None:
        """Note what is only named; of what is in a list, whether the list is all that names it."""
        if place != path:
            own = self._names.setdefault(path, {})
            own[place] = is_listed and own.get(place, True)

    def _note_agents(self, path: str, text: str) -> None:
        """Skills that an agent has from the start, and agents that a skill runs in."""
        document = parse(text)
        if "/agents/" in path:
            for name in {document.words("name") or "", posixpath.basename(path).removesuffix(".md")}:
                self._agents.setdefault(name, set()).add(path)
            skills = tuple(f"/skills/{name.rpartition(':')[2]}" for name in document.listed("skills"))
            for place in (it for it in self.tree.folders if skills and it.endswith(skills)):
                self._follow(path, place, f"preloaded by {path}")
        elif agent := document.text("agent"):
            self._forks.append((path, agent.rpartition(":")[2]))

    def is_unit(self, path: str) -> bool:
        """Whether a file is one of a skill, command or sub-agent, whose text waits for a call."""
        return path in self.texts and self._scope(path) == "unit"

    def _is_always_document(self, path: str) -> bool:
        """Whether it is a text that is always loaded: a skill of a plugin, or that a link leads to, is called."""
        is_called = path in self.steering and re.search(r"/SKILL\.md$|(^|/)(agents|commands)/", path)
        return path in self.texts and path.endswith(DOCUMENT_ENDINGS) and not is_called and self._is_always(path)

    def _is_always(self, path: str) -> bool:
        return path in self.steering or self._scope(path) == "all"

    def _scope(self, path: str) -> str:
        if path not in self._scopes:
            text = self.texts[path]
            self._scopes[path] = steering_effect(FileChange(path, text, text), self.project).scope
        return self._scopes[path]

    def felt(self) -> dict[str, str]:
        """Files and folders that every suite feels, with words on how."""
        for path, agent in self._forks:
            for file in self._agents.get(agent, ()):
                self._follow(path, file, f"the agent of {path}")
        found = dict(self.start)
        for path in filter(self._is_always, self.texts):
            found = {**self._spread(path), **found}
        return found

    def reached(self, felt: Mapping[str, str]) -> dict[str, Reach]:
        """Other files and folders that some suites may feel."""
        how: dict[str, str] = {}
        loaders: dict[str, dict[str, FileText]] = {}
        via: dict[str, set[str]] = {}
        for loader in (path for path in self.texts if not self._is_always(path)):
            for place, words in self._loaded_by(loader).items():
                loaders.setdefault(place, {})[loader] = self.texts[loader]
                how.setdefault(place, words)
        for path, places in self._names.items():
            for place, is_listed in places.items():
                if is_listed and not is_code(place):
                    via.setdefault(place, set()).add(posixpath.dirname(place))
                how.setdefault(place, f"named by {path}")
        for path, follows in self._follows.items():
            for place, words in follows.items() if not self.steers(path) else ():
                via.setdefault(place, set()).add(path)
                how.setdefault(place, words)
        followed = {place for follows in self._follows.values() for place in follows}
        is_listing = self.tree.folders - followed
        return {
            place: Reach(words, loaders.get(place, {}), frozenset(via.get(place, ())), is_listing=place in is_listing)
            for place, words in how.items()
            if place not in felt
        }

    def _loaded_by(self, loader: str) -> Mapping[str, str]:
        """What whoever feels a file that steers feels, too; what a skill or a sub-agent names is part of it."""
        own = self._spread(loader)
        named: dict[str, str] = {}
        for unit in filter(self.is_unit, (loader, *own)):
            # Code that a pattern names is the work itself, and no part of it.
            exact = (it for it, is_listed in self._names.get(unit, {}).items() if not (is_listed and is_code(it)))
            named |= dict.fromkeys(exact, f"named by {unit}")
        return {**named, **own}

    def _spread(self, start: str) -> dict[str, str]:
        """All that whoever feels a file feels, too: the nearest first, as far as there is a bound."""
        found = dict(self._follows.get(start, {}))
        waiting = [*found]
        for path in waiting:
            new = [(it, how) for it, how in self._follows.get(path, {}).items() if it not in found]
            found.update(new[: max(0, MAX_FOLLOWED - len(found))])
            waiting += (it for it, _ in new if it in found)
        return found


def _is_program(path: str) -> bool:
    name = posixpath.basename(path)
    return is_code(path) or ("." not in name and name not in RECIPES)


_WORDS = {"runs": "run", "reads": "read", "imports": "imported"}
