"""Skills, commands, sub-agents, rules and workflows: the files of a `.claude` folder or a plugin."""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from zelda_ci.domain.kinds import CLAUDE, KINDS, PLUGIN_MANIFEST, SKILL_FILE, ItemKind, Shown
from zelda_ci.domain.manifest import agent, skill
from zelda_ci.execution.manifest.settings import ClaudeSettings, add_hooks
from zelda_ci.execution.manifest.tree import ScanFindings, TreeEntry

try:
    LOADER: Any = yaml.CSafeLoader
except AttributeError:  # PyYAML built without libyaml
    LOADER = yaml.SafeLoader

MAX_FRONT_MATTER_LENGTH = 32_000
MAX_EVENTS = 2_000
MAX_YAML_DEPTH = 20

_HEAD = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^([\w-]+):[ \t]*(.*?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class MarkdownDocument:
    """A Markdown file: what its head says, and its text."""

    fields: dict[str, Any] = field(default_factory=dict)
    body: str = ""

    def text(self, key: str) -> str | None:
        """A field that holds words; anything else there counts as not given."""
        value = self.fields.get(key)
        return value.strip() or None if isinstance(value, str) else None

    def says(self, key: str, *, default: bool) -> bool:
        """A field that says yes or no: as Claude Code reads it, whatever is not one of these words is a no."""
        return str(self.fields.get(key, default)).strip().lower() in ("true", "yes", "on", "1", "1.0")

    def globs(self, key: str) -> tuple[str, ...]:
        """A field that lists globs, or has them in one text with commas between, but not those inside of braces."""
        value = self.fields.get(key)
        listed = value if isinstance(value, list) else _pieces(value) if isinstance(value, str) else []
        return tuple(glob.strip() for glob in listed if isinstance(glob, str) and glob.strip())

    @property
    def first_line(self) -> str | None:
        """What stands for a description where none is given: the first line with words, a heading without its marks."""
        lines = (line.strip().lstrip("#").strip() for line in self.body[:MAX_FRONT_MATTER_LENGTH].splitlines())
        return next((line for line in lines if line), None)


def parse(text: str) -> MarkdownDocument:
    """Head and text of a file; the head must begin on the first line and end."""
    head = _HEAD.match(text)
    if head is None or len(head[1]) > MAX_FRONT_MATTER_LENGTH:
        return MarkdownDocument({}, text)
    return MarkdownDocument(_fields(head[1]), text[head.end() :])


def _fields(head: str) -> dict[str, Any]:
    try:
        _refuse_bombs(head)
        fields = yaml.load(head, Loader=LOADER)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        return dict(_LINE.findall(head))
    if not isinstance(fields, dict):
        return {}
    return {key: value for key, value in fields.items() if isinstance(key, str)}


def _refuse_bombs(head: str) -> None:
    """Repeated and deeply nested values cost little to write and much to build."""
    depth = 0
    for count, event in enumerate(yaml.parse(head, Loader=LOADER)):
        opens = isinstance(event, yaml.CollectionStartEvent)
        depth += opens - isinstance(event, yaml.CollectionEndEvent)
        if count > MAX_EVENTS or depth > MAX_YAML_DEPTH or isinstance(event, yaml.AliasEvent):
            raise ValueError("too much for the head of a Markdown file")


def _pieces(value: str) -> list[str]:
    return re.findall(r"(?:[^,{]|\{[^}]*\}?)+", value)


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

    def add(self, base: str, *, below: str = "") -> None:
        """Add what the `.claude` folder in `base` holds; `below` where it waits for files of that folder."""
        place = SteeringFolder(f"{base}/{CLAUDE}" if base else CLAUDE, base, below)
        self.add_place(place)
        self._rules(place)

    def add_place(self, place: SteeringFolder) -> None:
        """Add what a `.claude` folder or a plugin holds; plugins have no rules."""
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
        facts = self._shown(ItemKind.SKILL, name, file, document, place)
        if entry.name == RESERVED and not place.plugin:
            facts["problem"] = f"the folder name {RESERVED!r} is reserved"
        self.findings.add(
            ItemKind.SKILL,
            name,
            file,
            label=place.named(label) if label and label != entry.name else None,
            paths=_waits(document),
            base=place.base,
            below=place.below,
            **facts,
        )
        self._hooks_of(document, file, skill(name), facts)

    def _shown(
        self, kind: ItemKind, name: str, file: str, document: MarkdownDocument, place: SteeringFolder
    ) -> dict[str, Any]:
        """What the model sees of a skill or command, by its head and by the settings, which know none of plugins."""
        override = None if place.plugin else self.settings.overrides.get(name)
        is_hidden = document.says("disable-model-invocation", default=False) or override == "user-invocable-only"
        described = [document.text("description") or document.first_line, document.text("when_to_use")]
        facts = {
            "description": " ".join(filter(None, described)) or None,
            "announced": document.says("user-invocable", default=True),
            "shown": Shown.HIDDEN if is_hidden else Shown.NAME if override == "name-only" else Shown.DESCRIPTION,
            "owner": place.owner,
        }
        if override == "off":
            return {**facts, "problem": "the project's settings switch it off (skillOverrides)"}
        return {**facts, **({} if place.below else self._claim_name(kind, name, file))}

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
        for file, stem in self._files(place, ItemKind.COMMAND):
            name = place.named(stem)
            document = self._document(ItemKind.COMMAND, name, file)
            if document is None:
                continue
            facts = self._shown(ItemKind.COMMAND, name, file, document, place)
            if place.below:
                facts["problem"] = NESTED_ONLY.format(what="commands")
            self.findings.add(ItemKind.COMMAND, name, file, **facts)
            self._hooks_of(document, file, skill(name), facts)

    def _agents(self, place: SteeringFolder) -> None:
        for file, path in self._files(place, ItemKind.AGENT):
            stem = path.rpartition(":")[2]
            document = self._document(ItemKind.AGENT, place.named(stem), file)
            if document is None:
                continue
            given, description = document.text("name"), document.text("description")
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
        return "a colon in its name is only for sub-agents of plugins" if ":" in (name or "") else None

    def _workflows(self, place: SteeringFolder) -> None:
        """The name is in the code, which nobody here runs: the first that is written down in `meta` counts."""
        for file, stem in self._files(place, ItemKind.WORKFLOW):
            text = self.findings.text(ItemKind.WORKFLOW, place.named(stem), file)
            if text is None or place.below or ":" in stem:
                continue
            found = NAMED.search(text)
            name = place.named(found[2] if found else stem)
            problem = None if found else "its code gives no name in `meta`"
            if not place.plugin and self.settings.overrides.get(name) == "off":
                problem = "the project's settings switch it off (skillOverrides)"
            facts = {"shown": Shown.DESCRIPTION, "owner": place.owner, "problem": problem}
            self.findings.add(ItemKind.WORKFLOW, name, file, **facts)

    def _rules(self, place: SteeringFolder) -> None:
        for file, _ in self._files(place, ItemKind.RULE):
            document = self._document(ItemKind.RULE, file, file)
            if document:
                self.findings.add(
                    ItemKind.RULE,
                    file,
                    file,
                    description=document.first_line,
                    text=document.body.strip(),
                    paths=_waits(document),
                    base=place.base,
                    below=place.below,
                    announced=False,
                )

    def _document(self, kind: ItemKind, name: str, file: str) -> MarkdownDocument | None:
        text = self.findings.text(kind, name, file)
        return None if text is None else parse(text)

    def _claim_name(self, kind: ItemKind, name: str, file: str) -> dict[str, Any]:
        """The file that has the name already, if one has: skills and commands share theirs."""
        group = ItemKind.SKILL if kind is ItemKind.COMMAND else kind
        first = self._names.setdefault((group, name), file)
        if first == file:
            return {}
        return {"problem": f"{first} has the same name and takes its place", "shadowed": True}


def _note(agent: MarkdownDocument) -> str | None:
    """What a sub-agent has in its context beside, or instead of, what the main thread has."""
    parts = [f"it is given the text of the skills {', '.join(named)}"] if (named := agent.globs("skills")) else []
    if agent.says("omitClaudeMd", default=False):
        parts.append("it does not see CLAUDE.md files and rules (omitClaudeMd)")
    if memory := agent.text("memory"):
        parts.append(f"it keeps a memory of its own ({memory})")
    return "; ".join(parts) or None


def _waits(document: MarkdownDocument) -> tuple[str, ...]:
    """The globs of files that it waits for: none where they cover everything."""
    globs = document.globs("paths")
    return () if "**" in globs else globs
