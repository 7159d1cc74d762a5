"""What Zelda sets above a project's settings, so that they change neither its requests nor its confinement."""

import posixpath
from contextlib import suppress
from itertools import chain
from typing import Any

from zelda_ci.domain.kinds import CLAUDE, PLUGIN_MANIFEST
from zelda_ci.domain.workspace import SettingFinding, Workspace
from zelda_ci.execution.launch import Pins
from zelda_ci.execution.manifest.folders import MODS_KEY, NAMELESS, OUTSIDE, SKILLS_FOLDER, find_plugins, market_folder
from zelda_ci.execution.manifest.tree import SETTINGS_FILE, Missing, ScanFindings, Unfit, parse_object, table
from zelda_ci.redact import Redactor

# The second is never loaded; who keeps one may wonder why it does nothing.
FILES = (SETTINGS_FILE, f"{CLAUDE}/settings.local.json")
MAX_FINDINGS = 50
MAX_NAME_LENGTH = 200
# Stands for a marketplace that Claude Code would fetch.
NOWHERE = "/nonexistent"
UNDONE = "it did not take effect"
MODS_ALLOWED = (
    f"It runs inside Claude Code, as {MODS_KEY} allows: it may have forged whatever the session says of itself."
)

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
# Settings that run a program, or change how Claude Code reaches its model or confines its shells.
KEYS = (
    "apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "forceLoginMethod", "forceLoginOrgUUID", "gcpAuthRefresh",
    "otelHeadersHelper", "policyHelper", "policyHelpers", "processWrapper", "proxyAuthHelper", "sandbox",
)  # fmt: skip
EFFECT = f"It could have changed model requests, credentials or what confines the session; {UNDONE}."


def find_pins(workspace: Workspace, redact: Redactor, *, mods: bool) -> Pins:
    """Return what is set above the settings that the session will meet; with `mods`, plugins may run in Claude Code."""
    # A setup command may have changed them.
    scan = ScanFindings(workspace.root, workspace.path, redact)
    files = [posixpath.join(scan.start, name) for name in FILES]
    with suppress(Unfit):
        parse_object(files[0], scan.tree.read(files[0]))
    values = {file: scan.json_object(file) for file in files}
    scan.settings = values[files[0]]
    overruled = [(file, key, EFFECT) for file in files for key in KEYS if values[file].get(key)]
    variables = [(file, name) for file in files for name in table(values[file], "env") if is_ours(name)]
    overruled += [(file, f"env.{name}", EFFECT) for file, name in variables]
    del overruled[MAX_FINDINGS:]
    enabled, markets = dict[str, bool](), dict[str, Any]()
    plugins = list(find_plugins(scan))
    # By its name alone a plugin can be switched off: one that Zelda cannot read may have another.
    nameless = (it.mod_file for it in plugins if it.problem == NAMELESS and it.mod_file)
    # A plugin may lie where nobody can look, behind a link out of the tree.
    skills = posixpath.join(scan.start, SKILLS_FOLDER)
    within = (place for it in scan.tree.entries(skills) for place in (it.path, f"{it.path}/{PLUGIN_MANIFEST}"))
    places = (posixpath.dirname(skills), skills, *within)
    closed = (it for it in places if not isinstance(scan.tree.problem(it), Missing | None))
    unknown = None if mods else next(chain(closed, nameless), None)
    if unknown:
        overruled.append((unknown, "hooks", f"A mod may be there, where Zelda cannot read; {UNDONE}."))
    for plugin in plugins:
        is_mod = plugin.mod_file is not None and not mods
        if is_mod or plugin.problem == OUTSIDE:
            why = "would have run inside Claude Code (a mod)" if is_mod else "would have been fetched from elsewhere"
            spelled = (key for key in table(scan.settings, "enabledPlugins") if key.lower() == plugin.id.lower())
            enabled |= dict.fromkeys((plugin.id, *spelled), False)
            overruled.append((plugin.mod_file or plugin.file, f"enabledPlugins.{plugin.id}", f"It {why}; {UNDONE}."))
        elif plugin.mod_file and not plugin.problem:
            overruled.append((plugin.mod_file, MODS_KEY, MODS_ALLOWED))
    for name, declared in table(scan.settings, "extraKnownMarketplaces").items():
        folder = market_folder(declared)
        place = NOWHERE if folder is None else str(workspace.root / folder)
        markets[name] = {"source": {"source": "directory", "path": place}}
        if folder is None:
            overruled.append((files[0], f"extraKnownMarketplaces.{name}", f"It would have been fetched; {UNDONE}."))
    set_above = {"disableAllHooks": bool(unknown), "enabledPlugins": enabled, "extraKnownMarketplaces": markets}
    installed = (it.id for it in plugins if it.root is not None and it.file == files[0])
    return Pins(
        settings={key: value for key, value in set_above.items() if value},
        variables=tuple(sorted({name for _, name in variables})),
        installs=any(plugin not in enabled for plugin in installed),
        findings=tuple(
            SettingFinding(file=redact(file), setting=redact(name[:MAX_NAME_LENGTH]), effect=effect)
            for file, name, effect in overruled
        ),
    )


def is_ours(variable: str) -> bool:
    """Return whether a variable is not the project's to set; Claude Code takes proxies in lower case too."""
    name = variable.upper()
    return name in OURS_TOO or (name.startswith(OURS) and name not in STEERING)
