"""Plugins that a project brings: which of them a session has, what is in them, and what Zelda pins of them.

A mod is JavaScript that a plugin has Claude Code run inside itself: it reads the session's token, answers tool calls
itself and adds to requests. Whatever cannot be read is taken for one.
"""

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zelda_ci.domain.kinds import CLAUDE, KINDS, PLUGIN_MANIFEST, ItemKind
from zelda_ci.domain.workspace import SettingFinding, Workspace
from zelda_ci.execution.agent import PluginPins
from zelda_ci.execution.manifest.documents import Documents, SteeringFolder
from zelda_ci.execution.manifest.settings import SETTINGS_FILE, ClaudeSettings, add_hooks, json_object
from zelda_ci.execution.manifest.tree import Exhausted, Missing, ScanFindings, Tree, Unfit
from zelda_ci.redact import Redactor

SKILLS_DIR = "skills-dir"
HOOKS_FILE = "hooks/hooks.json"
MODS_KEY = "isolation.mods"
IS_MOD = f"it holds a mod, code that runs inside Claude Code: only where {MODS_KEY} is true, a session has it"
ALLOWED = f"It runs inside Claude Code, as {MODS_KEY} allows: it may have forged whatever the session says of itself."
# What else a plugin may hold, which the model does not see: key of the manifest, and file or folder.
UNJUDGED = {
    ItemKind.OUTPUT_STYLE: ("outputStyles", "output-styles"),
    ItemKind.SETTINGS: ("settings", "settings.json"),
    ItemKind.LSP_SERVER: ("lspServers", ".lsp.json"),
    ItemKind.MONITOR: ("monitors", "monitors/monitors.json"),
    ItemKind.PROGRAMS: ("bin", "bin"),
}
UNDONE = "it did not take effect"
OUTSIDE = "it comes from outside of this repository, and nothing is fetched for a test run"
SWITCHED_OFF = "the project's settings switch it off (enabledPlugins)"
# What Claude Code is told to look for in place of a marketplace that it would fetch.
NOWHERE = "/nonexistent"


@dataclass(frozen=True)
class Plugin:
    """A plugin of the project, or one that its settings enable."""

    id: str
    """As settings name it: `name@marketplace`."""
    file: str
    root: str | None = None
    """Its folder in the tree; absent where it has none there."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Its manifest, with what the marketplace says of it."""
    problem: str | None = None
    mod_file: str | None = None
    """The file that brings a mod."""

    @property
    def name(self) -> str:
        return self.id.rpartition("@")[0]


def find_plugins(findings: ScanFindings, start: str, settings: ClaudeSettings) -> Iterator[Plugin]:
    """Those in the skills folder of the session, and those that its settings enable."""
    tree, home = findings.tree, f"{_in(start, CLAUDE)}/{KINDS[ItemKind.SKILL].folder}"
    enabled = {key.lower(): value for key, value in settings.plugins.items()}
    for entry in tree.entries(home):
        file = f"{entry.path}/{PLUGIN_MANIFEST}"
        if entry.is_folder and tree.exists(file):
            about = json_object(findings, file)
            name = about.get("name")
            plugin = f"{name if isinstance(name, str) and name else entry.name}@{SKILLS_DIR}"
            problem = None if isinstance(name, str) and name else "its plugin.json gives no name"
            if enabled.get(plugin.lower()) is False:
                problem = SWITCHED_OFF
            yield Plugin(plugin, file, entry.path, about, problem, _mod_file(tree, entry.path, about))
    for plugin, value in settings.plugins.items():
        if value and not plugin.lower().endswith(f"@{SKILLS_DIR}"):
            yield _of_marketplace(findings, plugin, settings, _in(start, SETTINGS_FILE))


def _of_marketplace(findings: ScanFindings, plugin: str, settings: ClaudeSettings, file: str) -> Plugin:
    """A plugin that settings enable; the paths of marketplaces begin at the top of the repository."""
    name, _, market = plugin.rpartition("@")
    folder = market_folder(settings.marketplaces.get(market))
    if folder is None:
        return Plugin(plugin, file, problem=OUTSIDE)
    listing = json_object(findings, _in(folder, ".claude-plugin/marketplace.json"))
    listed = listing.get("plugins")
    entries = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    entry = next((each for each in entries if each.get("name") == name), None)
    if entry is None:
        return Plugin(plugin, file, problem=f"the marketplace {market} does not list it")
    source = entry.get("source")
    root = _inside(_in(folder, source)) if isinstance(source, str) else None
    if root is None:
        return Plugin(plugin, file, problem=OUTSIDE)
    if not findings.tree.exists(root):
        return Plugin(plugin, file, problem=f"its folder {root} does not exist")
    manifest = json_object(findings, _in(root, PLUGIN_MANIFEST))
    about = {**{key: value for key, value in entry.items() if key != "source"}, **manifest}
    mod_file = _mod_file(findings.tree, root, manifest, entry)
    return Plugin(plugin, file, root, about, mod_file=mod_file)


def market_folder(declared: object) -> str | None:
    """Where in the tree a marketplace lies that settings declare; nothing where it is not a folder there."""
    match declared:
        case {"source": {"source": "directory", "path": str(path)}}:
            return _inside(path)
        case {"source": {"source": "file", "path": str(path)}}:
            return _inside(posixpath.dirname(posixpath.dirname(path)) or ".")
        case _:
            return None


def _inside(path: str) -> str | None:
    place = posixpath.normpath(path)
    return None if place.startswith(("/", "~", "..")) else "" if place == "." else place


def _in(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _mod_file(tree: Tree, root: str, *manifests: Mapping[str, Any]) -> str | None:
    """The file in which a plugin names JavaScript to run, or that cannot be read: nobody knows what it names."""
    named = [path for each in manifests for path in _paths(each.get("hooks"))]
    for path in (HOOKS_FILE, *named):
        file = posixpath.normpath(_in(root, path))
        try:
            if _names_modules(json.loads(tree.read(file))):
                return file
        except Missing:
            continue
        except (Unfit, ValueError, RecursionError):
            return file
    return _in(root, PLUGIN_MANIFEST) if any(map(_names_modules, manifests)) else None


def _names_modules(value: Any) -> bool:
    if isinstance(value, Mapping):
        return "modules" in value or any(map(_names_modules, value.values()))
    return isinstance(value, list) and any(map(_names_modules, value))


def _paths(value: object) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return [path for path in listed if isinstance(path, str)]


def add_plugins(
    findings: ScanFindings, start: str, settings: ClaudeSettings, documents: Documents
) -> Iterator[tuple[str, Mapping[str, Any], str, str]]:
    """Findings of all plugins, and of what is in them; gives their MCP servers: file, servers, prefix and plugin."""
    for plugin in find_plugins(findings, start, settings):
        problem = plugin.problem or (IS_MOD if plugin.mod_file else None)
        described = plugin.about.get("description")
        facts = {"description": described if isinstance(described, str) else None, "problem": problem}
        findings.add(ItemKind.PLUGIN, plugin.id, plugin.file, **facts)
        if plugin.root is None or plugin.problem:
            continue
        if plugin.mod_file:
            findings.add(ItemKind.MOD, plugin.name, plugin.mod_file, owner=plugin.id, announced=False)
        documents.add_place(
            SteeringFolder(plugin.root, plugin=plugin.name, owner=plugin.id, folders=dict(_folders(plugin)))
        )
        for kind, (key, usual) in UNJUDGED.items():
            places = [posixpath.normpath(_in(plugin.root, path)) for path in (usual, *_paths(plugin.about.get(key)))]
            found = [place for place in dict.fromkeys(places) if findings.tree.exists(place)]
            for file in found or ([plugin.file] if plugin.about.get(key) else []):
                name, note = f"{plugin.name}:{KINDS[kind].word}", "what it does is not judged"
                findings.add(kind, name, file, owner=plugin.id, announced=False, note=note)
        for file, hooks in _objects(findings, plugin, "hooks", HOOKS_FILE):
            inner = hooks.get("hooks", {} if "modules" in hooks else hooks)
            known = ClaudeSettings(hooks_off=settings.hooks_off, hooks=inner if isinstance(inner, dict) else {})
            add_hooks(findings, known, file, owner=plugin.id)
        for file, servers in _objects(findings, plugin, "mcpServers", ".mcp.json"):
            inner = servers.get("mcpServers", servers)
            yield file, inner if isinstance(inner, dict) else {}, f"plugin:{plugin.name}:", plugin.id


def _folders(plugin: Plugin) -> Iterator[tuple[str, Sequence[str]]]:
    """What a manifest names instead of the usual folders; skills as well as it."""
    for kind in (ItemKind.SKILL, ItemKind.COMMAND, ItemKind.AGENT):
        folder = KINDS[kind].folder
        usual = [_in(plugin.root or "", folder)]
        if named := [posixpath.normpath(_in(plugin.root or "", path)) for path in _paths(plugin.about.get(folder))]:
            yield folder, list(dict.fromkeys([*(usual if kind is ItemKind.SKILL else []), *named]))


def _objects(findings: ScanFindings, plugin: Plugin, key: str, usual: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """JSON objects of a plugin: in the usual file, in files that its manifest names, or in the manifest itself."""
    value = plugin.about.get(key)
    for path in dict.fromkeys((usual, *_paths(value))):
        file = posixpath.normpath(_in(plugin.root or "", path))
        yield file, json_object(findings, file)
    if isinstance(value, dict):
        yield plugin.file, value


def find_pins(workspace: Workspace, redact: Redactor, *, mods: bool) -> PluginPins:
    """What Zelda sets above the project's settings: no mods, and nothing that comes from outside of the repository.

    Raises nothing: a tree that cannot be read to its end has its hooks switched off, since a mod may be among them.
    """
    start = "" if workspace.path == workspace.root else workspace.path.relative_to(workspace.root).as_posix()
    try:
        with Tree(workspace.root) as tree:
            findings = ScanFindings(tree, redact)
            settings = ClaudeSettings.of(json_object(findings, _in(start, SETTINGS_FILE)))
            plugins = list(find_plugins(findings, start, settings))
            unknown = None if mods else _unknown_place(tree, start)
    except (OSError, Exhausted):
        settings, plugins, unknown = ClaudeSettings(), [], None if mods else CLAUDE
    enabled: dict[str, bool] = {}
    markets: dict[str, Any] = {}
    told: list[tuple[str, str, str]] = []
    if unknown:
        told.append((unknown, "hooks", f"It could have held a mod, and cannot be read to its end; {UNDONE}."))
    spelled = {key.lower(): key for key in settings.plugins}
    for plugin in plugins:
        is_mod, is_outside = plugin.mod_file and not mods, plugin.problem == OUTSIDE
        if is_mod or is_outside:
            enabled |= dict.fromkeys({plugin.id, spelled.get(plugin.id.lower(), plugin.id)}, False)
            why = "would have run inside Claude Code (a mod)" if is_mod else "would have been fetched from elsewhere"
            told.append((plugin.mod_file or plugin.file, f"enabledPlugins.{plugin.id}", f"It {why}; {UNDONE}."))
        elif plugin.mod_file and not plugin.problem:
            told.append((plugin.mod_file, MODS_KEY, ALLOWED))
    for name, declared in settings.marketplaces.items():
        folder = market_folder(declared)
        place = NOWHERE if folder is None else str(workspace.root / folder)
        markets[name] = {"source": {"source": "directory", "path": place}}
        if folder is None:
            file = _in(start, SETTINGS_FILE)
            told.append((file, f"extraKnownMarketplaces.{name}", f"It would have been fetched; {UNDONE}."))
    pins = {"disableAllHooks": bool(unknown), "enabledPlugins": enabled, "extraKnownMarketplaces": markets}
    installed = (it for it in plugins if it.root is not None and not it.id.endswith(f"@{SKILLS_DIR}"))
    overruled = [SettingFinding(file=redact(file), setting=redact(key[:200]), effect=why) for file, key, why in told]
    return PluginPins(
        {key: value for key, value in pins.items() if value},
        any(it.id not in enabled for it in installed),
        tuple(overruled),
    )


def _unknown_place(tree: Tree, start: str) -> str | None:
    """Where a plugin may lie that cannot be looked at: behind a link out of the tree, or among too many others."""
    home = _in(start, CLAUDE)
    for folder in (home, f"{home}/{KINDS[ItemKind.SKILL].folder}"):
        if not tree.is_inside(folder):
            return folder
    for entry in tree.entries(f"{home}/{KINDS[ItemKind.SKILL].folder}"):
        if not (tree.is_inside(entry.path) and tree.is_inside(f"{entry.path}/{PLUGIN_MANIFEST}")):
            return entry.path
    return home if tree.crowded else None
