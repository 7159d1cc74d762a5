"""Plugins that a project brings: which of them a session has, and what is in them.

A mod is JavaScript that a plugin has Claude Code run inside itself: it reads the session's token, answers tool calls
itself and adds to requests. Whatever cannot be read is taken for one.
"""

import json
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from zelda_ci.domain.kinds import CLAUDE, KINDS, PLUGIN_MANIFEST, ItemKind
from zelda_ci.execution.manifest.documents import Documents, SteeringFolder
from zelda_ci.execution.manifest.settings import SERVERS_FILE, SETTINGS_FILE, ClaudeSettings, add_hooks, table, texts
from zelda_ci.execution.manifest.tree import Missing, ScanFindings, Tree, Unfit

SKILLS_DIR = "skills-dir"
MARKETPLACE_FILE = ".claude-plugin/marketplace.json"
HOOKS_FILE = "hooks/hooks.json"
MODS_KEY = "isolation.mods"
IS_MOD = f"it holds a mod, code that runs inside Claude Code: only where {MODS_KEY} is true, a session has it"
OUTSIDE = "it comes from outside of this repository, and nothing is fetched for a test run"
NAMELESS = "its plugin.json gives no name"
SWITCHED_OFF = "the project's settings switch it off (enabledPlugins)"


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

    def objects(self, findings: ScanFindings, key: str, usual: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield JSON objects with their files: in the usual place, where the manifest says, and in that itself."""
        named = (usual, *texts(self.about.get(key)))
        files = dict.fromkeys(posixpath.normpath(posixpath.join(self.root or "", path)) for path in named)
        yield from ((file, findings.json_object(file)) for file in files)
        yield self.file, table(self.about, key)


def find_plugins(findings: ScanFindings, start: str, settings: ClaudeSettings) -> Iterator[Plugin]:
    """Yield those in the skills folder of the session, and those that its settings enable."""
    tree, wanted = findings.tree, table(settings.values, "enabledPlugins")
    off = {key.lower() for key, value in wanted.items() if value is False}
    for entry in tree.entries(skills_folder(start)):
        file = f"{entry.path}/{PLUGIN_MANIFEST}"
        if entry.is_folder and tree.exists(file):
            about = findings.json_object(file)
            name = about.get("name")
            problem = None if isinstance(name, str) and name else NAMELESS
            plugin = f"{entry.name if problem else name}@{SKILLS_DIR}"
            if plugin.lower() in off and not problem:
                problem = SWITCHED_OFF
            yield Plugin(plugin, file, entry.path, about, problem, _mod_file(tree, entry.path, about))
    for plugin, value in wanted.items():
        if value and not plugin.lower().endswith(f"@{SKILLS_DIR}"):
            yield _of_marketplace(findings, plugin, settings, posixpath.join(start, SETTINGS_FILE))


def skills_folder(start: str) -> str:
    """Return the folder of skills, and plugins, of a session that works in a folder."""
    return posixpath.join(start, CLAUDE, KINDS[ItemKind.SKILL].folder)


def _of_marketplace(findings: ScanFindings, plugin: str, settings: ClaudeSettings, file: str) -> Plugin:
    """Return a plugin that settings enable; the paths of marketplaces begin at the top of the repository."""
    name, _, market = plugin.rpartition("@")
    folder = market_folder(table(settings.values, "extraKnownMarketplaces").get(market))
    if folder is None:
        return Plugin(plugin, file, problem=OUTSIDE)
    listed = findings.json_object(posixpath.join(folder, MARKETPLACE_FILE)).get("plugins")
    entries = [table(each) for each in listed] if isinstance(listed, list) else []
    entry = next((each for each in entries if each.get("name") == name), None)
    if entry is None:
        return Plugin(plugin, file, problem=f"the marketplace {market} does not list it")
    source = entry.get("source")
    root = _inside(posixpath.join(folder, source)) if isinstance(source, str) else None
    if root is None:
        return Plugin(plugin, file, problem=OUTSIDE)
    if not findings.tree.exists(root):
        return Plugin(plugin, file, problem=f"its folder {root} does not exist")
    manifest = findings.json_object(posixpath.join(root, PLUGIN_MANIFEST))
    return Plugin(plugin, file, root, {**entry, **manifest}, None, _mod_file(findings.tree, root, manifest, entry))


def market_folder(declared: object) -> str | None:
    """Return where in the tree a marketplace lies that settings declare; nothing where it is not a folder there."""
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


def _mod_file(tree: Tree, root: str, *manifests: Mapping[str, Any]) -> str | None:
    """Return the file in which a plugin names JavaScript to run, or that cannot be read: nobody knows what it names."""
    named = (path for each in manifests for path in texts(each.get("hooks")))
    for path in (PLUGIN_MANIFEST, HOOKS_FILE, *named):
        file = posixpath.normpath(posixpath.join(root, path))
        try:
            content = json.loads(tree.read(file))
        except Missing:
            continue
        except (Unfit, ValueError, RecursionError):
            return file
        if _names_modules(content):
            return file
    return posixpath.join(root, PLUGIN_MANIFEST) if any(map(_names_modules, manifests)) else None


def _names_modules(value: object) -> bool:
    """Return whether some key of JSON is `modules`; of what is nested too deep nobody knows."""
    try:
        return '"modules": ' in json.dumps(value)
    except RecursionError:
        return True


def add_plugins(
    findings: ScanFindings, start: str, settings: ClaudeSettings, documents: Documents
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Add all plugins and what is in them; yield each file with MCP servers: plugin, file, and servers by name."""
    for plugin in find_plugins(findings, start, settings):
        problem = plugin.problem or (IS_MOD if plugin.mod_file else None)
        description = next(iter(texts(plugin.about.get("description"))), None)
        findings.add(ItemKind.PLUGIN, plugin.id, plugin.file, description=description, problem=problem)
        if plugin.root is None or plugin.problem:
            continue
        if plugin.mod_file:
            findings.add(ItemKind.MOD, plugin.name, plugin.mod_file, owner=plugin.id, announced=False)
        documents.add(SteeringFolder(plugin.root, plugin=plugin.id, about=plugin.about))
        for file, hooks in plugin.objects(findings, "hooks", HOOKS_FILE):
            add_hooks(findings, file, hooks.get("hooks", {} if "modules" in hooks else hooks), settings, plugin.id)
        for file, servers in plugin.objects(findings, "mcpServers", SERVERS_FILE):
            inner = table(servers.get("mcpServers", servers))
            yield plugin.id, file, {f"plugin:{plugin.name}:{name}": server for name, server in inner.items()}
