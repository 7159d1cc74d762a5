"""`.claude/settings.json`: the hooks it sets up, what it switches off, and what it overrides of Zelda's."""

import fnmatch
import itertools
import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem
from zelda_ci.domain.workspace import SettingFinding, Workspace
from zelda_ci.execution.manifest.tree import Exhausted, Missing, ScanFindings, Tree, Unfit
from zelda_ci.redact import Redactor

# With it, Claude Code reads no CLAUDE.md and no rule.
NO_MEMORY = "CLAUDE_CODE_DISABLE_CLAUDE_MDS"
SETTINGS_FILE = ".claude/settings.json"
_RULE = re.compile(r"(Skill|Agent|Task)(?:\(/?(.+?)(:\*| \*)?\))?")
HOOKS_OFF = "the project's settings switch all hooks off (disableAllHooks)"


@dataclass(frozen=True)
class ClaudeSettings:
    """What the project's settings say about other files."""

    overrides: dict[str, str] = field(default_factory=dict)
    """By skill, command or workflow, how settings have it listed."""
    agent: str | None = None
    """The sub-agent as which the main thread runs."""
    plugins: dict[str, Any] = field(default_factory=dict)
    marketplaces: dict[str, Any] = field(default_factory=dict)
    servers_off: frozenset[str] = frozenset()
    memory_excluded: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    """Rules that forbid calls."""
    hooks_off: bool = False
    hooks: dict[str, Any] = field(default_factory=dict)
    output_style: str | None = None

    @classmethod
    def of(cls, values: dict[str, Any]) -> "ClaudeSettings":
        """From the file's values, as far as they are of the expected shapes."""
        overrides, hooks = values.get("skillOverrides"), values.get("hooks")
        # They are held against absolute paths, which of a test run nobody can know.
        excluded = tuple(glob for glob in _texts(values.get("claudeMdExcludes")) if glob.startswith("**"))
        variables = {name for name, value in _items(values.get("env")) if value not in ("", "0", "false", False)}
        return cls(
            overrides={name: mode for name, mode in _items(overrides) if isinstance(mode, str)},
            agent=_text(values.get("agent")),
            plugins=dict(_items(values.get("enabledPlugins"))),
            marketplaces=dict(_items(values.get("extraKnownMarketplaces"))),
            servers_off=frozenset(_texts(values.get("disabledMcpjsonServers"))),
            memory_excluded=("**",) if NO_MEMORY in variables else excluded,
            denied=_texts(dict(_items(values.get("permissions"))).get("deny")),
            hooks_off=values.get("disableAllHooks") is True,
            hooks=dict(_items(hooks)),
            output_style=_text(values.get("outputStyle")),
        )

    def denial(self, call: str, *names: str | None) -> tuple[str, bool] | None:
        """The rule that denies a call of a tool under one of these names, and whether it denies the whole tool."""
        for rule in self.denied:
            found = _RULE.fullmatch(rule)
            if rule == "*" or (found and _is_tool(found, call) and found[2] in (None, "*")):
                return rule, True
            if found and _is_tool(found, call) and any(_is_named(found, name) for name in names if name):
                return rule, False
        return None

    def denials(self, prefix: str) -> tuple[str, ...]:
        """The rules that may deny tools of a server, by what their names begin with."""
        begins = {rule: rule.partition("*")[0] for rule in self.denied if rule == "*" or rule.startswith("mcp__")}
        return tuple(
            rule
            for rule, begin in begins.items()
            if rule == prefix or ("*" in rule and f"{prefix}__".startswith(begin)) or begin.startswith(f"{prefix}__")
        )


def denies(rule: str, tool: str) -> bool:
    """Whether a rule denies a tool of an MCP server: it names the server or the tool, with `*` for anything."""
    return tool.startswith(f"{rule}__") or fnmatch.fnmatchcase(tool, re.sub(r"[?[]", r"[\g<0>]", rule))


def _is_tool(rule: re.Match[str], call: str) -> bool:
    return call == ("Agent" if rule[1] == "Task" else rule[1])


def _is_named(rule: re.Match[str], name: str) -> bool:
    """Only rules for skills know beginnings of names."""
    return name.startswith(rule[2]) if rule[3] and rule[1] == "Skill" else f"{rule[2]}{rule[3] or ''}" == name


def settings_files(folder: str) -> Iterator[str]:
    """The files that sessions in a folder read, from the top of the tree: the project's settings, then servers."""
    place = PurePosixPath(folder)
    yield str(place / SETTINGS_FILE)
    yield from (str(above / ".mcp.json") for above in (place, *place.parents))


def read_settings(findings: ScanFindings, file: str) -> ClaudeSettings:
    """The settings of the project; of a file that Claude Code drops only the hooks, to say that they are not there."""
    values = json_object(findings, file)
    return ClaudeSettings.of({"hooks": values.get("hooks")} if findings.refused(file, "") else values)


def find_settings(findings: ScanFindings, settings: ClaudeSettings, file: str) -> tuple[ManifestItem, ...]:
    """The settings' own file, and the output styles, of which the settings choose one."""
    tree, redact = findings.tree, findings.redact
    refused = findings.refused(file, "")
    dropped = redact(refused) if refused else None
    item = ManifestItem(kind=ItemKind.SETTINGS, name=redact(file), file=redact(file), problem=dropped)
    items = [item] if tree.exists(file) else []
    home = f"{posixpath.dirname(file)}/output-styles"
    for style in itertools.islice(tree.files(home, ".md"), MAX_FINDINGS):
        name = posixpath.basename(style).removesuffix(".md")
        problem = None if settings.output_style else redact("the project's settings choose no output style")
        items.append(ManifestItem(kind=ItemKind.OUTPUT_STYLE, name=redact(name), file=redact(style), problem=problem))
    return tuple(items)


def add_hooks(findings: ScanFindings, settings: ClaudeSettings, file: str, *, owner: str | None = None) -> None:
    """A finding for each hook: what it waits for is its name, what it runs its description.

    Args:
        findings: Takes them.
        settings: With the hooks.
        file: In which they stand.
        owner: The call that they wait for, or the plugin that they belong to.
    """
    for event, groups in settings.hooks.items():
        for place, group in enumerate(groups if isinstance(groups, list) else [None]):
            matcher, hooks = _group(group)
            name = f"{event}:{matcher}" if matcher else event
            if not hooks:
                problem = findings.refused(file, "") or "it is not of the shape that hooks have"
                findings.add(ItemKind.HOOK, name, file, problem=problem, announced=False, owner=owner)
            for number, hook in hooks:
                action = next((hook[key] for key in ("command", "prompt", "url", "tool") if hook.get(key)), None)
                description = f"{hook.get('type') or 'hook'}: {action}" if action else None
                refused = findings.refused(file, f"hooks.{event}.{place}.hooks.{number}")
                why = refused or (HOOKS_OFF if settings.hooks_off else None)
                facts = {"description": description, "problem": why, "owner": owner}
                findings.add(ItemKind.HOOK, name, file, announced=False, **facts)


def json_object(findings: ScanFindings, file: str) -> dict[str, Any]:
    """A JSON file that holds an object; anything else counts as empty, and is noted unless the file is missing."""
    try:
        content = json.loads(findings.tree.read(file))
    except Missing:
        return {}
    except (Unfit, ValueError, RecursionError) as problem:
        cause = problem if isinstance(problem, Unfit) else "it is not valid JSON"
        if not findings.refused(file, ""):
            findings.note(f"Nothing in {file} was loaded: {cause}.")
        return {}
    return content if isinstance(content, dict) else {}


def _group(group: object) -> tuple[str, list[tuple[int, dict[str, Any]]]]:
    """What a group waits for, and its hooks with their places in it."""
    if not isinstance(group, dict):
        return "", []
    hooks = group.get("hooks")
    matcher = group.get("matcher")
    listed = [each for each in enumerate(hooks) if isinstance(each[1], dict)] if isinstance(hooks, list) else []
    return matcher if isinstance(matcher, str) else "", listed


def _items(value: object) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


# The second is never loaded; who keeps one may wonder why it does nothing.
FILES = (SETTINGS_FILE, ".claude/settings.local.json")

MAX_FINDINGS = 50

OURS = ("ANTHROPIC_", "CLAUDE_", "CCR_", "OTEL_", "LD_", "DYLD_", "ZELDA_", "BASH_FUNC_")
OURS_TOO = frozenset({
    "ALL_PROXY", "API_FORCE_IDLE_TIMEOUT", "API_TIMEOUT_MS", "BASH_ENV", "ENV", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY",
})  # fmt: skip

# How the model works, openly: a project may commit this, and it is part of what is tested.
STEERING = frozenset({
    "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR",
    "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
    "CLAUDE_CODE_DISABLE_1M_CONTEXT", "CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", "CLAUDE_CODE_DISABLE_CLAUDE_MDS",
    "CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS", "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS", "CLAUDE_CODE_EFFORT_LEVEL",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_SUBAGENT_EFFORT",
})  # fmt: skip

ADDRESS = "would have sent model requests elsewhere"
CREDENTIAL = "would have replaced the session's credential, or run a command to get one"
REQUEST = "would have changed model requests unseen"
SHELL = "would have run code outside the confinement of the session's shells"
TELEMETRY = "would have sent telemetry"
OTHER = "could have changed how Claude Code reaches its model or is controlled"

EFFECTS = {
    "ANTHROPIC_BETAS": REQUEST,
    "ANTHROPIC_CUSTOM_HEADERS": REQUEST,
    "BASH_ENV": SHELL,
    "CLAUDE_CODE_ENABLE_TELEMETRY": TELEMETRY,
    "CLAUDE_CODE_EXTRA_BODY": REQUEST,
    "CLAUDE_CODE_EXTRA_METADATA": REQUEST,
    "CLAUDE_CODE_SHELL": SHELL,
    "CLAUDE_CODE_SHELL_PREFIX": SHELL,
    "CLAUDE_ENV_FILE": SHELL,
}
BY_SIGN = (
    (("OTEL_",), TELEMETRY),
    (("LD_", "DYLD_", "BASH_FUNC_"), SHELL),
    (("_URL", "_HOST", "_SOCKET", "_PROXY", "CLAUDE_CODE_USE_", "PROVIDER_MANAGED"), ADDRESS),
    (("_KEY", "_TOKEN", "_HELPER", "AUTH", "CRED", "OAUTH"), CREDENTIAL),
    (("MODEL",), "would have changed which models are asked"),
)

KEYS = {
    "apiKeyHelper": CREDENTIAL,
    "awsAuthRefresh": CREDENTIAL,
    "awsCredentialExport": CREDENTIAL,
    "forceLoginMethod": CREDENTIAL,
    "forceLoginOrgUUID": CREDENTIAL,
    "gcpAuthRefresh": CREDENTIAL,
    "otelHeadersHelper": TELEMETRY,
    "policyHelper": "would have run a command to get more settings",
    "policyHelpers": "would have run commands to get more settings",
    "processWrapper": SHELL,
    "proxyAuthHelper": CREDENTIAL,
    "sandbox": "would have put a sandbox of Claude Code's own in place of Zelda's",
}


@dataclass(frozen=True)
class SettingOverrides:
    """What does not take effect, and the variables that have to be pinned for that."""

    findings: tuple[SettingFinding, ...] = ()
    variables: tuple[str, ...] = ()


def find_overrides(workspace: Workspace, redact: Redactor) -> SettingOverrides:
    """Read the settings that the session will meet; in a folder that is gone there are none."""
    try:
        with Tree(workspace.path) as tree:
            looking = ScanFindings(tree, redact)
            overrides = [(file, *finding) for file in FILES for finding in _setting_effects(json_object(looking, file))]
    except (OSError, Exhausted):
        overrides = []
    findings = [
        SettingFinding(file=redact(file), setting=redact(setting[:200]), effect=f"It {effect}; it did not take effect.")
        for file, setting, effect in overrides[:MAX_FINDINGS]
    ]
    variables = {setting.removeprefix("env.") for _, setting, _ in overrides if setting.startswith("env.")}
    return SettingOverrides(tuple(findings), tuple(sorted(variables)))


def is_ours(variable: str) -> bool:
    """Whether a variable is not the project's to set; Claude Code takes proxies in lower case too."""
    name = variable.upper()
    return name in OURS_TOO or (name.startswith(OURS) and name not in STEERING)


def _setting_effects(settings: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Setting and effect."""
    yield from ((key, effect) for key, effect in KEYS.items() if settings.get(key))
    variables = settings.get("env")
    for name in variables if isinstance(variables, dict) else ():
        if is_ours(name):
            yield f"env.{name}", _effect(name.upper())


def _effect(name: str) -> str:
    by_sign = (effect for signs, effect in BY_SIGN if any(sign in name for sign in signs))
    return EFFECTS.get(name) or next(by_sign, OTHER)
