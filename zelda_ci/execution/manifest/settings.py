"""`.claude/settings.json`: the hooks it sets up, and what it switches off."""

import json
from dataclasses import dataclass, field
from typing import Any

from zelda_ci.domain.manifest import ItemKind
from zelda_ci.execution.manifest.findings import Findings
from zelda_ci.execution.manifest.tree import Missing, Unfit

EVENTS = frozenset(
    {
        "ConfigChange",
        "CwdChanged",
        "DirectoryAdded",
        "Elicitation",
        "ElicitationResult",
        "FileChanged",
        "InstructionsLoaded",
        "MessageDisplay",
        "Notification",
        "PermissionDenied",
        "PermissionRequest",
        "PostCompact",
        "PostModelSwitch",
        "PostToolBatch",
        "PostToolUse",
        "PostToolUseFailure",
        "PreCompact",
        "PreModelSwitch",
        "PreToolUse",
        "SessionEnd",
        "SessionStart",
        "Setup",
        "Stop",
        "StopFailure",
        "SubagentStart",
        "SubagentStop",
        "TaskCompleted",
        "TaskCreated",
        "TeammateIdle",
        "UserPromptExpansion",
        "UserPromptSubmit",
        "WorktreeCreate",
        "WorktreeRemove",
    }
)


@dataclass(frozen=True)
class Settings:
    """What the project's settings say about other files."""

    skills_off: frozenset[str] = frozenset()
    servers_off: frozenset[str] = frozenset()
    memory_excluded: tuple[str, ...] = ()
    hooks_off: bool = False
    hooks: dict[str, Any] = field(default_factory=dict)


def read(findings: Findings, file: str) -> Settings:
    """The settings of the project, as far as they are of the expected shapes."""
    values = json_object(findings, file)
    overrides, hooks = values.get("skillOverrides"), values.get("hooks")
    return Settings(
        skills_off=frozenset(name for name, mode in _items(overrides) if mode == "off"),
        servers_off=frozenset(_texts(values.get("disabledMcpjsonServers"))),
        memory_excluded=_texts(values.get("claudeMdExcludes")),
        hooks_off=values.get("disableAllHooks") is True,
        hooks=dict(_items(hooks)),
    )


def add_hooks(findings: Findings, settings: Settings, file: str) -> None:
    """A finding for each hook: what it waits for is its name, what it runs its description."""
    for event, groups in settings.hooks.items():
        for group in groups if isinstance(groups, list) else [None]:
            matcher, hooks = _group(group)
            name = f"{event}:{matcher}" if matcher else event
            if not hooks:
                problem = "it is not of the shape that hooks have"
                findings.add(ItemKind.HOOK, name, file, problem=problem, announced=False)
            for hook in hooks:
                told = hook.get("command") or hook.get("prompt") or hook.get("url")
                described = f"{hook.get('type') or 'hook'}: {told}" if told else None
                trouble = _hook_problem(event, settings)
                findings.add(ItemKind.HOOK, name, file, description=described, problem=trouble, announced=False)


def json_object(findings: Findings, file: str) -> dict[str, Any]:
    """A JSON file that holds an object; anything else counts as empty, and is noted unless the file is missing."""
    try:
        found = json.loads(findings.tree.read(file))
    except Missing:
        return {}
    except (Unfit, ValueError, RecursionError) as problem:
        told = problem if isinstance(problem, Unfit) else "it is not valid JSON"
        findings.note(f"Nothing in {file} was loaded: {told}.")
        return {}
    return found if isinstance(found, dict) else {}


def _hook_problem(event: str, settings: Settings) -> str | None:
    if settings.hooks_off:
        return "the project's settings switch all hooks off (disableAllHooks)"
    return None if event in EVENTS else "Claude Code knows no event of this name"


def _group(group: object) -> tuple[str, list[dict[str, Any]]]:
    if not isinstance(group, dict):
        return "", []
    hooks = group.get("hooks")
    matcher = group.get("matcher")
    listed = [hook for hook in hooks if isinstance(hook, dict)] if isinstance(hooks, list) else []
    return matcher if isinstance(matcher, str) else "", listed


def _items(value: object) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
