"""Skills, commands, sub-agents and rules: the Markdown files of a `.claude` folder."""

from dataclasses import dataclass
from typing import Any

from zelda_ci.domain.manifest import ItemKind
from zelda_ci.execution.manifest import front_matter
from zelda_ci.execution.manifest.findings import Findings
from zelda_ci.execution.manifest.front_matter import Document
from zelda_ci.execution.manifest.settings import Settings
from zelda_ci.execution.manifest.tree import Entry

SKILL_FILE = "SKILL.md"
RESERVED = "synced"
NESTED_ONLY = "Claude Code loads {what} only from the .claude folder of the project and of the folders above it"


@dataclass
class Documents:
    """Reads one `.claude` folder after the other, the nearest to the session first; names are taken once."""

    findings: Findings
    settings: Settings

    def __post_init__(self) -> None:
        self._taken: dict[tuple[ItemKind, str], str] = {}

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

    def _skill(self, entry: Entry, base: str, below: str) -> None:
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
        return {} if below else self._take(ItemKind.SKILL, name, file)

    def _misplaced(self, entry: Entry) -> None:
        if entry.name.endswith(".md"):
            problem = f"a skill is a folder with a {SKILL_FILE} in it, not a file"
            self.findings.add(ItemKind.SKILL, entry.name.removesuffix(".md"), entry.path, problem=problem)

    def _no_skill(self, folder: Entry) -> None:
        """A folder without SKILL.md, and what may have been meant by it."""
        tree = self.findings.tree
        inside = tree.entries(folder.path)
        nested = [entry for entry in inside if entry.is_folder and tree.exists(f"{entry.path}/{SKILL_FILE}")]
        for entry in nested:
            problem = "it lies one folder too deep: skills are read from .claude/skills/<name>/SKILL.md only"
            self.findings.add(ItemKind.SKILL, entry.name, f"{entry.path}/{SKILL_FILE}", problem=problem)
        if not nested:
            named = next((entry for entry in inside if entry.name.lower() == SKILL_FILE.lower()), folder)
            problem = f"its folder holds no {SKILL_FILE}"
            if named is not folder:
                problem += f", and {named.name} is not the same"
            self.findings.add(ItemKind.SKILL, folder.name, named.path, problem=problem)

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
                **(nested or self._take(ItemKind.COMMAND, name, file)),
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
                facts = self._take(ItemKind.AGENT, name or stem, file)
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

    def _document(self, kind: ItemKind, name: str, file: str) -> Document | None:
        text = self.findings.text(kind, name, file)
        return None if text is None else front_matter.parse(text)

    def _take(self, kind: ItemKind, name: str, file: str) -> dict[str, Any]:
        """The file that has the name already, if one has: skills and commands share theirs."""
        group = ItemKind.SKILL if kind is ItemKind.COMMAND else kind
        first = self._taken.setdefault((group, name), file)
        if first == file:
            return {}
        return {"problem": f"{first} has the same name and takes its place", "shadowed": True}


def _waits(document: Document) -> tuple[str, ...]:
    """The globs of files that it waits for: none where they cover everything."""
    globs = document.globs("paths")
    return () if "**" in globs else globs
