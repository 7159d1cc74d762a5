"""What steers a session: skills, commands, sub-agents, rules, CLAUDE.md, hooks, MCP servers; and what was loaded."""

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
        entry = f", {self.key}" if self.key else ""
        return f"not loaded{entry}: {self.problem}"


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
    """Folder in which the session worked."""

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
