"""What steers a session (skills, rules, CLAUDE.md, MCP servers and so on), what was loaded, and what it felt."""

from posixpath import join, normpath

from zelda_ci.domain.base import Document, Record
from zelda_ci.domain.kinds import FOLLOWED, KINDS, ItemKind, Shown, agent, server, skill
from zelda_ci.redact import EMPTY, SafeText


class ManifestEntry(Record):
    """One thing that steers, and whether the session had it."""

    kind: ItemKind
    name: SafeText
    """Name by which the session knows it; for rules and CLAUDE.md files, the file."""
    description: SafeText | None = None
    file: SafeText
    """Relative to the top of the tested tree, with forward slashes."""
    loaded: bool = False
    on_demand: bool = False
    """True where it waited for a file to which it applies, and none was touched."""
    reason: SafeText | None = None
    """Reason why it was not loaded."""
    note: SafeText | None = None
    """Remark on what is unusual: a server that connected late or was lost, a sub-agent without CLAUDE.md files."""
    shown: Shown | None = None
    """Part that the model sees of it before a call, where it is something to call."""

    @property
    def tool(self) -> str:
        """Its name among the calls of a session; servers by what their tools' names begin with."""
        names = {"Skill": skill(self.name), "Agent": agent(self.name), "mcp": server(self.name)}
        return names.get(KINDS[self.kind].call, self.name)


class ManifestItem(ManifestEntry):
    """An entry with all that its file says about when and how it is loaded."""

    label: SafeText | None = None
    """Another name under which a skill can be called: the one in its file, where its folder has another."""
    below: SafeText = EMPTY
    """The folder whose files it waits for; empty where it is there from the start."""
    base: SafeText = EMPTY
    """The folder that `paths` count from."""
    paths: tuple[SafeText, ...] = ()
    """Globs of the files it waits for."""
    announced: bool = True
    """False where Claude Code loads it without telling, so that its rules alone decide."""
    is_main: bool = False
    """True of the sub-agent as which the main thread itself runs: its text is in every request."""
    owner: SafeText | None = None
    """The call that a hook waits for, in the head of a skill or sub-agent; of parts of a plugin, the plugin."""
    text: SafeText | None = None
    """Text of a rule, a CLAUDE.md file or the main agent, as far as it is kept."""
    problem: SafeText | None = None
    """Reason why, by the rules of its format, Claude Code does not load it."""
    shadowed: bool = False
    """True where another file of the same name takes its place."""
    tools: tuple[SafeText, ...] = ()
    """Tools that a server offered at any time of the session, and no rule withheld."""
    denied: tuple[SafeText, ...] = ()
    """Rules of the project that deny its calls; for a server, those that may deny tools of it."""

    @property
    def is_followed(self) -> bool:
        """True where a session follows or breaks it, instead of calling it."""
        return self.kind in FOLLOWED or self.is_main

    @property
    def is_open(self) -> bool:
        """True where the model could have known of it, and called it."""
        return self.shown not in (Shown.HIDDEN, Shown.DENIED)


class RefusedSetting(Record):
    """A settings file that Claude Code does not load, or an entry of it that it passes over."""

    file: SafeText
    """Path from the top of the tree."""
    key: SafeText
    """Key of the entry; empty where the whole file is not loaded."""
    problem: SafeText
    """Problem in Claude Code's words, without the full stop."""

    def concerns(self, entry: str) -> bool:
        """True where it is about an entry, something in it, or something around it."""
        return not self.key or f"{entry}.".startswith(f"{self.key}.") or self.key.startswith(f"{entry}.")

    @property
    def effect(self) -> str:
        """Sentence on what became of it, without the name of the file."""
        return f"not loaded{f', {self.key}' if self.key else ''}: {self.problem}"


class ToolsManifest(Document):
    """Everything that was found in the files, and what could not be looked at."""

    items: tuple[ManifestItem, ...] = ()
    refused: tuple[RefusedSetting, ...] = ()
    """Settings files and entries that Claude Code says it does not load, without a session."""
    notes: tuple[SafeText, ...] = ()
    """Files or limits that kept Zelda from seeing more, in sentences."""
    workspace: SafeText | None = None
    """Folder of the tree, with which the session's paths begin."""
    folder: SafeText | None = None

    def in_tree(self, path: str) -> str | None:
        """A path as the session wrote it, relative to the top of the tree; None where it leads elsewhere."""
        top = f"{self.workspace or ''}/"
        absolute = normpath(join(top, self.folder or "", path))
        return absolute.removeprefix(top) if absolute.startswith(top) else None

    def in_folder(self, path: str | None) -> str | None:
        """A path from the top of the tree, relative to the session's folder; None for one beside it."""
        below = f"{self.folder}/" if self.folder not in {None, "", "."} else ""
        return path.removeprefix(below) if path is not None and path.startswith(below) else None


# Begins the note on a server that the session had begun without.
CONNECTED_LATE = "it connected late:"
# Notes on what the model did not see in full, or not at all, of the listing of what it can call.
LISTING = (
    ONLY_NAME := "the model saw only its name: the listing of skills was full",
    CUT := "the model saw only the beginning of its description",
    UNLISTED := "Claude Code did not list it for the model",
)


class Unit(Record):
    """One thing that steers: a skill, a rule, a CLAUDE.md file and so on."""

    kind: ItemKind
    path: SafeText
    """Path of its file from the top of the tested tree; of a skill, the SKILL.md."""
    name: SafeText
    """Name by which the session knows it; for rules and CLAUDE.md files, the file."""


class UnitUse(Record):
    """Use of a unit in one session."""

    unit: Unit
    loaded: bool = False
    """The session had it: of skills and sub-agents name and description, of rules and CLAUDE.md files the text."""
    used: bool = False
    """It was called, its file was read, or the judge says that it applied."""
    missed: bool = False
    """The judge says that it should have been used."""
    broken: bool = False
    """The judge says that a rule was broken, or a tool misused or its instructions ignored."""
    problem: SafeText | None = None
    """Reason why the session lacks a plugin that the project wants, or a part of it."""


class SuiteUse(Record):
    """Number of a suite's trials in which a unit was loaded, used, missed or broken."""

    suite: str
    loaded: int = 0
    used: int = 0
    missed: int = 0
    broken: int = 0


class UnitCoverage(Record):
    """A unit, and the suites that had it."""

    unit: Unit
    touched: bool
    """True where a suite used, missed or broke it, or had it where it works without a call."""
    suites: tuple[SuiteUse, ...] = ()


class SuiteCoverage(Record):
    """A suite with trials that show what it used."""

    suite: str
    trials: int
    touches: bool
    """True where it used, missed or broke anything."""


class SteeringCoverage(Document):
    """Coverage of the files that steer by suites: what none of them touches comes first."""

    units: tuple[UnitCoverage, ...] = ()
    suites: tuple[SuiteCoverage, ...] = ()
    unknown: tuple[str, ...] = ()
    """Suites that were run without a trial that shows what it used."""


class SteeringChange(Record):
    """A file that steers Claude Code and that differs between two sides."""

    path: str
    """Path from the top of the repository."""
    line: int | None = None
    """The first that differs, as the head has it; absent where the file is gone, or its text is not known."""
    suites: tuple[str, ...] | None = None
    """Suites that it may concern; None for all."""
    is_gone: bool = False

    def concerns(self, suite: str) -> bool:
        return self.suites is None or suite in self.suites
