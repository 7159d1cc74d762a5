"""What a folder is, before Zelda is set up in it: its repository, its kind of project, what steers Claude Code in it.

Nothing of it is run. Everything that is read may have been written by anybody, and much of it may be missing.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from zelda_ci.config.environment import EnvironmentSettings
from zelda_ci.config.files import NEW_ONES, find_root, is_project, top_of
from zelda_ci.config.init import WORDS, CommandLine, printed, seen_from
from zelda_ci.domain import numbers
from zelda_ci.domain.kinds import KINDS, ItemKind
from zelda_ci.domain.manifest import ManifestItem, RefusedSetting, ToolsManifest
from zelda_ci.execution.doctor import refusals
from zelda_ci.execution.manifest.folders import IS_MOD, SWITCHED_OFF
from zelda_ci.execution.manifest.scan import scan
from zelda_ci.files.secret_files import find_secrets
from zelda_ci.redact import Redactor
from zelda_ci.survey.project_kind import ProjectKind, look, packages

MAX_NAMED = 5
COUNTED = (
    ItemKind.MEMORY, ItemKind.SKILL, ItemKind.RULE, ItemKind.AGENT, ItemKind.COMMAND, ItemKind.WORKFLOW,
    ItemKind.MCP_SERVER, ItemKind.HOOK, ItemKind.PLUGIN,
)  # fmt: skip


@dataclass(frozen=True)
class Survey:
    """What was found; paths without a place are from the top."""

    root: Path
    top: Path
    """Of the repository; the folder itself where there is none."""
    folder: str
    """The project's, from the top."""
    above: Path | None
    """The nearest folder above that is a project of Zelda's already."""
    files: tuple[str, ...]
    """Tracked or new."""
    kinds: tuple[ProjectKind, ...]
    items: tuple[ManifestItem, ...]
    refused: tuple[RefusedSetting, ...]
    """Settings files and plugins, or parts of them, that Claude Code does not load."""

    def commands(self) -> list[CommandLine]:
        """The commands to try, each with the file that suggests it."""
        # A Makefile may know what the manifest does not.
        main, tested = self.kinds[:1], [kind for kind in self.kinds if kind.test][:1]
        found = [("setupCommand", kind.setup, kind.lock or kind.manifest) for kind in main]
        found += [("buildCommand", kind.build, kind.manifest) for kind in main]
        found += [("testCommand", kind.test, kind.manifest) for kind in tested]
        return [CommandLine(key, command, seen_from(self.folder, file)) for key, command, file in found if command]

    @property
    def programs(self) -> tuple[str, ...]:
        return self.kinds[0].programs if self.kinds else ()

    def sentences(self) -> Iterator[str]:
        """What was found, for people."""
        found = []
        for kind in self.kinds:
            manager = kind.manager if kind.manager != kind.language.lower() else None
            named = filter(None, (self._called(kind.manifest), manager, self._called(kind.lock or "")))
            found.append(f"{kind.language} ({', '.join(dict.fromkeys(named))})")
        none = "No manifest of a known language is here, so no command is proposed."
        yield f"Found: {'; '.join(found)}." if found else none
        if below := [*map(self._called, packages(self.files, self.folder))]:
            listing = numbers.some_of(below, MAX_NAMED)
            yield f"Packages below: {listing}. To set up one alone: zelda init --project DIR"
        usable = Counter(item.kind for item in self.items if not item.problem and not item.shadowed)
        counts = [numbers.format_count(usable[kind], KINDS[kind].word) for kind in COUNTED if usable[kind]]
        yield f"Claude Code reads here: {', '.join(counts)}." if counts else "No CLAUDE.md, skills or rules found."

    def broken(self) -> Iterator[str]:
        """What is meant to steer Claude Code and is not loaded, in a sentence each."""
        for each in self.refused[:MAX_NAMED]:
            yield f"{self._called(each.file)} is {printed(each.effect)}."
        broken = [item for item in self.items if item.problem and item.kind in {*WORDS} - {ItemKind.MEMORY}]
        for item in broken[:MAX_NAMED]:
            yield f"Claude Code does not load {self._called(item.file)}: {printed(item.problem or '')}."

    def _called(self, path: str) -> str:
        """A path from the top as the project's folder calls it, for people."""
        return printed(seen_from(self.folder, path))


def survey(folder: Path, settings: EnvironmentSettings) -> Survey:
    """Look at a folder; secrets that lie in it are masked."""
    root = folder.resolve()
    redact = Redactor([*settings.secrets, *find_secrets(root, settings.environ, ()).secrets])
    top, files, place, found = look(root, *NEW_ONES)
    offered = scan(top, root, redact, refusals)
    known = find_root(root.parent) if root != top else root
    above = known if known != root and is_project(known) else None
    return Survey(root, top, place, above, tuple(files), found, offered.items, _not_loaded(offered, redact))


def refused_settings(folder: Path, redact: Redactor, top: Path | None = None) -> tuple[RefusedSetting, ...]:
    """Return what is not loaded of the settings files and plugins of a project; `top` is that of its repository."""
    root = folder.resolve()
    return _not_loaded(scan((top or top_of(root) or root).resolve(), root, redact, refusals), redact)


def _not_loaded(offered: ToolsManifest, redact: Redactor) -> tuple[RefusedSetting, ...]:
    """Return what Claude Code refuses, by its own word, and plugins that a project wants and cannot have."""
    plugins = [item for item in offered.items if item.kind is ItemKind.PLUGIN and item.problem]
    wanted = [item for item in plugins if item.problem not in (SWITCHED_OFF, IS_MOD)]
    lost = (RefusedSetting(file=it.file, key=it.name, problem=it.problem or redact("")) for it in wanted)
    return (*offered.refused, *lost)
