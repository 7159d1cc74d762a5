"""Skills, commands, sub-agents and workflows: the files of a `.claude` folder or a plugin."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from zelda_ci.domain.kinds import KINDS, PLUGIN_MANIFEST, SKILL_FILE, ItemKind, Shown, agent, skill
from zelda_ci.execution.manifest.front_matter import MarkdownDocument, parse
from zelda_ci.execution.manifest.settings import ClaudeSettings, add_hooks, table, texts
from zelda_ci.execution.manifest.tree import ScanFindings, TreeEntry

RESERVED = "synced"
NESTED_ONLY = "Claude Code loads {} only from the .claude folder of the project and of the folders above it"
# The name is in the code, which nobody here runs: the first that is written down in `meta` counts.
_NAMED = re.compile(r"""\bname\s*:\s*(["'`])(.+?)\1""")


@dataclass(frozen=True)
class SteeringFolder:
    """A folder that holds folders of steering: `.claude`, or a plugin."""

    home: str
    base: str = ""
    """Folder that its globs count from."""
    below: str = ""
    """Folder whose files it waits for; empty where it is there from the start."""
    plugin: str | None = None
    """Plugin as settings name it: `name@marketplace`."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Manifest of the plugin, which may name files and folders instead of the usual folders, skills as well as it."""

    def within(self, kind: ItemKind) -> Iterable[str]:
        """Return where files of a kind lie."""
        folder = KINDS[kind].folder
        named = [posixpath.normpath(posixpath.join(self.home, path)) for path in texts(self.about.get(folder))]
        is_usual = kind is ItemKind.SKILL or not named
        return dict.fromkeys([*([posixpath.join(self.home, folder)] if is_usual else []), *named])

    def files(self, findings: ScanFindings, kind: ItemKind) -> Iterator[tuple[str, str]]:
        """Yield files of a kind, each with the name that its path makes."""
        (ending,) = KINDS[kind].files
        for home in self.within(kind):
            if home.endswith(ending):
                yield home, posixpath.basename(home).removesuffix(ending)
            for file in findings.tree.files(home, ending):
                yield file, file.removeprefix(f"{home}/").removesuffix(ending).replace("/", ":")

    def named(self, name: str) -> str:
        """Return a name as the session knows it: that of a plugin stands before all names in it."""
        return f"{self.plugin.rpartition('@')[0]}:{name}" if self.plugin else name


class Documents:
    """Reads one folder of steering after the other, the nearest to the session first; names are taken once."""

    def __init__(self, findings: ScanFindings, settings: ClaudeSettings) -> None:
        self.findings, self.settings = findings, settings
        self._taken: dict[tuple[str, str], str] = {}
        """Files by what calls them and their name; those of skills and commands also by where they really lie."""

    def add(self, place: SteeringFolder) -> None:
        """Add what a `.claude` folder or a plugin holds."""
        tree = self.findings.tree
        for entry in (entry for home in place.within(ItemKind.SKILL) for entry in tree.entries(home)):
            if entry.is_folder and tree.exists(f"{entry.path}/{SKILL_FILE}"):
                self._skill(entry, place)
            elif entry.is_folder and not tree.exists(f"{entry.path}/{PLUGIN_MANIFEST}"):
                self._no_skill(entry)
            elif not entry.is_folder and entry.name.endswith(".md"):
                problem = f"a skill is a folder with a {SKILL_FILE} in it, not a file"
                self.findings.add(ItemKind.SKILL, entry.name.removesuffix(".md"), entry.path, problem=problem)
        self._commands(place)
        self._agents(place)
        self._workflows(place)

    def _skill(self, entry: TreeEntry, place: SteeringFolder) -> None:
        file, name = f"{entry.path}/{SKILL_FILE}", place.named(entry.name)
        if document := self._document(ItemKind.SKILL, name, file):
            label = document.text("name")
            is_reserved = entry.name == RESERVED and not place.plugin
            facts: dict[str, Any] = {"paths": document.paths, "base": place.base, "below": place.below}
            facts["problem"] = f"the folder name {RESERVED!r} is reserved" if is_reserved else None
            facts["label"] = place.named(label) if label and label != entry.name else None
            self._add(ItemKind.SKILL, name, file, place, document, **_described(document), **facts)

    def _no_skill(self, folder: TreeEntry) -> None:
        """Add a folder without SKILL.md, by what may have been meant by it."""
        tree = self.findings.tree
        inside = tree.entries(folder.path)
        nested = [it for it in inside if it.is_folder and tree.exists(f"{it.path}/{SKILL_FILE}")]
        for entry in nested:
            problem = "it lies one folder too deep: skills are read from .claude/skills/<name>/SKILL.md only"
            self.findings.add(ItemKind.SKILL, entry.name, f"{entry.path}/{SKILL_FILE}", problem=problem)
        if not nested:
            similar = next((it for it in inside if _is_skill(it.name)), None)
            problem = f"its folder holds no {SKILL_FILE}{f', and {similar.name} is not the same' if similar else ''}"
            self.findings.add(ItemKind.SKILL, folder.name, (similar or folder).path, problem=problem)

    def _commands(self, place: SteeringFolder) -> None:
        """Add commands: where a folder has a SKILL.md, in whatever case, it is the command, and no other file of it."""
        files = dict(place.files(self.findings, ItemKind.COMMAND))
        chosen = {posixpath.dirname(file): file for file in sorted(files, reverse=True) if _is_skill(file)}
        problem = NESTED_ONLY.format("commands") if place.below else None
        for file, stem in files.items():
            if chosen.get(folder := posixpath.dirname(file), file) == file:
                name = place.named(stem.rpartition(":")[0] or posixpath.basename(folder) if _is_skill(file) else stem)
                if document := self._document(ItemKind.COMMAND, name, file):
                    self._add(ItemKind.COMMAND, name, file, place, document, problem=problem, **_described(document))

    def _workflows(self, place: SteeringFolder) -> None:
        for file, stem in place.files(self.findings, ItemKind.WORKFLOW):
            text = self.findings.text(ItemKind.WORKFLOW, place.named(stem), file)
            if text is not None and not place.below and ":" not in stem:
                found = _NAMED.search(text)
                problem = None if found else "its code gives no name in `meta`"
                name = place.named(found[2] if found else stem)
                self._add(ItemKind.WORKFLOW, name, file, place, MarkdownDocument(), problem=problem)

    def _agents(self, place: SteeringFolder) -> None:
        # Of several with one name, Claude Code takes the last by path.
        for file, path in sorted(place.files(self.findings, ItemKind.AGENT), reverse=True):
            stem = path.rpartition(":")[2]
            if document := self._document(ItemKind.AGENT, place.named(stem), file):
                given, description = document.words("name"), document.words("description")
                # In a plugin, folders are part of the name.
                name = place.named(f"{path.removesuffix(stem)}{given or stem}") if place.plugin else given or stem
                facts: dict[str, Any] = {"description": description, "note": _agent_note(document)}
                if name == self.settings.values.get("agent") and not place.below:
                    facts |= {"is_main": True, "text": document.body.strip()}
                facts["problem"] = _agent_problem(given, description, place)
                self._add(ItemKind.AGENT, name, file, place, document, **facts)

    def _add(
        self, kind: ItemKind, name: str, file: str, place: SteeringFolder, document: MarkdownDocument, **facts: Any
    ) -> None:
        """Add something to call, with what the model sees of it by its head and by the project's settings."""
        is_skill = KINDS[kind].call == "Skill"
        # These know none of plugins and sub-agents.
        override = table(self.settings.values, "skillOverrides").get(name) if is_skill and not place.plugin else None
        if override == "off" and not facts["problem"]:
            facts["problem"] = "the project's settings switch it off (skillOverrides)"
        facts |= {"owner": place.plugin, "shown": Shown.NAME if override == "name-only" else Shown.DESCRIPTION}
        if denial := self.settings.denial(KINDS[kind].call, name, facts.get("label")):
            rule, is_whole = denial
            # A skill that a rule names stays in the listing, and each call is refused.
            facts |= {"shown": Shown.DENIED if is_skill and not is_whole else Shown.HIDDEN, "denied": (rule,)}
        is_hidden = is_skill and document.says("disable-model-invocation", default=False)
        if is_hidden or override == "user-invocable-only":
            facts["shown"] = Shown.HIDDEN
        if not (facts["problem"] or place.below or kind is ItemKind.WORKFLOW):
            facts |= self._claim_name(kind, name, file)
        self.findings.add(kind, name, file, **facts)
        if not (facts["problem"] or (place.plugin and not is_skill)):
            owner = skill(name) if is_skill else agent(name)
            add_hooks(self.findings, file, document.fields.get("hooks"), self.settings, owner)

    def _document(self, kind: ItemKind, name: str, file: str) -> MarkdownDocument | None:
        text = self.findings.text(kind, name, file)
        return None if text is None else parse(text)

    def _claim_name(self, kind: ItemKind, name: str, file: str) -> dict[str, Any]:
        """Take a name for a file, unless one has it already: skills and commands share theirs."""
        call = KINDS[kind].call
        real = self.findings.tree.real(file) if call == "Skill" else file
        same = self._taken.setdefault(("file", real), file)
        if same != file:
            return {"problem": f"it is the same file as {same}", "shadowed": True}
        first = self._taken.setdefault((call, name), file)
        return {} if first == file else {"problem": f"{first} has the same name and takes its place", "shadowed": True}


def _is_skill(file: str) -> bool:
    return posixpath.basename(file).lower() == SKILL_FILE.lower()


def _described(document: MarkdownDocument) -> dict[str, Any]:
    """Return what the head of a skill or command says of it."""
    described = (document.text("description") or document.first_line, document.text("when_to_use"))
    description = " ".join(filter(None, described)) or None
    return {"description": description, "announced": document.says("user-invocable", default=True)}


def _agent_problem(name: str | None, description: str | None, place: SteeringFolder) -> str | None:
    absent = [key for key, value in (("name", name), ("description", description)) if value is None]
    if absent:
        return f"its head gives no {' and no '.join(absent)}"
    if place.below:
        return NESTED_ONLY.format("sub-agents")
    if name and name.startswith("-"):
        return "its name begins with a dash"
    return "a colon in its name is only for sub-agents of plugins" if ":" in (name or "") else None


def _agent_note(document: MarkdownDocument) -> str | None:
    """Return what a sub-agent has in its context beside, or instead of, what the main thread has."""
    skills = document.listed("skills")
    is_without = document.fields.get("omitClaudeMd") in (True, "true")
    parts = (
        f"it is given the text of the skills {', '.join(skills)}" if skills else None,
        "it does not see CLAUDE.md files and rules (omitClaudeMd)" if is_without else None,
    )
    return "; ".join(filter(None, parts)) or None
