"""What the files that steer can reach: each file that they name, run or import, and what these lead to. Pure.

A word is a reference if a file or folder of the project answers to it. Whether the session follows one that is merely
named, stored trials tell; what is run, imported or linked is followed by whoever feels the file that does so.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from zelda_ci.compare.effects import (
    CLAUDE,
    FileText,
    ProjectFiles,
    Reach,
    is_code,
    may_steer,
    scope_of,
)
from zelda_ci.execution.manifest.documents import parse
from zelda_ci.execution.manifest.tree import MAX_LINKS
from zelda_ci.pipeline.mentions import MANIFESTS, RUNNERS, Mention, in_document, in_program, in_settings, recipes
from zelda_ci.pipeline.repository_files import PATTERN, RepositoryFiles, folders_above

DOCUMENT_ENDINGS = (".md", ".mdx", ".txt", ".rst", ".adoc")
RECIPES = frozenset(name for names in RUNNERS.values() for name in names)
PLUGIN_FILE = re.compile(r"(?:(.*)/)?\.claude-plugin/[^/]+")
PLUGIN_PARTS = (
    "skills", "agents", "commands", "hooks", "output-styles", "workflows", "monitors", "bin",
    "hooks.json", "settings.json", ".mcp.json", ".lsp.json",
)  # fmt: skip
# Beyond these, a folder that a program names is where it works, and not what it reads.
MAX_DATA_FILES = 50
MAX_EDGES = 500_000

_READ_OF_STEERING = re.compile(r"\.md$|(^|/)(hooks|settings|settings\.local|plugin|\.mcp|\.lsp)\.json$")


class TooManyError(Exception):
    """More is reached than anybody wants to follow."""


@dataclass
class Graph:
    """Which file leads to which, as far as texts were looked into."""

    tree: RepositoryFiles
    project: ProjectFiles
    steering: set[str] = field(default_factory=set)
    """Files that steer although neither name nor place says so: a link or a plugin leads there."""
    start: dict[str, str] = field(default_factory=dict)
    """What every suite feels from the outset, with words on how."""
    texts: dict[str, FileText] = field(default_factory=dict)
    """Of the files that steer, when they are loaded."""
    recipes: dict[str, str] = field(default_factory=dict)
    """The texts of Makefiles and the like."""
    _follows: dict[str, dict[str, str]] = field(default_factory=dict)
    """By file, what whoever feels it feels, too; with words on how."""
    _names: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)
    """By file, what it only names; and the folders on the way, where it names a folder."""
    _agents: dict[str, set[str]] = field(default_factory=dict)
    _forks: list[tuple[str, str]] = field(default_factory=list)
    _imported: set[str] = field(default_factory=set)
    _edges: int = 0

    def __post_init__(self) -> None:
        for path in self.tree.modes:
            if path in self.tree.links and may_steer(path):
                self._add_steering(self.tree.real(path), f"{path} leads there")
            elif match := PLUGIN_FILE.fullmatch(path):
                home = match[1] or "."
                parts = (".",) if f"/{home}/".find(f"/{CLAUDE}/skills/") >= 0 else PLUGIN_PARTS
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

    def look_into(self, path: str, text: str, described: FileText) -> set[str]:
        """Note what a file leads to; returns the files to look into next."""
        if self.steers(path):
            self.texts[path] = described
        if path.endswith(".json") and self.steers(path):
            mentions = in_settings(text)
            self._main_agent(path, text)
        elif path.endswith(DOCUMENT_ENDINGS):
            mentions = in_document(text)
            self._note_agents(path, text)
        else:
            mentions = in_program(text, has_imports=is_code(path) or "." not in posixpath.basename(path))
        self._add_all(path, mentions)
        # Of these only the recipes that are asked for count.
        own = self._follows.get(path, ())
        within = (file for place in own if place in self.tree.folders for file in self._follows.get(place, ()))
        followed = {file for file in (*own, *within) if posixpath.basename(file) not in RECIPES}
        documents = {file for file in self._names.get(path, ()) if file.endswith(DOCUMENT_ENDINGS)}
        return {file for file in followed | documents if self.tree.is_file(file)}

    def _add_all(self, path: str, mentions: Iterable[Mention], how: str = "") -> None:
        for mention in dict.fromkeys(mentions):
            if mention.arguments and not how and (not is_code(path) or path.endswith(SHELL)):
                self._add_runner(path, mention)
            elif PATTERN.search(mention.word):
                matched = list(dict.fromkeys(self.tree.matched(mention.word, path)))
                is_place = len(matched) > MAX_DATA_FILES
                self._add_folder(path, matched, mention._replace(how="names") if is_place else mention, how)
            else:
                for place in self.tree.meant(mention, path):
                    self._add(path, place, mention, how)

    def _add(self, path: str, place: str, mention: Mention, how: str) -> None:
        if place in self.tree.folders:
            if mention.how == "runs" and mention.is_started:
                self._follow(path, place, how or f"run by {path}")
                if place not in self._follows:
                    self._follows[place] = dict.fromkeys(filter(is_code, self.tree.inside(place)), f"in {place}")
            else:
                inside = self.tree.inside(place)
                is_place = path.endswith(DOCUMENT_ENDINGS) or len(inside) > MAX_DATA_FILES
                named = mention._replace(how="names") if is_place else mention
                self._add_folder(path, inside, named, how, named=place)
        elif mention.how == "names" and self.tree.modes.get(place) != "100755":
            self._name(path, place)
        else:
            if mention.how == "imports":
                self._imported.add(place)
            self._follow(path, place, how or f"{_WORDS[mention.how]} by {path}")
            if path.endswith(".json") and self.steers(path) and posixpath.basename(posixpath.dirname(place)) != CLAUDE:
                self._follow(path, posixpath.dirname(place), f"beside a program that {path} runs")

    def _add_folder(self, path: str, files: list[str], mention: Mention, how: str, named: str = "") -> None:
        """Of a folder that is named, and of a pattern, documents and data; code is the project's own work."""
        for file in files:
            is_work = is_code(file) and (named or (mention.how != "runs" and not file.endswith(SHELL)))
            if mention.how == "names" or is_work:
                start = named or posixpath.dirname(file)
                between = frozenset(step for step in folders_above(file) if f"{step}/".startswith(f"{start}/"))
                self._name(path, file, between if not is_work or self.is_unit(path) else frozenset())
            else:
                self._follow(path, file, how or f"{_WORDS[mention.how]} by {path}")

    def _add_runner(self, path: str, mention: Mention) -> None:
        """A program that runs what a file says: that file, and what its recipes for the targets name."""
        for name in RUNNERS[mention.word]:
            for file in self.tree.meant(Mention(name, "names"), path):
                found = recipes(self.recipes.get(file, ""), mention.arguments)
                if (mention.how == "runs" or found) and not (name in MANIFESTS and path.endswith(DOCUMENT_ENDINGS)):
                    self._follow(path, file, f"run by {path}")
                else:
                    self._name(path, file)
                self._add_all(path, in_program(found), f"run by {file} for {path}")

    def _follow(self, path: str, place: str, how: str) -> None:
        if place not in (path, ".", "", self.tree.folder):
            self._follows.setdefault(path, {}).setdefault(place, how)
            self._count()

    def _name(self, path: str, place: str, between: frozenset[str] = frozenset()) -> None:
        if place != path:
            own = self._names.setdefault(path, {})
            own[place] = own.get(place, frozenset()) | between
            self._count()

    def _count(self) -> None:
        self._edges += 1
        if self._edges > MAX_EDGES:
            raise TooManyError

    def _main_agent(self, path: str, text: str) -> None:
        if re.search(r'"agent"\s*:\s*"', text):
            self._follow(path, f"{posixpath.dirname(path)}/agents", f"chosen by {path}")

    def _note_agents(self, path: str, text: str) -> None:
        """Skills that an agent has from the start, and agents that a skill runs in."""
        if not self.steers(path):
            return
        document = parse(text)
        if "/agents/" in path:
            names = {document.text("name") or "", posixpath.basename(path).removesuffix(".md")}
            for name in names:
                self._agents.setdefault(name, set()).add(path)
            skills = {name.rpartition(":")[2] for name in document.globs("skills")}
            for place in (it for it in self.tree.folders if it.endswith(tuple(f"/skills/{name}" for name in skills))):
                self._follow(path, place, f"preloaded by {path}")
        elif agent := document.text("agent"):
            self._forks.append((path, agent.rpartition(":")[2]))

    def is_unit(self, path: str) -> bool:
        """Whether a file is one of a skill, command or sub-agent, whose text waits for a call."""
        return path in self.texts and scope_of(path, self.texts[path], self.project) == "unit"

    def felt(self) -> dict[str, str]:
        """Files and folders that every suite feels, with words on how."""
        self._join_forks()
        found = dict(self.start)
        always = [path for path in self.texts if path in self.steering or self._scope(path) == "all"]
        self._spread(always, found)
        return found

    def reached(self, felt: Mapping[str, str]) -> dict[str, Reach]:
        """Other files and folders that some suites may feel."""
        how: dict[str, str] = {}
        loaders: dict[str, dict[str, FileText]] = {}
        via: dict[str, set[str]] = {}
        for loader in (path for path in self.texts if path not in self.steering and self._scope(path) != "all"):
            for place, words in self._loaded_by(loader).items():
                loaders.setdefault(place, {})[loader] = self.texts[loader]
                how.setdefault(place, words)
        for path, places in self._names.items():
            for place, between in places.items():
                via.setdefault(place, set()).update(between)
                how.setdefault(place, f"named by {path}")
        self._follow_touched(felt, how, via)
        return {
            place: Reach(words, loaders.get(place, {}), frozenset(via.get(place, ())))
            for place, words in how.items()
            if place not in felt
        }

    def _loaded_by(self, loader: str) -> Mapping[str, str]:
        """What whoever feels a file that steers feels, too; what a skill or a sub-agent names is part of it."""
        own: dict[str, str] = {}
        self._spread([loader], own)
        named: dict[str, str] = {}
        for unit in filter(self.is_unit, (loader, *own)):
            # Code of a folder that is named is the work itself, and no part of it.
            exact = (it for it, between in self._names.get(unit, {}).items() if not (between and is_code(it)))
            named |= dict.fromkeys(exact, f"named by {unit}")
        return {**named, **own}

    def _follow_touched(self, felt: Mapping[str, str], how: dict[str, str], via: dict[str, set[str]]) -> None:
        """Add what a session feels that touches, by itself, a file that is reached: what that one runs and imports."""
        reached = list(dict.fromkeys((*how, *felt)))
        for path in reached:
            if self.steers(path):
                continue
            own: dict[str, str] = {}
            self._spread([path], own)
            for place in own:
                via.setdefault(place, set()).add(path)
            new = {**self._follows.get(path, {}), **own}.keys() - how.keys() - felt.keys()
            how.update((place, f"run by {path}") for place in sorted(new))
            reached += sorted(new)

    def _scope(self, path: str) -> str | None:
        return scope_of(path, self.texts[path], self.project)

    def _join_forks(self) -> None:
        for path, agent in self._forks:
            for file in self._agents.get(agent, ()):
                self._follow(path, file, f"the agent of {path}")
        self._forks.clear()

    def _spread(self, start: Iterable[str], found: dict[str, str]) -> None:
        """Add all that whoever feels these feels, too."""
        waiting, seen = list(start), set(start)
        while waiting:
            for place, how in self._led_to(waiting.pop()).items():
                found.setdefault(place, how)
                if place not in seen:
                    seen.add(place)
                    waiting.append(place)

    def _led_to(self, path: str) -> Mapping[str, str]:
        """What whoever feels a file feels, too: of a document that is merely read, only what it imports."""
        follows = self._follows.get(path, {})
        if not path.endswith(DOCUMENT_ENDINGS) or self.steers(path) or path in self._imported:
            return follows
        return {place: how for place, how in follows.items() if place in self._imported}


SHELL = (".sh", ".bash")
_WORDS = {"runs": "run", "reads": "read", "imports": "imported", "names": "run"}
