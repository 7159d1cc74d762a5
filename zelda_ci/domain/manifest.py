"""What steers a session: a project's skills, commands, sub-agents, rules, CLAUDE.md files, hooks and MCP servers."""

from enum import StrEnum
from typing import Literal

from zelda_ci.domain import tool_names
from zelda_ci.domain.base import Record
from zelda_ci.redact import EMPTY, SafeText


class ItemKind(StrEnum):
    """What steers."""

    SKILL = "skill"
    COMMAND = "command"
    AGENT = "agent"
    MCP_SERVER = "mcpServer"
    RULE = "rule"
    MEMORY = "claudeMd"
    """CLAUDE.md, what it imports, and the AGENTS.md that takes its place."""
    HOOK = "hook"


CALLED = frozenset({ItemKind.SKILL, ItemKind.COMMAND, ItemKind.AGENT, ItemKind.MCP_SERVER})
"""What a session uses by calling it; the rest works without a call."""

READ = frozenset({ItemKind.RULE, ItemKind.MEMORY})
"""What a session follows or breaks."""


class ManifestEntry(Record):
    """One thing that steers, and whether the session had it."""

    kind: ItemKind
    name: SafeText
    """As the session knows it; of rules and CLAUDE.md files, the file."""
    description: SafeText | None = None
    file: SafeText
    """Relative to the top of the tested tree, with forward slashes."""
    loaded: bool = False
    on_demand: bool = False
    """True where it waited for a file to which it applies, and none was touched."""
    reason: SafeText | None = None
    """Why it was not loaded."""
    note: SafeText | None = None
    """What was unusual about a server that was loaded: it connected late, or was lost."""

    @property
    def tool(self) -> str:
        """Its name among the calls of a session; servers by what their tools' names begin with."""
        match self.kind:
            case ItemKind.SKILL | ItemKind.COMMAND:
                return tool_names.skill(self.name)
            case ItemKind.AGENT:
                return tool_names.agent(self.name)
            case ItemKind.MCP_SERVER:
                return tool_names.server(self.name)
            case ItemKind.RULE | ItemKind.MEMORY | ItemKind.HOOK:
                return self.name


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
    automatic: bool = True
    """False where only a person can call it."""
    text: SafeText | None = None
    """What a rule or a CLAUDE.md file says, as far as it is kept."""
    problem: SafeText | None = None
    """Why, by the rules of its format, Claude Code does not load it."""
    shadowed: bool = False
    """True where another file of the same name takes its place."""
    tools: tuple[SafeText, ...] = ()
    """Of a server: what it offered at any time of the session."""


class ToolsManifest(Record):
    """Everything that was found in the files, and what could not be looked at."""

    schema_version: Literal[1] = 1
    items: tuple[ManifestItem, ...] = ()
    notes: tuple[SafeText, ...] = ()
    """Files or limits that kept Zelda from seeing more, in sentences."""
    workspace: SafeText | None = None
    """Where the tree lay, as the session's paths begin."""
    folder: SafeText | None = None
    """Where the session worked."""
