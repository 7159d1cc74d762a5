"""Skills, commands, sub-agents and rules: the Markdown files of a `.claude` folder, with their front matter."""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from zelda_ci.domain.manifest import ItemKind
from zelda_ci.execution.manifest.settings import ClaudeSettings
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
        """A field that says yes or no, also where broken YAML made a word of it."""
        value = str(self.fields.get(key, default)).strip().lower()
        return value == "true" if value in ("true", "false") else default

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


SKILL_FILE = "SKILL.md"
RESERVED = "synced"
NESTED_ONLY = "Claude Code loads {what} only from the .claude folder of the project and of the folders above it"


@dataclass
class Documents:
    """Reads one `.claude` folder after the other, the nearest to the session first; names are taken once."""

    findings: ScanFindings
    settings: ClaudeSettings

    def __post_init__(self) -> None:
        self._names: dict[tuple[ItemKind, str], str] = {}

    def add(self, base: str, *, below: str = "") -> None:
        """Add what the `.claude` folder in `base` holds; `below` where it waits for files of that folder."""
        home = f"{base}/.claude" if base else ".claude"
        self._skills(f"{home}/skills", base, below)
        self._commands(f"{home}/commands", below)
        self._agents(f"{home}/agents", below)
        self._rules(f"{home}/rules", base, below)

    def _skills(self, home: str, base: str, below: str) -> None:
        for entry in self.findings.tree.entries(home):
            if not entry.is_folder:
                self._misplaced(entry)
            elif self.findings.tree.exists(f"{entry.path}/{SKILL_FILE}"):
                self._skill(entry, base, below)
            else:
                self._no_skill(entry)

    def _skill(self, entry: TreeEntry, base: str, below: str) -> None:
        file = f"{entry.path}/{SKILL_FILE}"
        document = self._document(ItemKind.SKILL, entry.name, file)
        if document is None:
            return
        label, globs = document.text("name"), _waits(document)
        self.findings.add(
            ItemKind.SKILL,
            entry.name,
            file,
            label=label if label != entry.name else None,
            description=document.text("description") or document.first_line,
            paths=globs,
            base=base,
            below=below,
            announced=document.says("user-invocable", default=True),
            automatic=not document.says("disable-model-invocation", default=False),
            **self._skill_problem(entry.name, file, below),
        )

    def _skill_problem(self, name: str, file: str, below: str) -> dict[str, Any]:
        if name == RESERVED:
            return {"problem": f"the folder name {RESERVED!r} is reserved"}
        if name in self.settings.skills_off:
            return {"problem": "the project's settings switch it off (skillOverrides)"}
        return {} if below else self._claim_name(ItemKind.SKILL, name, file)

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

    def _commands(self, home: str, below: str) -> None:
        for file in self.findings.tree.files(home, ".md"):
            name = file.removeprefix(f"{home}/").removesuffix(".md").replace("/", ":")
            document = self._document(ItemKind.COMMAND, name, file)
            if document is None:
                continue
            nested = {"problem": NESTED_ONLY.format(what="commands")} if below else None
            self.findings.add(
                ItemKind.COMMAND,
                name,
                file,
                description=document.text("description") or document.first_line,
                announced=document.says("user-invocable", default=True),
                automatic=not document.says("disable-model-invocation", default=False),
                **(nested or self._claim_name(ItemKind.COMMAND, name, file)),
            )

    def _agents(self, home: str, below: str) -> None:
        for file in self.findings.tree.files(home, ".md"):
            stem = file.rpartition("/")[2].removesuffix(".md")
            document = self._document(ItemKind.AGENT, stem, file)
            if document is None:
                continue
            name, description = document.text("name"), document.text("description")
            absent = [key for key, value in (("name", name), ("description", description)) if value is None]
            if absent:
                facts = {"problem": f"its head gives no {' and no '.join(absent)}"}
            elif below:
                facts = {"problem": NESTED_ONLY.format(what="sub-agents")}
            else:
                facts = self._claim_name(ItemKind.AGENT, name or stem, file)
            self.findings.add(ItemKind.AGENT, name or stem, file, description=description, **facts)

    def _rules(self, home: str, base: str, below: str) -> None:
        for file in self.findings.tree.files(home, ".md"):
            document = self._document(ItemKind.RULE, file, file)
            if document:
                self.findings.add(
                    ItemKind.RULE,
                    file,
                    file,
                    description=document.first_line,
                    text=document.body.strip(),
                    paths=_waits(document),
                    base=base,
                    below=below,
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


def _waits(document: MarkdownDocument) -> tuple[str, ...]:
    """The globs of files that it waits for: none where they cover everything."""
    globs = document.globs("paths")
    return () if "**" in globs else globs
