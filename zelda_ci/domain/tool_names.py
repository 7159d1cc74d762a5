"""How a tool is called in results, whatever Claude Code calls it."""

import re

from zelda_ci.domain.session import ToolCall

LONGEST_NAME = 100


def label(call: ToolCall) -> str:
    """A tool by its name, a skill or sub-agent with its own; `Task` is what Claude Code called `Agent` before."""
    match call.name:
        case "Skill":
            return skill(call.input.get("skill"))
        case "Agent" | "Task":
            return _named("Agent", call.input.get("subagent_type"))
        case _:
            return call.name[:LONGEST_NAME]


def skill(name: object) -> str:
    """A skill or a command of that name, which sessions may write with the slash of a command line."""
    return _named("Skill", name.removeprefix("/") if isinstance(name, str) else None)


def agent(name: str) -> str:
    """A sub-agent of that type."""
    return _named("Agent", name)


def server(name: str) -> str:
    """What the names of an MCP server's tools begin with, before the last two underscores."""
    return f"mcp__{_plain(name)}"


def server_tool(server_name: str, tool: str) -> str:
    """A tool of an MCP server."""
    return f"{server(server_name)}__{_plain(tool)}"


def _plain(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)


def _named(kind: str, name: object) -> str:
    return f"{kind}({name[:LONGEST_NAME]})" if isinstance(name, str) and name else kind
