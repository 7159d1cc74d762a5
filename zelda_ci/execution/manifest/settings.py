"""`.claude/settings.json`: what it says of other files."""

import fnmatch
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from zelda_ci.domain.kinds import CLAUDE
from zelda_ci.errors import ExecutionError

# With it, Claude Code reads no CLAUDE.md and no rule.
NO_MEMORY = "CLAUDE_CODE_DISABLE_CLAUDE_MDS"
SETTINGS_FILE = f"{CLAUDE}/settings.json"
SERVERS_FILE = ".mcp.json"


def table(value: object, *keys: str) -> dict[str, Any]:
    """Return the object at a path of keys; an empty one where something else is there."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, dict) else {}


def parse_object(file: str, text: str) -> dict[str, Any] | None:
    """Parse a settings file; None where it is no JSON object, which Claude Code does not apply either."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError:
        return None
    except (ValueError, RecursionError):
        raise ExecutionError(f"{file} holds a number of thousands of digits, or nests values by the hundred.") from None
    return values if isinstance(values, dict) else None


def texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list, or a text alone."""
    return tuple(each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str))


def memory_excluded(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return globs of CLAUDE.md files and rules that are not read."""
    if table(settings, "env").get(NO_MEMORY) not in (None, "", "0", "false", False):
        return ("**",)
    # They are held against absolute paths, which of a test run nobody can know.
    return tuple(glob for glob in texts(settings.get("claudeMdExcludes")) if glob.startswith("**"))


def denial(settings: Mapping[str, Any], call: str, *names: str | None) -> tuple[str, bool] | None:
    """Return the rule that denies a call of a tool under one of these names, and whether it denies all calls."""
    labels = {f"{call}({name})" for name in names if name}
    for written in texts(table(settings, "permissions").get("deny")):
        # Sub-agents had another name; skills may be written with the slash of a command line.
        rule = re.sub(r"^Task\b", "Agent", written).replace("(/", "(", 1)
        if rule in ("*", call, f"{call}(*)"):
            return written, True
        begin = rule[:-3] if call == "Skill" and rule.endswith((":*)", " *)")) else rule
        if rule in labels or (begin != rule and any(label.startswith(begin) for label in labels)):
            return written, False
    return None


def denials(settings: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """Yield the rules that may deny tools of a server, by what their names begin with."""
    own = f"{prefix}__"
    for rule in dict.fromkeys(texts(table(settings, "permissions").get("deny"))):
        begin, star, _ = rule.partition("*")
        is_fit = begin.startswith(own) or (star and own.startswith(begin)) or rule == prefix
        if is_fit and (rule == "*" or rule.startswith("mcp__")):
            yield rule


def denies(rule: str, tool: str) -> bool:
    """Return whether a rule denies a tool of an MCP server: it names server or tool, with `*` for anything."""
    return tool.startswith(f"{rule}__") or fnmatch.fnmatchcase(tool, re.sub(r"[?[]", r"[\g<0>]", rule))
