"""The kinds of steering, for all that has to know one: where its files lie, who uses it, whom a change concerns."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Literal


class ItemKind(StrEnum):
    SKILL = "skill"
    COMMAND = "command"
    AGENT = "agent"
    WORKFLOW = "workflow"
    MCP_SERVER = "mcpServer"
    RULE = "rule"
    MEMORY = "claudeMd"
    """CLAUDE.md, what it imports, and the AGENTS.md that takes its place."""
    HOOK = "hook"
    PLUGIN = "plugin"
    MOD = "mod"
    """JavaScript of a plugin that runs inside Claude Code."""


class Shown(StrEnum):
    """Part that the model sees of something that it may call."""

    DESCRIPTION = "description"
    NAME = "name"
    DENIED = "denied"
    """Its entry, but a rule of the project refuses each call."""
    HIDDEN = "hidden"
    """Nothing: only a person can call it, or a rule withholds it."""


@dataclass(frozen=True)
class Kind:
    word: str
    files: tuple[str, ...]
    """Names of its files, wherever they lie; a kind with a folder has the endings of the files in it."""
    used: Literal["called", "followed", "run", "in force"]
    """Way in which a session uses it."""
    felt: Literal["callers", "touchers", "all"] = "all"
    """Suites that a change of its text concerns, where nothing but the text changed."""
    folder: str = ""
    """Folder in `.claude`, and in plugins at their top."""
    own_folder: bool = False
    """True where each lies in a folder of its own."""
    listed: tuple[str, ...] = ()
    """Lists of Claude Code's first message that name it."""
    call: Literal["Skill", "Agent", "mcp", ""] = ""
    """The tool by which the model calls it; of servers, what the names of their tools begin with."""


SKILL_FILE = "SKILL.md"
MEMORY_FILES, MEMORY_FALLBACKS, MEMORY_LOCAL = ("CLAUDE.md",), ("AGENTS.md",), ("CLAUDE.local.md",)
KINDS: Mapping[ItemKind, Kind] = {
    ItemKind.SKILL: Kind(
        "skill", (SKILL_FILE,), "called", "callers",
        folder="skills", own_folder=True, listed=("skills", "slash_commands"), call="Skill",
    ),
    ItemKind.COMMAND: Kind(
        "command", (".md",), "called", "callers", folder="commands", listed=("slash_commands",), call="Skill",
    ),
    ItemKind.AGENT: Kind(
        "sub-agent", (".md",), "called", "callers", folder="agents", listed=("agents",), call="Agent",
    ),
    ItemKind.WORKFLOW: Kind(
        "workflow", (".js",), "called", folder="workflows", listed=("skills", "slash_commands"), call="Skill",
    ),
    ItemKind.MCP_SERVER: Kind("MCP server", (".mcp.json",), "called", call="mcp"),
    ItemKind.RULE: Kind("rule", (".md",), "followed", "touchers", folder="rules"),
    ItemKind.MEMORY: Kind(
        "CLAUDE.md file", (*MEMORY_FILES, *MEMORY_FALLBACKS, *MEMORY_LOCAL), "followed", "touchers",
    ),
    ItemKind.HOOK: Kind("hook", ("hooks.json", "settings.json"), "run"),
    ItemKind.PLUGIN: Kind("plugin", ("plugin.json", "marketplace.json"), "in force", listed=("plugins",)),
    ItemKind.MOD: Kind("mod", ("hooks.json",), "in force"),
}  # fmt: skip
# What a session uses by calling it, and what it follows or breaks; the rest works without a call.
CALLED, FOLLOWED = (frozenset(kind for kind, row in KINDS.items() if row.used == use) for use in ("called", "followed"))
# The tools with which the model turns to a skill, command or sub-agent; `Task` is what `Agent` was called before.
TURNS_TO = frozenset({"Skill", "Agent", "Task"})
CLAUDE = ".claude"
PLUGIN_MANIFEST = ".claude-plugin/plugin.json"
# What of a plugin Claude Code reads: files and folders at its top.
PLUGIN_PARTS = (
    *(row.folder for row in KINDS.values() if row.folder),
    "output-styles", "hooks", "monitors", "bin", "hooks.json", "settings.json", ".mcp.json", ".lsp.json",
)  # fmt: skip
_MEMORY_NAMES = frozenset(name.lower() for name in KINDS[ItemKind.MEMORY].files)


def is_memory(name: str) -> bool:
    """True where a file is called as CLAUDE.md files are, in whatever case."""
    return name.lower() in _MEMORY_NAMES


def may_steer(path: str) -> bool:
    """True where a file's name or place says that it steers, or may steer, Claude Code."""
    *_, name = parts = path.split("/")
    is_named = is_memory(name) or name in {*KINDS[ItemKind.MCP_SERVER].files, SKILL_FILE}
    return is_named or any(part.lower().startswith(CLAUDE) for part in parts)


MAX_TOOL_NAME_LENGTH = 100


def skill(name: object) -> str:
    """A skill or a command of that name, which sessions may write with the slash of a command line."""
    return _named("Skill", name.removeprefix("/") if isinstance(name, str) else None)


def server(*names: str) -> str:
    """Begin of the names of an MCP server's tools, without the last two underscores; with a tool's name, the tool."""
    return "__".join(("mcp", *(re.sub(r"[^a-zA-Z0-9_-]", "_", name) for name in names)))


def _named(kind: str, name: object) -> str:
    return f"{kind}({name[:MAX_TOOL_NAME_LENGTH]})" if isinstance(name, str) and name else kind


agent = partial(_named, "Agent")
