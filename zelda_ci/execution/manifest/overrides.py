"""What the project's settings say about the way to the model and about confinement: found, pinned, and told.

Claude Code knows more than a thousand variables. So of those with its own prefixes only the ones that are known to
steer the work are the project's to set; all others are Zelda's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from zelda_ci.domain.isolation import SettingFinding
from zelda_ci.domain.workspace import Workspace
from zelda_ci.execution.manifest.findings import Findings
from zelda_ci.execution.manifest.settings import json_object
from zelda_ci.execution.manifest.tree import Exhausted, Tree
from zelda_ci.redact import Redactor

FILES = (".claude/settings.json", ".claude/settings.local.json")
"""The second is never loaded; who keeps one may wonder why it does nothing."""

MOST_FINDINGS = 50

OURS = ("ANTHROPIC_", "CLAUDE_", "CCR_", "OTEL_", "LD_", "DYLD_", "ZELDA_", "BASH_FUNC_")
OURS_TOO = frozenset({
    "ALL_PROXY", "API_FORCE_IDLE_TIMEOUT", "API_TIMEOUT_MS", "BASH_ENV", "ENV", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY",
})  # fmt: skip

STEERING = frozenset({
    "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR",
    "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
    "CLAUDE_CODE_DISABLE_1M_CONTEXT", "CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", "CLAUDE_CODE_DISABLE_CLAUDE_MDS",
    "CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS", "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS", "CLAUDE_CODE_EFFORT_LEVEL",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_SUBAGENT_EFFORT",
})  # fmt: skip
"""How the model works, openly: a project may commit this, and it is part of what is tested."""

ADDRESS = "would have sent model requests elsewhere"
CREDENTIAL = "would have replaced the session's credential, or run a command to get one"
REQUEST = "would have changed model requests unseen"
SHELL = "would have run code outside the confinement of the session's shells"
TELEMETRY = "would have sent telemetry"
OTHER = "could have changed how Claude Code reaches its model or is led"

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
class Overrides:
    """What does not take effect, and the variables that have to be pinned for that."""

    findings: tuple[SettingFinding, ...] = ()
    variables: tuple[str, ...] = ()


def find(workspace: Workspace, redact: Redactor) -> Overrides:
    """Read the settings that the session will meet; in a folder that is gone there are none."""
    try:
        with Tree(workspace.path) as tree:
            looking = Findings(tree, redact)
            told = [(file, *one) for file in FILES for one in _told(json_object(looking, file))]
    except (OSError, Exhausted):
        told = []
    findings = [
        SettingFinding(file=redact(file), setting=redact(setting[:200]), effect=f"It {effect}; it did not take effect.")
        for file, setting, effect in told[:MOST_FINDINGS]
    ]
    variables = {setting.removeprefix("env.") for _, setting, _ in told if setting.startswith("env.")}
    return Overrides(tuple(findings), tuple(sorted(variables)))


def is_ours(variable: str) -> bool:
    """Whether a variable is not the project's to set; Claude Code takes proxies in lower case too."""
    name = variable.upper()
    return name in OURS_TOO or (name.startswith(OURS) and name not in STEERING)


def _told(settings: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Setting and effect."""
    yield from ((key, effect) for key, effect in KEYS.items() if settings.get(key))
    variables = settings.get("env")
    for name in variables if isinstance(variables, dict) else ():
        if is_ours(name):
            yield f"env.{name}", _effect(name.upper())


def _effect(name: str) -> str:
    by_sign = (effect for signs, effect in BY_SIGN if any(sign in name for sign in signs))
    return EFFECTS.get(name) or next(by_sign, OTHER)
