"""What a folder of steering holds, `.claude` or a plugin: documents to call, hooks and MCP servers; and the plugins.

A mod is JavaScript that a plugin has Claude Code run inside itself: it reads the session's token, answers tool calls
itself and adds to requests. Whatever cannot be read is taken for one.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from posixpath import basename, dirname, join, normpath
from typing import Any

from zelda_ci.domain import kinds
from zelda_ci.domain.kinds import CLAUDE, KINDS, PLUGIN_MANIFEST, SKILL_FILE, ItemKind, Shown
from zelda_ci.execution.manifest.front_matter import MarkdownDocument
from zelda_ci.execution.manifest.tree import SERVERS_FILE, SETTINGS_FILE, Missing, ScanFindings, Unfit, table, texts

RESERVED = "synced"
NO_SKILL = f"a skill is a folder with a {SKILL_FILE} right in it"
NESTED_ONLY = "Claude Code loads {}s only from the .claude folder of the project and of the folders above it"
WITHOUT_MEMORY = "it does not see CLAUDE.md files and rules (omitClaudeMd)"
HOOKS_OFF = "the project's settings switch all hooks off (disableAllHooks)"
SAME_NAME = " has the same name and takes its place"
SKILLS_DIR = "skills-dir"
SKILLS_FOLDER = f"{CLAUDE}/{KINDS[ItemKind.SKILL].folder}"
MARKETPLACE_FILE = ".claude-plugin/marketplace.json"
HOOKS_FILE = "hooks/hooks.json"
MODS_KEY = "isolation.mods"
IS_MOD = f"it holds a mod, code that runs inside Claude Code: only where {MODS_KEY} is true, a session has it"
OUTSIDE = "it comes from outside of this repository, and nothing is fetched for a test run"
NAMELESS = "its plugin.json gives no name"
SWITCHED_OFF = "the project's settings switch it off (enabledPlugins)"
# The name of a workflow is in its code, which nobody here runs: the first that is written down in `meta` counts.
_NAMED = re.compile(r"""\bname\s*:\s*(["'`])(.+?)\1""")


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

    @property
    def name(self) -> str:
        return self.id.rpartition("@")[0]

    def objects(self, findings: ScanFindings, key: str, usual: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield JSON objects with their files: in the usual place, where the manifest says, and in that itself."""
        named = (usual, *texts(self.about.get(key)))
        files = dict.fromkeys(normpath(join(self.root or "", path)) for path in named)
        yield from ((file, findings.json_object(file)) for file in files)
        yield self.file, table(self.about, key)


@dataclass(frozen=True)
class SteeringFolder:
    """A folder that holds folders of steering: `.claude`, or a plugin."""

    findings: ScanFindings
    home: str
    base: str = ""
    """Folder that its globs count from."""
    below: str = ""
    """Folder whose files it waits for; empty where it is there from the start."""
    plugin: Plugin | None = None

    def within(self, kind: ItemKind) -> Iterable[str]:
        """Return where files of a kind lie: a plugin's manifest may name other places, of skills further ones."""
        folder = KINDS[kind].folder
        named = texts(self.plugin.about.get(folder)) if self.plugin else ()
        usual = (folder,) if kind is ItemKind.SKILL or not named else ()
        return dict.fromkeys(normpath(join(self.home, path)) for path in (*usual, *named))

    def named(self, name: str) -> str:
        """Return a name as the session knows it: that of a plugin stands before all names in it."""
        return f"{self.plugin.name}:{name}" if self.plugin else name

    def add_documents(self) -> None:
        """Add skills, commands, sub-agents and workflows; of several of one name the first that is added counts."""
        # Kinds that lie in folders of their own and are called, in the order in which they take names.
        for kind in (kind for kind, row in KINDS.items() if row.folder and row.used == "called"):
            for file, path in self._files(kind):
                if document := self.findings.document(kind, self.named(path), file):
                    name, facts = self._described(kind, path, document)
                    self._add_called(kind, self.named(name), file, document, facts)

    def _files(self, kind: ItemKind) -> Iterator[tuple[str, str]]:
        """Yield the files of a kind that Claude Code reads, each with the name that its path makes."""
        (ending, *_), found, tree = KINDS[kind].files, dict[str, str](), self.findings.tree
        if kind is ItemKind.SKILL:
            for entry in (entry for home in self.within(kind) for entry in tree.entries(home)):
                file = f"{entry.path}/{SKILL_FILE}"
                is_plugin = entry.is_folder and tree.exists(f"{entry.path}/{PLUGIN_MANIFEST}")
                if entry.is_folder and tree.exists(file):
                    yield file, entry.name
                elif not is_plugin if entry.is_folder else entry.name.endswith(".md"):
                    self.findings.add(kind, entry.name.removesuffix(".md"), entry.path, problem=NO_SKILL)
            return
        for home in self.within(kind):
            if home.endswith(ending):
                found[home] = basename(home).removesuffix(ending)
            for file in tree.files(home, ending):
                found[file] = file.removeprefix(f"{home}/").removesuffix(ending).replace("/", ":")
        if kind is ItemKind.AGENT:
            # Of several with one name, Claude Code takes the last by path.
            yield from sorted(found.items(), reverse=True)
        elif kind is ItemKind.WORKFLOW:
            yield from ((file, path) for file, path in found.items() if not self.below and ":" not in path)
        else:
            # Where a folder has a SKILL.md, in whatever case, it is the command, and no other file of it.
            skills = [file for file in sorted(found, reverse=True) if basename(file).lower() == SKILL_FILE.lower()]
            found |= {file: found[file].rpartition(":")[0] or basename(dirname(file)) for file in skills}
            chosen = {dirname(file): file for file in skills}
            yield from ((file, path) for file, path in found.items() if chosen.get(dirname(file), file) == file)

    def _described(self, kind: ItemKind, path: str, document: MarkdownDocument) -> tuple[str, dict[str, Any]]:
        """Return the name of a document, and what it says of itself."""
        problem = NESTED_ONLY.format(KINDS[kind].word) if self.below else None
        if kind is ItemKind.WORKFLOW:
            found = _NAMED.search(document.body)
            return found[2] if found else path, {"problem": None if found else "its code gives no name in `meta`"}
        if kind is ItemKind.AGENT:
            given, description, stem = document.words("name"), document.words("description"), path.rpartition(":")[2]
            # In a plugin, folders are part of the name.
            name = f"{path.removesuffix(stem) if self.plugin else ''}{given or stem}"
            absent = [key for key, value in (("name", given), ("description", description)) if value is None]
            if absent:
                problem = f"its head gives no {' and no '.join(absent)}"
            elif not problem and given and (given.startswith("-") or ":" in given):
                problem = "its name begins with a dash, or holds a colon as names in plugins do"
            note = WITHOUT_MEMORY if document.fields.get("omitClaudeMd") in (True, "true") else None
            facts: dict[str, Any] = {"description": description, "note": note, "problem": problem}
            is_main = self.named(name) == self.findings.settings.get("agent") and not self.below
            return name, facts | ({"is_main": True, "text": document.body.strip()} if is_main else {})
        facts = {"description": document.offer or None, "announced": document.says("user-invocable", default=True)}
        if kind is ItemKind.COMMAND:
            return path, facts | {"problem": problem}
        label, is_reserved = document.text("name"), path == RESERVED and not self.plugin
        facts |= {"paths": document.paths, "base": self.base, "below": self.below}
        facts["label"] = self.named(label) if label and label != path else None
        return path, facts | {"problem": f"the folder name {RESERVED!r} is reserved" if is_reserved else None}

    def _add_called(
        self, kind: ItemKind, name: str, file: str, document: MarkdownDocument, facts: dict[str, Any]
    ) -> None:
        """Add something to call, with what the model sees of it by its head and by the project's settings."""
        call, settings = KINDS[kind].call, self.findings.settings
        is_skill = call == "Skill"
        # These know none of plugins and sub-agents.
        override = table(settings, "skillOverrides").get(name) if is_skill and not self.plugin else None
        if override == "off":
            facts["problem"] = facts["problem"] or "the project's settings switch it off (skillOverrides)"
        facts |= {"shown": Shown.NAME if override == "name-only" else Shown.DESCRIPTION}
        if denied := self.findings.denial(call, name, facts.get("label")):
            rule, is_whole = denied
            # A skill that a rule names stays in the listing, and each call is refused.
            facts |= {"shown": Shown.DENIED if is_skill and not is_whole else Shown.HIDDEN, "denied": (rule,)}
        is_hidden = is_skill and document.says("disable-model-invocation", default=False)
        if is_hidden or override == "user-invocable-only":
            facts["shown"] = Shown.HIDDEN
        if not (facts["problem"] or self.below or kind is ItemKind.WORKFLOW):
            # Skills and commands share their names.
            same = self.findings.claim("file", self.findings.tree.real(file) if is_skill else file, file)
            if same != file:
                facts |= {"problem": f"it is the same file as {same}", "shadowed": True}
            elif (first := self.findings.claim(call, name, file)) != file:
                facts |= {"problem": f"{first}{SAME_NAME}", "shadowed": True}
        self.findings.add(kind, name, file, owner=self.plugin and self.plugin.id, **facts)
        if not (facts["problem"] or (self.plugin and not is_skill)):
            owner = kinds.skill(name) if is_skill else kinds.agent(name)
            add_hooks(self.findings, file, document.fields.get("hooks"), owner)


def add_hooks(findings: ScanFindings, file: str, hooks: object, owner: str | None = None) -> None:
    """Add a finding for each hook of a table by event; `owner` is the call that they wait for, or their plugin."""
    # What it waits for is its name, what it runs its description.
    why_off = HOOKS_OFF if findings.settings.get("disableAllHooks") is True else None
    for event, groups in table(hooks).items():
        for place, group in enumerate(groups if isinstance(groups, list) else [None]):
            matcher, listed = table(group).get("matcher"), table(group).get("hooks")
            name = f"{event}:{matcher}" if isinstance(matcher, str) and matcher else event
            own = [it for it in enumerate(listed if isinstance(listed, list) else ()) if isinstance(it[1], dict)]
            for number, hook in own or [(-1, {})]:
                action = next((hook[key] for key in ("command", "prompt", "url", "tool") if hook.get(key)), None)
                problem = findings.refused(file, f"hooks.{event}.{place}.hooks.{number}") or why_off
                if not own:
                    problem = findings.refused(file, "") or "it is not of the shape that hooks have"
                says = f"{hook.get('type') or 'hook'}: {action}" if action else None
                facts = {"description": says, "owner": owner, "announced": False}
                findings.add(ItemKind.HOOK, name, file, problem=problem, **facts)


def add_servers(findings: ScanFindings, file: str, servers: Mapping[str, Any], owner: str | None = None) -> None:
    """Add a finding for each MCP server of a file; `owner` is the plugin that they belong to."""
    # One in a nearer folder takes the place of one further up.
    for name, server in servers.items():
        command, url = (table(server).get(key) for key in ("command", "url"))
        # Arguments, headers and variables may hold secrets of any shape, and are left out.
        at = f"url: {url.partition('?')[0]}" if isinstance(url, str) else None
        reached = f"command: {command}" if isinstance(command, str) else at
        shadowed, problem = findings.claim("mcp", name, file) != file, findings.refused(file, f"mcpServers.{name}")
        if shadowed:
            problem = "a server of the same name in a nearer folder takes its place"
        elif name in texts(findings.settings.get("disabledMcpjsonServers")):
            problem = problem or "the project's settings switch it off (disabledMcpjsonServers)"
        elif reached is None:
            problem = problem or "neither a command nor a url says how to reach it"
        denied = tuple(findings.denials(kinds.server(name)))
        facts = {"problem": problem, "shadowed": shadowed, "denied": denied, "owner": owner}
        findings.add(ItemKind.MCP_SERVER, name, file, description=reached, **facts)


def find_plugins(findings: ScanFindings) -> Iterator[Plugin]:
    """Yield those in the skills folder of the session, and those that its settings enable."""
    tree, wanted = findings.tree, table(findings.settings, "enabledPlugins")
    off = {key.lower() for key, value in wanted.items() if value is False}
    for entry in tree.entries(join(findings.start, SKILLS_FOLDER)):
        file = f"{entry.path}/{PLUGIN_MANIFEST}"
        if entry.is_folder and tree.exists(file):
            about = findings.json_object(file)
            name = about.get("name")
            problem = None if isinstance(name, str) and name else NAMELESS
            plugin = f"{entry.name if problem else name}@{SKILLS_DIR}"
            if plugin.lower() in off and not problem:
                problem = SWITCHED_OFF
            yield Plugin(plugin, file, entry.path, about, problem, _mod_file(findings, entry.path, about))
    for plugin, value in wanted.items():
        if value and not plugin.lower().endswith(f"@{SKILLS_DIR}"):
            yield _of_marketplace(findings, plugin, join(findings.start, SETTINGS_FILE))


def _of_marketplace(findings: ScanFindings, plugin: str, file: str) -> Plugin:
    """Return a plugin that settings enable; the paths of marketplaces begin at the top of the repository."""
    name, _, market = plugin.rpartition("@")
    folder = market_folder(table(findings.settings, "extraKnownMarketplaces").get(market))
    if folder is None:
        return Plugin(plugin, file, problem=OUTSIDE)
    listed = findings.json_object(join(folder, MARKETPLACE_FILE)).get("plugins")
    entries = [table(each) for each in listed] if isinstance(listed, list) else []
    entry = next((each for each in entries if each.get("name") == name), None)
    if entry is None:
        return Plugin(plugin, file, problem=f"the marketplace {market} does not list it")
    source = entry.get("source")
    root = _inside(join(folder, source)) if isinstance(source, str) else None
    if root is None:
        return Plugin(plugin, file, problem=OUTSIDE)
    if not findings.tree.exists(root):
        return Plugin(plugin, file, problem=f"its folder {root} does not exist")
    manifest = findings.json_object(join(root, PLUGIN_MANIFEST))
    return Plugin(plugin, file, root, {**entry, **manifest}, None, _mod_file(findings, root, manifest, entry))


def market_folder(declared: object) -> str | None:
    """Return where in the tree a marketplace lies that settings declare; nothing where it is not a folder there."""
    match declared:
        case {"source": {"source": "directory", "path": str(path)}}:
            return _inside(path)
        case {"source": {"source": "file", "path": str(path)}}:
            return _inside(dirname(dirname(path)) or ".")
        case _:
            return None


def _inside(path: str) -> str | None:
    place = normpath(path)
    return None if place.startswith(("/", "~", "..")) else "" if place == "." else place


def _mod_file(findings: ScanFindings, root: str, *manifests: Mapping[str, Any]) -> str | None:
    """Return the file in which a plugin names JavaScript to run, or that cannot be read: nobody knows what it names."""
    named = (path for each in manifests for path in texts(each.get("hooks")))
    file = join(root, PLUGIN_MANIFEST)
    try:
        if any('"modules": ' in json.dumps(each) for each in manifests):
            return file
        for path in (PLUGIN_MANIFEST, HOOKS_FILE, *named):
            file = normpath(join(root, path))
            with suppress(Missing):
                if '"modules": ' in json.dumps(json.loads(findings.tree.read(file))):
                    return file
    except (Unfit, ValueError, RecursionError):
        return file
    return None


def add_plugins(findings: ScanFindings) -> None:
    """Add all plugins and what is in them."""
    for plugin in find_plugins(findings):
        problem = plugin.problem or (IS_MOD if plugin.mod_file else None)
        (description, *_) = (*texts(plugin.about.get("description")), None)
        findings.add(ItemKind.PLUGIN, plugin.id, plugin.file, description=description, problem=problem)
        if plugin.root is None or plugin.problem:
            continue
        if plugin.mod_file:
            findings.add(ItemKind.MOD, plugin.name, plugin.mod_file, owner=plugin.id, announced=False)
        SteeringFolder(findings, plugin.root, plugin=plugin).add_documents()
        for file, hooks in plugin.objects(findings, "hooks", HOOKS_FILE):
            add_hooks(findings, file, hooks.get("hooks", {} if "modules" in hooks else hooks), plugin.id)
        for file, servers in plugin.objects(findings, "mcpServers", SERVERS_FILE):
            inner = table(servers.get("mcpServers", servers))
            named = {f"plugin:{plugin.name}:{name}": server for name, server in inner.items()}
            add_servers(findings, file, named, plugin.id)
