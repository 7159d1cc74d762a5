"""What the files that steer can reach: each file that they name, run or import, and what these lead to. Pure.

A word is a reference if a file or folder of the project answers to it. Whether the session follows one that a text
merely names, or tells to run, stored trials say; what Claude Code itself starts, and the code that this imports, is
felt by whoever feels the file that starts it.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import zip_longest
from posixpath import basename, dirname, join, normpath, splitext
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

from zelda_ci.domain.kinds import CLAUDE, KINDS, PLUGIN_PARTS, SKILL_FILE, ItemKind, may_steer
from zelda_ci.execution.manifest.front_matter import mentioned, parse
from zelda_ci.execution.manifest.tree import MAX_LINKS
from zelda_ci.files import globs
from zelda_ci.selection.effects import PROGRAM_ENDINGS, Effect, FileChange, FileText, is_code, steering_effect

# Programs that run the file, module or folder that follows.
INTERPRETERS = frozenset({
    "python", "python3", "node", "deno", "bun", "tsx", "ts-node", "bash", "sh", "zsh", "dash", "ruby", "perl", "php",
    "pwsh", "source", ".", "go", "cargo", "-m", "exec",
})  # fmt: skip
# Those that are words of everyday English only run something where code is written.
ENGLISH = frozenset({"node", "source", ".", "go", "-m", "exec"})
# What the files say that these programs run.
RUNNERS = {
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun", "bunx"), ("package.json",)),
    **dict.fromkeys(("uv", "uvx", "poetry", "pdm", "hatch"), ("pyproject.toml",)),
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    "nox": ("noxfile.py",),
    "tox": ("tox.ini",),
    "pre-commit": (".pre-commit-config.yaml",),
    "docker": ("Dockerfile", "docker-compose.yml", "compose.yaml", "compose.yml"),
}
# Of these, files that change for many other reasons.
MANIFESTS = frozenset({"package.json", "pyproject.toml"})
DOCUMENT_ENDINGS = (".md", ".mdx", ".txt", ".rst", ".adoc")
# What recipes name and no program needs.
_OTHERS = (*DOCUMENT_ENDINGS, *MANIFESTS, ".lock")
SHELL_ENDINGS = (".sh", ".bash", ".zsh", ".ps1")
RECIPES = frozenset(name for names in RUNNERS.values() for name in names)
# Beyond these, a folder that a program names is where it works, and not what it reads.
MAX_DATA_FILES = 50
# What one file that steers leads to; what lies further concerns those who touched what leads there.
MAX_FOLLOWED = 200
# Of a word that means no file from where it stands, how many files of that name may be meant by mere mention.
MAX_NAMESAKES = 3
PATTERN = re.compile(r"[*?{\[]")
_MODULES = ("__init__.py", "__main__.py", "index.js", "index.ts", "index.mjs")
_PLUGIN_FILE = re.compile(r"(?:(.*)/)?\.claude-plugin/[^/]+")
_READ_OF_STEERING = re.compile(r"\.md$|(^|/)(hooks|settings|settings\.local|plugin|\.mcp|\.lsp)\.json$")
_CALLED = re.compile(r"/SKILL\.md$|(^|/)(agents|commands)/")
_OTHER_LANGUAGE = re.compile(r"#!.*\b(python|node|deno|bun|ruby|perl|php)")
# Stands for a sub-agent of a name: where its file lies, another may say so.
_AGENTS = f"{CLAUDE}/{KINDS[ItemKind.AGENT].folder}"
_WORDS = {"runs": "run", "reads": "read", "imports": "imported"}

_LINK = re.compile(r"\]\(\s*<?([^)>\n]{1,300})>?\s*\)")
_URL = re.compile(r"\b[a-z][a-z+]{1,10}://[^\s)>\"']*")
_VARIABLE = re.compile(r"\$\{[\w.]+(?::?[-=+?]([^${}]*)|[^${}]*)\}|\$\w+|%\w+%")
_BACKSLASH = re.compile(r"\\(?=[\w.])")
_CLAUSES = re.compile(r"&&|\|\|?|;(?:\s|$)|\$\(")
_SPLIT = re.compile(r"[\s\"'`;|&()<>=:\[\]!]+|,(?![^{}\s]*\})")
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import|import|use)[ \t]+(\([^()]*\)|[\w., \t]+)", re.MULTILINE)
_REQUIRE = re.compile(r"\b(?:require|require_relative|load|source)[ (]+[\"']([\w./-]+)")
_STRING = re.compile(r"[\"'`]([^\"'`\n]*)[\"'`]")
_BRACES = re.compile(r"\$?\{[^{}]*\}/?")
_VALUE = re.compile(r"=\s*\"([^\"\n]*)\"")
_BOLD = re.compile(r"^[*_]{1,3}(?=\w)|(?<=\w)\*{2,3}$|(?<=\.\w\w)[*_]$|(?<=\.\w\w\w)[*_]$")
_RUN_VERB = re.compile(r"(?:\b(?:run|runs|execute|call|invoke|start|launch|use)\s*|!)$", re.IGNORECASE)


class Mention(NamedTuple):
    """A word that may be a file, a folder, a module, a pattern, or a program of `RUNNERS`."""

    word: str
    how: Literal["names", "reads", "runs", "imports"]
    """`names` only tells a reader of it; `reads` is what a program may open; `imports` is put in its place."""
    is_started: bool = False
    """Whether an interpreter stands right before it, so that it need not look like a path."""
    target: str = ""
    """Of a program of `RUNNERS`, the word behind it."""


def described(path: str, text: str) -> FileText:
    """What of a file says when it is loaded."""
    if not path.endswith(".md"):
        return FileText()
    document = parse(text)
    head = text[: len(text) - len(document.body)]
    # Of skills and commands without a description, Claude Code shows the first line of the text.
    if not document.text("description") and (path.endswith(SKILL_FILE) or "/commands/" in path):
        head += f"\0{document.first_line}"
    return FileText(head, document.paths)


class RepositoryFiles:
    """The files of a commit, and what a word may mean among them."""

    def __init__(self, paths: Collection[str], links: Mapping[str, str], folder: str) -> None:
        self.paths, self.links, self.folder = paths, links, folder
        """All files; where each link leads, as it is written; the project's folder, from the top."""
        self.inside: dict[str, list[str]] = {}
        """Of each folder apart from the top, the files below it."""
        self._namesakes: defaultdict[str, list[str]] = defaultdict(list)
        for path in paths:
            self._namesakes[basename(path)].append(path)
            for above in globs.upwards(path)[1:-1]:
                self.inside.setdefault(above, []).append(path)
        names = {*self._namesakes, *map(basename, self.inside)}
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
            path = normpath(join(dirname(link), self.links[link]) + path[len(link) :])
        return path

    def meant(self, mention: Mention, importer: str) -> list[str]:
        """Files and folders that a word may mean: from the importer's folder, those above it, and the project's."""
        return self._found(mention, dirname(importer), splitext(importer)[1])

    def matched(self, pattern: str, importer: str) -> list[str]:
        """Files that a pattern with a slash in it means."""
        relative = pattern.lstrip("/").removeprefix("./")
        # `*/*` and `**/*.py` are of any text; what a folder begins, means files of the project.
        if not re.match(r"[\w.@-]+/", relative) and not pattern.startswith("./"):
            return []
        head = PATTERN.split(relative, maxsplit=1)[0].rpartition("/")[0]
        rest = relative[len(head) :].lstrip("/")
        starts = (normpath(join(base, head)) for base in self._bases(dirname(importer)))
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
        if not word or word.startswith("~"):
            return []
        forms = [word, *(_forms(word, ending) if is_run else ())]
        likely = [form for form in forms if form[-1] in "./" or basename(form) in self._stems]
        joined = (join(base, form) for base in self._bases(folder) for form in likely)
        places = [self.real(normpath(place)) for place in joined]
        found = [place for place in places if self.is_file(place)]
        # `import web` is a package in Python alone.
        is_package = mention.is_started and (ending == ".py" or not is_code(ending))
        if "/" in word or is_package or (is_run and "." in word):
            found += filter(self._is_part, places)
        if not found and ("/" in word or "." in word):
            # Files of that name elsewhere: a command may have gone there first, or a program have joined the path.
            for tail in (re.sub(r"^(\.{0,2}/)+", "", form) for form in likely):
                same = self._namesakes.get(basename(tail), []) if "." in tail or "/" in tail else []
                ends = [path for path in same if f"/{path}".endswith(f"/{tail}")]
                found += filter(self.is_file, ends if mention.how != "names" or len(ends) <= MAX_NAMESAKES else ())
        return list(dict.fromkeys(found))


class Graph:
    """Which file leads to which, as far as texts were looked into."""

    def __init__(self, tree: RepositoryFiles, recipes: Mapping[str, str]) -> None:
        self.tree, self._recipes = tree, recipes
        """`recipes` are the texts of Makefiles and the like."""
        self._steering = set[str]()
        """Files that steer although neither name nor place says so: a link or a plugin leads there."""
        self._start: dict[str, str] = {}
        """What every suite feels from the outset, with words on how."""
        self._effects: dict[str, Effect] = {}
        """Of the files that steer, whom a change of the text concerns."""
        self._advice = set[str]()
        """Documents that are always loaded, or that nobody has to follow."""
        self._follows: defaultdict[str, dict[str, str]] = defaultdict(dict)
        """By file, what whoever feels it feels, too; with words on how."""
        self._names: defaultdict[str, dict[str, bool]] = defaultdict(dict)
        """By file, the files that it only names; and whether only a folder or pattern that holds them does."""
        for path in tree.paths:
            if path in tree.links and may_steer(path):
                self._add_steering(tree.real(path), f"{path} leads there")
            elif match := _PLUGIN_FILE.fullmatch(path):
                home = match[1] or "."
                parts = (".",) if f"/{CLAUDE}/{KINDS[ItemKind.SKILL].folder}/" in f"/{home}/" else PLUGIN_PARTS
                for part in parts:
                    self._add_steering(normpath(f"{home}/{part}"), "part of a plugin")

    def _add_steering(self, place: str, how: str) -> None:
        """A file or folder whose files steer, wherever it lies; links in it lead on."""
        tree, places = self.tree, [place]
        for each in places:
            if each not in (".", "", tree.folder):
                self._start.setdefault(each, how)
                inside = [path for path in (each, *tree.inside.get(each, ())) if path in tree.paths]
                self._steering.update(filter(_READ_OF_STEERING.search, inside))
                further = {tree.real(path) for path in inside if path in tree.links} - self._start.keys()
                places += sorted(further) if len(places) <= MAX_LINKS else ()

    def steers(self, path: str) -> bool:
        return may_steer(path) or path in self._steering

    def look_into(self, path: str, text: str) -> None:
        steers, is_document = self.steers(path), path.endswith(DOCUMENT_ENDINGS)
        if steers:
            own = described(path, text)
            self._effects[path] = steering_effect(FileChange(path, own, own), self.tree.folder)
        if is_document:
            # A skill of a plugin, or that a link leads to, is called.
            if not steers or (self._is_always(path) and not (path in self._steering and _CALLED.search(path))):
                self._advice.add(path)
            if steers:
                self._note_agents(path, text)
            words = words_in_document(text)
        elif steers and path.endswith(".json"):
            if re.search(r'"agent"\s*:\s*"', text):
                self._follow(path, f"{dirname(path)}/agents", f"chosen by {path}")
            words = words_in_settings(text)
        elif path.endswith(SHELL_ENDINGS) or not (is_code(path) or _OTHER_LANGUAGE.match(text)):
            words = words_in_program(text)
        else:
            words = words_in_code(text, path)
        for mention in dict.fromkeys(words):
            if mention.word in RUNNERS and (steers or not is_document):
                self._note_runner(path, mention)
            else:
                self._note(path, mention)

    def _note(self, path: str, mention: Mention, how: str = "") -> None:
        """Note the files that a word means: those that it stands for, and those that its folder or pattern holds."""
        # Whether a trial did what such a text asks for, its commands say.
        is_advice = path in self._advice and mention.how != "imports" and not how
        is_named, how = mention.how == "names" or is_advice, how or f"{_WORDS.get(mention.how)} by {path}"
        is_pattern, is_package = PATTERN.search(mention.word), mention.how == "runs" and mention.is_started
        places = [] if is_pattern else self.tree.meant(mention, path)
        for place in places:
            is_folder, parent = place in self.tree.inside, dirname(place)
            if is_named and not is_folder:
                self._name(path, place)
            elif not is_named and (is_package or not is_folder):
                self._follow(path, place, how)
                if path.endswith(".json") and self.steers(path) and basename(parent) != CLAUDE:
                    self._follow(path, parent, f"beside a program that {path} runs")
        inside = [self.tree.inside.get(place, []) for place in places]
        for files in [self.tree.matched(mention.word, path)] if is_pattern else inside:
            is_data = not is_named and (is_package or len(files) <= MAX_DATA_FILES)
            for file in files:
                # Of a package its code is run; of another folder a program reads the data.
                if is_data and (is_package or not is_code(file) or (is_pattern and file.endswith(SHELL_ENDINGS))):
                    self._follow(path, file, how)
                else:
                    self._name(path, file, is_listed=True)

    def _note_runner(self, path: str, mention: Mention) -> None:
        """Note a program that runs what a file says: that file, and the programs in it."""
        # Commands do not say which files these are, so trials cannot tell who ran them.
        for name in RUNNERS[mention.word]:
            for file in self.tree.meant(Mention(name, "names"), path):
                if mention.how == "names" or (name in MANIFESTS and path.endswith(DOCUMENT_ENDINGS)):
                    self._name(path, file)
                else:
                    self._follow(path, file, f"run by {path}")
                recipe = self._recipes.get(file, "")
                # "Make sure" is no target; in "run make lint" there may be one.
                target = mention.target and rf"^\W*{re.escape(mention.target)}\W*[:=]"
                is_run = mention.how != "names" or (target and re.search(target, recipe, re.MULTILINE))
                for each in dict.fromkeys(words_in_recipe(name, recipe)) if is_run else ():
                    self._note(path, each, f"run by {file} for {path}")

    def _note_agents(self, path: str, text: str) -> None:
        """Skills that an agent has from the start, and agents that a skill runs in."""
        document = parse(text)
        if "/agents/" in path:
            for name in (document.words("name") or "", basename(path).removesuffix(".md")):
                self._follow(f"{_AGENTS}/{name}", path, f"the agent {name}")
            skills = tuple(f"/skills/{name.rpartition(':')[2]}" for name in document.listed("skills"))
            for place in (it for it in self.tree.inside if it.endswith(skills)) if skills else ():
                self._follow(path, place, f"preloaded by {path}")
        elif agent := document.text("agent"):
            self._follow(path, f"{_AGENTS}/{agent.rpartition(':')[2]}", f"forked by {path}")

    def _follow(self, path: str, place: str, how: str) -> None:
        if place in (path, ".", "", self.tree.folder):
            return
        # What a recipe runs: of a text, and not by Claude Code itself.
        is_recipe = path in self._advice and not how.startswith("imported")
        (self._start if is_recipe else self._follows[path]).setdefault(place, how)

    def _name(self, path: str, file: str, *, is_listed: bool = False) -> None:
        """Note what is only named; of what a folder or pattern holds, whether nothing else names it."""
        if file != path:
            self._names[path][file] = is_listed and self._names[path].get(file, True)

    def followed(self, path: str) -> Iterator[str]:
        """Of what whoever feels a file feels: programs; code leads to code, and only texts and what steers to more."""
        follows, is_text = self._follows.get(path, {}), self.steers(path) or path.endswith(DOCUMENT_ENDINGS)
        for place in follows:
            if _is_program(place) or (is_text and basename(place) not in RECIPES):
                yield place

    def named(self, path: str) -> Iterator[str]:
        """Programs and documents that a document names."""
        for place, is_listed in self._names.get(path, {}).items() if path.endswith(DOCUMENT_ENDINGS) else ():
            if not is_listed and (_is_program(place) or place.endswith(DOCUMENT_ENDINGS)):
                yield place

    def _is_always(self, path: str) -> bool:
        return path in self._steering or self._effects[path].scope == "all"

    def found(self) -> tuple[dict[str, str], dict[str, tuple[Effect, ...]]]:
        """Files and folders that every suite feels, with words on how, and effects of others, by file."""
        felt, inside = dict(self._start), self.tree.inside
        effects, leading = defaultdict[str, list[Effect]](list), defaultdict[str, set[str]](set)
        for path, effect in self._effects.items():
            spread = self._spread(path)
            if self._is_always(path):
                felt = {**spread, **felt}
                continue
            # What a skill or a sub-agent names is part of it; code that a pattern or folder holds is the work itself.
            units = [it for it in (path, *spread) if it in self._effects and self._effects[it].scope == "unit"]
            named = {row for unit in units for row in self._names.get(unit, {}).items()}
            files = {file for place in spread for file in (place, *inside.get(place, ()))}
            files |= {file for file, is_listed in named if not (is_listed and is_code(file))}
            for file in files:
                effects[file].append(replace(effect, path=file, unit=effect.unit or path))
                leading[file].add(file)
        for file, is_listed in {row for files in self._names.values() for row in files.items()}:
            leading[file].update(globs.upwards(file)[:-1] if is_listed and not is_code(file) else [file])
        for path, follows in self._follows.items():
            for place in follows if not self.steers(path) else ():
                for file in (place, *inside.get(place, ())):
                    leading[file] |= {file, path}
        return felt, {
            file: (*effects[file], Effect(file, "read", f"read {file} or what leads there", read=frozenset(places)))
            for file, places in leading.items()
        }

    def _spread(self, start: str) -> dict[str, str]:
        """All that whoever feels a file feels, too: the nearest first, as far as there is a bound."""
        found = dict(self._follows.get(start, {}))
        waiting = [*found]
        for path in waiting:
            for place, how in self._follows.get(path, {}).items():
                if place not in found and len(found) < MAX_FOLLOWED:
                    found[place] = how
                    waiting.append(place)
        return found


def _is_program(path: str) -> bool:
    name = basename(path)
    return is_code(path) or ("." not in name and name not in RECIPES)


def _forms(word: str, ending: str) -> Iterator[str]:
    """What a module, or a program without its ending, may be called in a file with an ending."""
    relative = re.fullmatch(r"(\.+)([A-Za-z_][\w.]*)?", word)
    if relative and ending == ".py":
        word = "../" * (len(relative[1]) - 1) + (relative[2] or ".").replace(".", "/")
    dotted = word.replace(".", "/") if re.fullmatch(r"\w+(\.\w+)+", word) else ""
    if ending == ".go":
        # A package begins with the name of the module.
        yield from (word[match.end() :] for match in re.finditer("/", word))
    for stem in filter(None, (word, dotted, splitext(word)[0] if word.endswith((".js", ".mjs")) else "")):
        yield from (stem, *(f"{stem}{end}" for end in PROGRAM_ENDINGS), *(f"{stem}/{name}" for name in _MODULES))


# --- words of a text that may name files, with how the text uses them -------------------------------------------------


def words_in_document(text: str) -> Iterator[Mention]:
    document = parse(text)
    yield from words_in_program(text[: len(text) - len(document.body)])
    yield from (Mention(name, "imports") for name in mentioned(text))
    yield from (Mention(unquote(target.strip()), "names") for target in _LINK.findall(document.body))
    for words, kind in _segments(_URL.sub(" ", _expanded(document.body))):
        for clause in _CLAUSES.split(words):
            yield from _in_clause(_words(clause), is_code=kind != "prose", is_run=kind == "run")


def words_in_program(text: str) -> Iterator[Mention]:
    """Words of a shell script, a configuration, or commands that are carried out."""
    for line in _URL.sub(" ", _expanded(text)).splitlines():
        for clause in _CLAUSES.split(line):
            for mention in _in_clause(_words(clause), is_code=True):
                if mention.how == "runs":
                    yield mention
                elif "/" in mention.word or "." in mention.word:
                    yield mention._replace(how="reads")


def words_in_code(text: str, path: str) -> Iterator[Mention]:
    """Modules that code imports, and paths in its strings."""
    for source, names in _IMPORT.findall(text):
        begin = source if not source.strip(".") else f"{source}."
        for name in ("", *re.findall(r"[\w.]+", re.sub(r"\bas\s+\w+", "", names))):
            yield Mention(f"{begin}{name}" if name else source, "runs", is_started=not (source and name))
    yield from (Mention(name, "runs", is_started=True) for name in _REQUIRE.findall(text))
    for string in dict.fromkeys(_STRING.findall(text)):
        for word in _words(_BRACES.sub("", string)) if "://" not in string else ():
            if "/" in word or "." in word:
                yield Mention(word, "runs" if "/" in word else "reads", is_started=path.endswith(".go"))


def words_in_settings(text: str) -> Iterator[Mention]:
    """Words of a JSON file whose commands are split into program and arguments."""
    try:
        settings = json.loads(text)
        if isinstance(settings, dict):
            # These allow something, and start nothing.
            settings.pop("permissions", None)
        lines = "\n".join(_lines(settings))
    except (ValueError, RecursionError):
        return
    yield from words_in_program(lines)


def _expanded(text: str) -> str:
    """With variables left out, or by their defaults where they have some; and with slashes of one kind."""
    for _ in range(3):
        text = _VARIABLE.sub(lambda match: match[1] or "", text)
    return _BACKSLASH.sub("/", text)


def words_in_recipe(name: str, text: str) -> Iterator[Mention]:
    """Programs that a file of `RUNNERS` has them run, for any of its targets, and configuration and data for these."""
    try:
        if name in MANIFESTS:
            own = json.loads(text)["scripts"].values() if name == "package.json" else _VALUE.findall(text)
            # An entry point is a module with a function.
            text = "\n".join(re.sub(r"^([\w.]+):\w+$", r"python -m \1", value) for value in own)
    except (ValueError, RecursionError, LookupError, AttributeError, TypeError):
        return
    for mention in words_in_program(text):
        if mention.how == "runs" or not (is_code(mention.word) or mention.word.endswith(_OTHERS)):
            yield mention


def _segments(body: str) -> Iterator[tuple[str, Literal["prose", "code", "run"]]]:
    """Lines of a body in pieces of prose and of code; of code, whether the words before it say that it is run."""
    is_fenced = False
    for line in body.splitlines():
        if re.match(r"\s*(```|~~~)", line):
            is_fenced = not is_fenced
        elif is_fenced or line.lstrip().startswith("$ "):
            yield line.lstrip().removeprefix("$ "), "code"
        else:
            prose, *pieces = re.split(r"`+", line)
            yield prose, "prose"
            for code, after in zip_longest(pieces[::2], pieces[1::2], fillvalue=""):
                yield code, "run" if _RUN_VERB.search(prose) else "code"
                yield after, "prose"
                prose = after


def _words(clause: str) -> list[str]:
    pieces = (piece for piece in _SPLIT.split(clause) if piece)
    plain = (_BOLD.sub("", piece.rstrip(".,;?")) or piece for piece in pieces)
    bare = (piece.removeprefix("@").partition("#")[0] or piece for piece in plain)
    return [unquote(word) if "%" in word else word for word in bare]


def _in_clause(words: list[str], *, is_code: bool, is_run: bool = False) -> Iterator[Mention]:
    """Words of one command or one line of prose. In prose, only what follows an interpreter at once is run by it."""
    started = running = False
    for number, word in enumerate(words):
        is_program = (
            running
            or word.startswith("./")
            or word.endswith(SHELL_ENDINGS)
            or (is_run and number == 0)
            or (is_code and number == 0 and "/" in word and (len(words) > 1 or "." not in basename(word)))
        )
        target = words[number + 1] if word in RUNNERS and number + 1 < len(words) else ""
        yield Mention(word, "runs" if is_program or (target and is_code) else "names", started, target)
        is_interpreter = word in INTERPRETERS and (is_code or word not in ENGLISH)
        is_between = started and (word.startswith("-") or word == "run")
        started = is_interpreter or is_between
        running = started or (is_code and running)


def _lines(value: Any) -> Iterator[str]:
    """The strings of a JSON value; those of one object, with its lists of strings, on one line."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    words = (word for it in inner for word in (it if isinstance(it, list) else [it]))
    yield " ".join(word for word in words if isinstance(word, str))
    for it in inner:
        yield from _lines(it)
