"""Skills, commands, sub-agents, rules and workflows: the files of a `.claude` folder or a plugin."""

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from zelda_ci.domain.kinds import CLAUDE, KINDS, PLUGIN_MANIFEST, SKILL_FILE, ItemKind, Shown, agent, skill
from zelda_ci.execution.manifest.settings import ClaudeSettings, add_hooks
from zelda_ci.execution.manifest.tree import ScanFindings, TreeEntry

MAX_FRONT_MATTER_LENGTH = 32_000
MAX_EVENTS = 2_000
MAX_YAML_DEPTH = 20
# Repeated values, which may hold repeated values.
MAX_ALIASES = 20

_BEGIN = re.compile(r"---\s*\n")
# What Claude Code puts into quotes where a head is no YAML: words with such a sign, unless a carriage return ends them.
_LINE = re.compile(r"^([a-zA-Z_-]+):[ \t]+(?!(?:\".*\"|'.*'|\[.*\])$)([^\s][^\r\n]*)$", re.MULTILINE)
_TABS = re.compile(r"^\t+", re.MULTILINE)
_SIGN = re.compile(r"[{}[\]*&#!|>%@`]|: ")


class _HeadLoader(yaml.CSafeLoader):
    """YAML 1.2 as Claude Code reads it, where yes and no are words, and dates too."""


_HeadLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _begins in (
    ("null", r"~|null|Null|NULL|", [*"~nN", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+", [*"-+.0123456789"]),
    ("merge", r"<<", ["<"]),
):
    _HeadLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _begins)


def _number(_: Any, node: Any) -> float:
    number = float(int(node.value, 0) if node.value[:2] in ("0x", "0o") else node.value)
    return int(number) if number.is_integer() else number


_HeadLoader.add_constructor("tag:yaml.org,2002:float", _number)


@dataclass(frozen=True)
class MarkdownDocument:
    """A Markdown file: what its head says, and its text."""

    fields: dict[str, Any] = field(default_factory=dict)
    body: str = ""

    def text(self, key: str) -> str | None:
        """A field that holds words, a number, or yes or no; a list or table counts as not given."""
        value = self.fields.get(key)
        words = str(value).lower() if isinstance(value, bool) else str(value)
        return words.strip() or None if isinstance(value, str | int | float) else None

    def words(self, key: str) -> str | None:
        """A field that holds words as they stand there, and nothing else."""
        value = self.fields.get(key)
        return value or None if isinstance(value, str) else None

    def says(self, key: str, *, default: bool) -> bool:
        """A field that says yes or no: as Claude Code reads it, whatever is not one of these words is a no."""
        return str(self.fields.get(key, default)).strip().lower() in ("true", "yes", "on", "1")

    def listed(self, key: str) -> tuple[str, ...]:
        """A field that lists texts, each of which may have several with commas between, but not inside of braces."""
        value = self.fields.get(key)
        pieces = (piece for each in (value if isinstance(value, list) else [value]) for piece in _pieces(each))
        return tuple(piece.strip() for piece in pieces if piece.strip())

    @property
    def paths(self) -> tuple[str, ...]:
        """Globs of the files that it waits for: none where all of them cover everything."""
        globs = [glob for each in self.listed("paths") if (glob := each.removesuffix("/**"))]
        return () if all(glob == "**" for glob in globs) else tuple(globs)

    @property
    def first_line(self) -> str | None:
        """What stands for a description where none is given: the first line with words, a heading without its marks."""
        lines = (line.strip().lstrip("#").strip() for line in self.body[:MAX_FRONT_MATTER_LENGTH].split("\n"))
        return next((line for line in lines if line), None)


def parse(text: str) -> MarkdownDocument:
    """Head and text of a file; the head begins on the first line, and ends at the next three dashes of any line."""
    begin = _BEGIN.match(text)
    end = text.find("---", begin.end()) if begin else -1
    if begin is None or not begin.end() <= end <= MAX_FRONT_MATTER_LENGTH:
        return MarkdownDocument({}, text)
    return MarkdownDocument(_fields(text[begin.end() : end]), text[end + 3 :].lstrip())


def _fields(head: str) -> dict[str, Any]:
    """The head as YAML; else as YAML once it is repaired; else nothing."""
    repaired = _LINE.sub(_quoted, _TABS.sub(lambda tabs: "  " * len(tabs[0]), head))
    for text in (head, repaired):
        with suppress(yaml.YAMLError, ValueError, OverflowError, RecursionError):
            _refuse_bombs(text)
            fields = yaml.load(text, Loader=_HeadLoader)  # noqa: S506 - a safe loader
            return {key: fields[key] for key in fields if isinstance(key, str)} if isinstance(fields, dict) else {}
    return {}


def _quoted(line: re.Match[str]) -> str:
    return f"{line[1]}: {json.dumps(line[2], ensure_ascii=False)}" if _SIGN.search(line[2]) else line[0]


def _refuse_bombs(head: str) -> None:
    """Repeated and deeply nested values cost little to write and much to build."""
    depth = aliases = 0
    for count, event in enumerate(yaml.parse(head, Loader=_HeadLoader)):
        aliases += isinstance(event, yaml.AliasEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if count > MAX_EVENTS or depth > MAX_YAML_DEPTH or aliases > MAX_ALIASES:
            raise ValueError("too much for the head of a Markdown file")


def _pieces(value: object) -> list[str]:
    return re.findall(r"(?:[^,{]|\{[^}]*\}?)+", value) if isinstance(value, str) else []


RESERVED = "synced"
NESTED_ONLY = "Claude Code loads {what} only from the .claude folder of the project and of the folders above it"
NAMED = re.compile(r"""\bname\s*:\s*(["'`])(.+?)\1""")


@dataclass(frozen=True)
class SteeringFolder:
    """A folder that holds folders of steering: `.claude`, or a plugin."""

    home: str
    base: str = ""
    """The folder that its globs count from."""
    below: str = ""
    """The folder whose files it waits for."""
    plugin: str = ""
    """The name of the plugin, which stands before all names in it."""
    owner: str | None = None
    """The plugin as settings name it."""
    folders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By kind's folder, files and folders that a plugin names instead or as well."""

    def within(self, kind: ItemKind) -> Sequence[str]:
        """Where files of a kind lie."""
        folder = KINDS[kind].folder
        return self.folders.get(folder, (f"{self.home}/{folder}",))

    def named(self, name: str) -> str:
        """A name as the session knows it."""
        return f"{self.plugin}:{name}" if self.plugin else name


@dataclass
class Documents:
    """Reads one folder of steering after the other, the nearest to the session first; names are taken once."""

    findings: ScanFindings
    settings: ClaudeSettings

    def __post_init__(self) -> None:
        self._names: dict[tuple[ItemKind, str], str] = {}
        self._files_taken: dict[str, str] = {}

    def add(self, base: str, *, below: str = "") -> None:
        """Add what the `.claude` folder in `base` holds; `below` where it waits for files of that folder."""
        self.add_place(SteeringFolder(f"{base}/{CLAUDE}" if base else CLAUDE, base, below))

    def add_place(self, place: SteeringFolder) -> None:
        """Add what a `.claude` folder or a plugin holds."""
        self._skills(place)
        self._commands(place)
        self._agents(place)
        self._workflows(place)

    def _skills(self, place: SteeringFolder) -> None:
        for home in place.within(ItemKind.SKILL):
            for entry in self.findings.tree.entries(home):
                if not entry.is_folder:
                    self._misplaced(entry)
                elif self.findings.tree.exists(f"{entry.path}/{SKILL_FILE}"):
                    self._skill(entry, place)
                elif not self.findings.tree.exists(f"{entry.path}/{PLUGIN_MANIFEST}"):
                    self._no_skill(entry)

    def _skill(self, entry: TreeEntry, place: SteeringFolder) -> None:
        file, name = f"{entry.path}/{SKILL_FILE}", place.named(entry.name)
        document = self._document(ItemKind.SKILL, name, file)
        if document is None:
            return
        label = document.text("name")
        facts = self._shown(ItemKind.SKILL, name, file, document, place, label)
        if entry.name == RESERVED and not place.plugin:
            facts["problem"] = f"the folder name {RESERVED!r} is reserved"
        self.findings.add(
            ItemKind.SKILL,
            name,
            file,
            label=place.named(label) if label and label != entry.name else None,
            paths=document.paths,
            base=place.base,
            below=place.below,
            **facts,
        )
        self._hooks_of(document, file, skill(name), facts)

    def _shown(
        self,
        kind: ItemKind,
        name: str,
        file: str,
        document: MarkdownDocument,
        place: SteeringFolder,
        label: str | None = None,
    ) -> dict[str, Any]:
        """What the model sees of a skill or command, by its head and by the settings, which know none of plugins."""
        described = [document.text("description") or document.first_line, document.text("when_to_use")]
        facts = {
            "description": " ".join(filter(None, described)) or None,
            "announced": document.says("user-invocable", default=True),
            **self._listing(place, name, label, is_hidden=document.says("disable-model-invocation", default=False)),
        }
        return facts if facts["problem"] or place.below else {**facts, **self._claim_name(kind, name, file)}

    def _listing(
        self, place: SteeringFolder, name: str, label: str | None = None, *, is_hidden: bool = False
    ) -> dict[str, Any]:
        """How settings have a skill, command or workflow listed; their overrides know none of plugins."""
        override = None if place.plugin else self.settings.overrides.get(name)
        shown = Shown.NAME if override == "name-only" else Shown.DESCRIPTION
        problem = "the project's settings switch it off (skillOverrides)" if override == "off" else None
        facts = {"shown": shown, "owner": place.owner, "problem": problem}
        facts |= self._denied("Skill", Shown.DENIED, name, label and place.named(label))
        if is_hidden or override == "user-invocable-only":
            facts["shown"] = Shown.HIDDEN
        return facts

    def _denied(self, call: str, shown: Shown, *names: str | None) -> dict[str, Any]:
        """What a rule against calls makes of what is called so; a tool that is denied whole, the model does not have.

        Args:
            call: The tool that calls it.
            shown: What the model is told of it where the rule names it.
            names: Of what is called.
        """
        denial = self.settings.denial(call, *names)
        if denial is None:
            return {}
        rule, is_whole = denial
        return {"shown": Shown.HIDDEN if is_whole else shown, "denied": (rule,)}

    def _hooks_of(self, document: MarkdownDocument, file: str, owner: str, facts: Mapping[str, Any]) -> None:
        """Hooks in the head of a skill or sub-agent, which run once that was called."""
        hooks = document.fields.get("hooks")
        if isinstance(hooks, dict) and not facts.get("problem"):
            add_hooks(self.findings, replace(self.settings, hooks=hooks), file, owner=owner)

    def _misplaced(self, entry: TreeEntry) -> None:
        if entry.name.endswith(".md"):
            problem = f"a skill is a folder with a {SKILL_FILE} in it, not a file"
            self.findings.add(ItemKind.SKILL, entry.name.removesuffix(".md"), entry.path, problem=problem)

    def _no_skill(self, folder: TreeEntry) -> None:
        """A folder without SKILL.md, and what may have been meant by it."""
        tree = self.findings.tree
        inside = tree.entries(folder.path)
        nested = [entry for entry in inside if entry.is_folder and tree.exists(f"{entry.path}/{SKILL_FILE}")]
        for entry in nested:
            problem = "it lies one folder too deep: skills are read from .claude/skills/<name>/SKILL.md only"
            self.findings.add(ItemKind.SKILL, entry.name, f"{entry.path}/{SKILL_FILE}", problem=problem)
        if not nested:
            file = next((entry for entry in inside if entry.name.lower() == SKILL_FILE.lower()), folder)
            problem = f"its folder holds no {SKILL_FILE}"
            if file is not folder:
                problem += f", and {file.name} is not the same"
            self.findings.add(ItemKind.SKILL, folder.name, file.path, problem=problem)

    def _files(self, place: SteeringFolder, kind: ItemKind) -> Iterator[tuple[str, str]]:
        """Files of a kind, each with the name that its path makes."""
        (ending,) = KINDS[kind].files
        for home in place.within(kind):
            if home.endswith(ending):
                yield home, posixpath.basename(home).removesuffix(ending)
            for file in self.findings.tree.files(home, ending):
                yield file, file.removeprefix(f"{home}/").removesuffix(ending).replace("/", ":")

    def _commands(self, place: SteeringFolder) -> None:
        """Where a folder has a SKILL.md, in whatever case, it is the command, and nothing else in the folder is."""
        files = dict(self._files(place, ItemKind.COMMAND))
        named = {posixpath.dirname(file): file for file in sorted(files, reverse=True) if _is_skill(file)}
        for file, stem in files.items():
            if named.get(folder := posixpath.dirname(file), file) != file:
                continue
            name = place.named(stem.rpartition(":")[0] or posixpath.basename(folder) if _is_skill(file) else stem)
            document = self._document(ItemKind.COMMAND, name, file)
            if document is None:
                continue
            facts = self._shown(ItemKind.COMMAND, name, file, document, place)
            if place.below:
                facts["problem"] = NESTED_ONLY.format(what="commands")
            self.findings.add(ItemKind.COMMAND, name, file, **facts)
            self._hooks_of(document, file, skill(name), facts)

    def _agents(self, place: SteeringFolder) -> None:
        # Of several with one name, Claude Code takes the last by path.
        for file, path in sorted(self._files(place, ItemKind.AGENT), reverse=True):
            stem = path.rpartition(":")[2]
            document = self._document(ItemKind.AGENT, place.named(stem), file)
            if document is None:
                continue
            given, description = document.words("name"), document.words("description")
            # In a plugin, folders are part of the name.
            name = place.named(f"{path.removesuffix(stem)}{given or stem}") if place.plugin else given or stem
            is_main = name == self.settings.agent and not place.below
            facts = {
                "problem": self._agent_problem(given, description, place),
                "shown": Shown.DESCRIPTION,
                "note": _note(document),
                "owner": place.owner,
                "is_main": is_main,
                "text": document.body.strip() if is_main else None,
                **self._denied("Agent", Shown.HIDDEN, name),
            }
            if not facts["problem"]:
                facts |= self._claim_name(ItemKind.AGENT, name, file)
            self.findings.add(ItemKind.AGENT, name, file, description=description, **facts)
            if not place.plugin:
                self._hooks_of(document, file, agent(name), facts)

    def _agent_problem(self, name: str | None, description: str | None, place: SteeringFolder) -> str | None:
        absent = [key for key, value in (("name", name), ("description", description)) if value is None]
        if absent:
            return f"its head gives no {' and no '.join(absent)}"
        if place.below:
            return NESTED_ONLY.format(what="sub-agents")
        if name and name.startswith("-"):
            return "its name begins with a dash"
        return "a colon in its name is only for sub-agents of plugins" if ":" in (name or "") else None

    def _workflows(self, place: SteeringFolder) -> None:
        """The name is in the code, which nobody here runs: the first that is written down in `meta` counts."""
        for file, stem in self._files(place, ItemKind.WORKFLOW):
            text = self.findings.text(ItemKind.WORKFLOW, place.named(stem), file)
            if text is None or place.below or ":" in stem:
                continue
            found = NAMED.search(text)
            name = place.named(found[2] if found else stem)
            facts = self._listing(place, name)
            if not found:
                facts["problem"] = "its code gives no name in `meta`"
            self.findings.add(ItemKind.WORKFLOW, name, file, **facts)

    def _document(self, kind: ItemKind, name: str, file: str) -> MarkdownDocument | None:
        text = self.findings.text(kind, name, file)
        return None if text is None else parse(text)

    def _claim_name(self, kind: ItemKind, name: str, file: str) -> dict[str, Any]:
        """The file that has the name already, if one has: skills and commands share theirs."""
        group = ItemKind.SKILL if kind is ItemKind.COMMAND else kind
        if group is ItemKind.SKILL:
            real = self._files_taken.setdefault(self.findings.tree.real(file), file)
            if real != file:
                return {"problem": f"it is the same file as {real}", "shadowed": True}
        first = self._names.setdefault((group, name), file)
        if first == file:
            return {}
        return {"problem": f"{first} has the same name and takes its place", "shadowed": True}


def _is_skill(file: str) -> bool:
    return posixpath.basename(file).lower() == SKILL_FILE.lower()


def _note(agent: MarkdownDocument) -> str | None:
    """What a sub-agent has in its context beside, or instead of, what the main thread has."""
    parts = [f"it is given the text of the skills {', '.join(named)}"] if (named := agent.listed("skills")) else []
    if agent.fields.get("omitClaudeMd") in (True, "true"):
        parts.append("it does not see CLAUDE.md files and rules (omitClaudeMd)")
    if memory := agent.text("memory"):
        parts.append(f"it keeps a memory of its own ({memory})")
    return "; ".join(parts) or None
