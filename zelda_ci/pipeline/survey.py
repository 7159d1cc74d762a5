"""What a folder is, before Zelda is set up in it: its repository, its kind of project, what steers Claude Code in it.

Nothing of it is run. Everything that is read may have been written by anybody, and much of it may be missing.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from zelda_ci.config import files as files_of
from zelda_ci.config.files import NEW_ONES, find_root, listed, top_of
from zelda_ci.config.init import WORDS, printed, seen_from
from zelda_ci.domain import numbers
from zelda_ci.domain.check import Check
from zelda_ci.domain.kinds import KINDS, ItemKind
from zelda_ci.domain.manifest import ManifestItem, RefusedSetting
from zelda_ci.execution.doctor import refusals
from zelda_ci.execution.manifest.plugins import IS_MOD, SWITCHED_OFF
from zelda_ci.execution.manifest.scan import scan_folder
from zelda_ci.pipeline.detect import (
    ProjectKind,
    Proposal,
    kinds,
    manifests,
    packages,
    read,
)
from zelda_ci.redact import Redactor

SILENT = "Correct it: in a session Claude Code says nothing of it."
MAX_FILES = 50_000
MAX_NAMED = 5
COUNTED = (
    ItemKind.MEMORY, ItemKind.SKILL, ItemKind.RULE, ItemKind.AGENT, ItemKind.COMMAND, ItemKind.WORKFLOW,
    ItemKind.MCP_SERVER, ItemKind.HOOK, ItemKind.PLUGIN,
)  # fmt: skip


@dataclass(frozen=True)
class Survey:
    """What was found."""

    root: Path
    top: Path
    """Of the repository; the folder itself where there is none."""
    above: Path | None
    """The nearest folder above that is a project of Zelda's already."""
    files: tuple[str, ...]
    """Tracked or new, from the top."""
    kinds: tuple[ProjectKind, ...]
    packages: tuple[str, ...]
    """Folders below with manifests of their own, from the top."""
    items: tuple[ManifestItem, ...]
    refused: tuple[RefusedSetting, ...]
    """What Claude Code does not load of the settings files."""

    @property
    def folder(self) -> str:
        """The project's, from the top."""
        return _below(self.root, self.top)

    def proposals(self) -> dict[str, Proposal]:
        """The commands to try, by the key they stand under."""
        main = next(iter(self.kinds), None)
        if main is None:
            return {}
        # A Makefile may know what the manifest does not.
        test = next((kind.test for kind in self.kinds if kind.test), None)
        given = {"setupCommand": main.setup, "buildCommand": main.build, "testCommand": test}
        return {
            key: Proposal(proposal.command, seen_from(self.folder, proposal.source))
            for key, proposal in given.items()
            if proposal
        }

    @property
    def programs(self) -> tuple[str, ...]:
        """Folders in which the setup command installs programs."""
        main = next(iter(self.kinds), None)
        return main.programs if main else ()

    def sentences(self) -> Iterator[str]:
        """What was found, for people."""
        yield self._about_kinds()
        if self.packages:
            names = [seen_from(self.folder, each) for each in self.packages]
            yield f"Packages below: {_listed(names)}. To set up one alone: zelda init --project DIR"
        found = Counter(item.kind for item in self.items if not item.problem and not item.shadowed)
        counts = [numbers.format_count(found[kind], KINDS[kind].word) for kind in COUNTED if found[kind]]
        yield f"Claude Code reads here: {', '.join(counts)}." if counts else "No CLAUDE.md, skills or rules found."

    def _about_kinds(self) -> str:
        if not self.kinds:
            return "No manifest of a known language is here, so no command is proposed."
        sentences = []
        for kind in self.kinds:
            locks = [lock for lock in kind.locks if lock != kind.manifest][:1]
            files = [printed(seen_from(self.folder, file)) for file in (kind.manifest, *locks)]
            manager = [kind.manager] if kind.manager and kind.manager != kind.language.lower() else []
            sentences.append(f"{kind.language} ({', '.join([files[0], *manager, *files[1:]])})")
        return f"Found: {'; '.join(sentences)}."

    def broken(self) -> Iterator[str]:
        """What is meant to steer Claude Code and is not loaded, in a sentence each."""
        for each in self.refused[:MAX_NAMED]:
            yield f"{printed(seen_from(self.folder, each.file))} is {printed(each.effect)}."
        broken = [item for item in self.items if item.problem and item.kind in {*WORDS} - {ItemKind.MEMORY}]
        for item in broken[:MAX_NAMED]:
            file = seen_from(self.folder, item.file)
            yield f"Claude Code does not load {printed(file)}: {printed(item.problem or '')}."


def survey(folder: Path, redact: Redactor) -> Survey:
    """Look at a folder."""
    root = folder.resolve()
    top = top_of(root)
    files = sorted(set(listed(top, *NEW_ONES) or ())) if top else list(_walked(root))
    place = _below(root, top or root)
    texts = read(top or root, manifests(files, place))
    found = kinds(files, texts, place)
    offered = scan_folder(top or root, root, redact, refusals)
    known = find_root(root.parent) if top and root != top else root
    return Survey(
        root,
        top or root,
        known if known != root and files_of.is_project(known) else None,
        tuple(files),
        found,
        packages(files, place),
        offered.items,
        offered.refused,
    )


def refused_settings(folder: Path, redact: Redactor) -> tuple[RefusedSetting, ...]:
    """What is not loaded of the settings files and plugins of a project as they lie there."""
    root = folder.resolve()
    try:
        return not_loaded(top_of(root) or root, root, redact)
    except OSError:  # a session will say what of the folder cannot be read
        return ()


def not_loaded(top: Path, folder: Path, redact: Redactor) -> tuple[RefusedSetting, ...]:
    """What Claude Code refuses of settings files, by its own word, and plugins that a project wants and cannot have."""
    found = scan_folder(top, folder, redact, refusals)
    plugins = [item for item in found.items if item.kind is ItemKind.PLUGIN and item.problem]
    wanted = [item for item in plugins if item.problem not in (SWITCHED_OFF, IS_MOD)]
    lost = (RefusedSetting(file=it.file, key=it.name, problem=it.problem or redact("")) for it in wanted)
    return (*found.refused, *lost)


def settings_checks(folder: Path, redact: Redactor) -> Iterator[Check]:
    """The same for `zelda check`."""
    for each in refused_settings(folder, redact):
        message = redact(f"{each.file} is {each.effect}.")
        yield Check(subject="settings", about=each.file, status="warning", message=message, hint=SILENT)


def _below(folder: Path, top: Path) -> str:
    return "" if folder == top else folder.relative_to(top).as_posix()


def _walked(root: Path) -> Iterator[str]:
    """Files of a folder that is in no repository; links to folders are not followed."""
    count = 0
    for here, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in files_of.SKIPPED and not name.startswith("."))
        for name in sorted(names):
            yield (Path(here) / name).relative_to(root).as_posix()
        count += len(names) + len(folders)
        if count > MAX_FILES:
            return


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join(map(printed, names[:MAX_NAMED])) + (f" and {more} more" if more > 0 else "")
