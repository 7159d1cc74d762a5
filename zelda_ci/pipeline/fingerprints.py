"""The fingerprint of a run: digests of what it found and what it ran with, and on what it ran."""

import json
import platform
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from typing import Any

import anyio
import anyio.to_thread

from zelda_ci import metrics
from zelda_ci.domain import run as names
from zelda_ci.domain.base import Record
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import SteeringChange, ToolsManifest
from zelda_ci.domain.run import PLATFORM, Fingerprint, RunResult, Steers, StoredTrials
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import WorkspaceError
from zelda_ci.execution.manifest.scan import scan
from zelda_ci.files import globs
from zelda_ci.pipeline.changed_files import printable, read_steering
from zelda_ci.pipeline.comparing import stored_pool
from zelda_ci.pipeline.invocation import Prepared
from zelda_ci.redact import Redactor
from zelda_ci.selection.choice import line_changes
from zelda_ci.selection.effects import is_meant, own_places
from zelda_ci.workspace.git import TreeFile
from zelda_ci.workspace.store import TestedFiles
from zelda_ci.workspace.workspaces import Workspaces

# What says how often a suite runs, what it is called, and what is made of its results; every other field of a suite
# counts, so that one that is added later cannot be forgotten.
WITHOUT_EFFECT = frozenset({"name", "file", "description", "tags", "trials", "gate", "pool"})

# Of lists, those whose order says nothing.
SETS = frozenset({
    "execution.extra_models", "execution.request_keys", "execution.allowed_tools", "execution.disallowed_tools",
    "execution.env", "isolation.read_paths",
})  # fmt: skip
DIGITS = 16

Lines = Mapping[str, Sequence[str]]
# The variable that names the image in which Zelda runs: ours sets it, and so may somebody.
IMAGE = "ZELDA_IMAGE"


def system_name(environ: Mapping[str, str]) -> str:
    """The image where one is named, otherwise the system; without what changes with every machine."""
    if image := environ.get(IMAGE, "").strip():
        return image
    try:
        release = platform.freedesktop_os_release()
        name = f"{release['ID']} {release.get('VERSION_ID', '')}".strip()
    except OSError:
        name = f"{platform.system()} {platform.mac_ver()[0]}".strip()
    return f"{name} {platform.machine()}"


class TreeDigests:
    """What a trial finds, in digests: of what steers, of code, and of suites where build and test commands see them."""

    def __init__(self, tested: TestedFiles, steers: Mapping[str, Steers] | None, lines: Lines) -> None:
        """Without a word on how files steer, every file counts as such; `lines` are digests, by file that steers."""
        self.files, self.folder, self.lines = tested.files, tested.folder, lines
        paths = {file.path for file in self.files}
        self.steering = _of_files(file for file in self.files if steers is None or file.path in steers)
        self.code = _of_files(file for file in self.files if steers is None or steers.get(file.path) != "itself")
        self.suites = _of_files(file for file in tested.whole if file.path not in paths)


def fingerprint(
    suite: ResolvedSuite, tree: TreeDigests, platform: Mapping[str, str | None], *, replayed: bool = False
) -> Fingerprint:
    """The fingerprint of a trial: of a suite as it runs, the tree it finds, and a platform by `PLATFORM`'s names."""
    # In its commands, and in `gate.paths`.
    places = own_places(suite, tree.folder)
    own = {it.path for it in tree.files if not places.isdisjoint(globs.upwards(it.path))}
    named = [it for it in tree.files if it.path in own or is_meant(it.path, suite, tree.folder)]
    found = {
        **_settings(suite),
        names.STEERING: tree.steering,
        names.SUITE_FILES: tree.suites if suite.commands_see_suites else "",
        names.NAMED_FILES: _of_files(named) if named else "",
        names.REPLAYED: str(replayed).lower(),
    }
    return _combined({**found, **{name: platform.get(name) or "" for name in PLATFORM}}, tree.code)


def judged_again(earlier: Fingerprint, suite: ResolvedSuite) -> Fingerprint:
    """The fingerprint of a run that other judges, or newer prompts, have judged."""
    return _combined({**earlier.parts, **_settings(suite)}, earlier.tree)


def digest(value: Any) -> str:
    """Of plain data; the order of keys says nothing."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:DIGITS]


def _combined(parts: dict[str, str], code: str) -> Fingerprint:
    shown = "; ".join(parts[name] for name in PLATFORM if parts.get(name))
    outcome = {name: value for name, value in parts.items() if name not in PLATFORM}
    return Fingerprint(outcome=digest(outcome), platform=shown, tree=code, parts=parts)


def _settings(suite: ResolvedSuite) -> dict[str, str]:
    """A digest for each field of a suite that counts, and one for the versions of what evaluates it."""
    counted = ((name, value) for name, value in suite if name not in WITHOUT_EFFECT)
    found = {type(suite).model_fields[name].alias or name: digest(_plain(value, name)) for name, value in counted}
    return {**found, names.EVALUATORS: digest(metrics.versions(suite.metrics))}


def _plain(value: Any, name: str) -> Any:
    """A setting as plain data."""
    if isinstance(value, Record):
        return {key: _plain(inner, f"{name}.{key}") for key, inner in value}
    if isinstance(value, tuple):
        items = [_plain(item, name) for item in value]
        return sorted(items) if name in SETS else items
    # A default of 1800 and a given 1800.0 are the same.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _of_files(files: Iterable[TreeFile]) -> str:
    return digest(sorted((file.path, file.mode, file.content) for file in files))


def fingerprint_of(run: RunResult, tree: TreeDigests, environ: Mapping[str, str]) -> Fingerprint:
    """Of a run that is over."""
    words = {
        "agentSdk": run.versions.agent_sdk,
        "cli": run.versions.cli,
        "models": ", ".join(run.models),
        "system": system_name(environ),
        "isolationLevel": run.isolation.level if run.isolation else "",
    }
    return fingerprint(run.config, tree, words, replayed=run.replayed)


async def expected_fingerprints(
    prepared: Prepared, suites: Iterable[ResolvedSuite], workspaces: Workspaces
) -> dict[str, Fingerprint]:
    """What runs of the suites will have, by name, as far as it is known before a session: no models, and no CLI."""
    found, redact = {}, prepared.redact
    known = {"agentSdk": version("claude-agent-sdk"), "system": system_name(prepared.environ)}
    trees: dict[str, TreeDigests] = {}
    for suite in suites:
        # What of a suite changes what its workspace holds.
        key = f"{suite.commands_see_suites} {suite.isolation.model_dump_json()}"
        if key not in trees:
            trees[key] = await _tree(workspaces, suite, redact)
        words = {**known, "isolationLevel": prepared.isolation.of(suite)}
        found[suite.name] = fingerprint(suite.redacted(redact), trees[key], words, replayed=prepared.replayed)
    return found


async def tree_digests(
    workspaces: Workspaces, workspace: Workspace, offered: ToolsManifest | None, redact: Redactor
) -> TreeDigests:
    """What a session finds, before anything has run; what CLAUDE.md files import steers, too.

    Raises:
        WorkspaceError: The tree could not be listed.
    """
    tested = workspaces.tested_files(workspace)
    # By the rules of Claude Code itself, which see what is not committed, too.
    items = offered.items if offered else ()
    imported = {str(item.name) for item in items if item.kind is ItemKind.MEMORY}
    steers, texts = await read_steering(tested, imported)
    lines: dict[str, list[str]] = {
        redact(printable(file.path)): [file.content] if text is None else [digest(it)[:8] for it in text.splitlines()]
        for file, text in texts.items()
    }
    return TreeDigests(tested, steers, lines)


async def _tree(workspaces: Workspaces, suite: ResolvedSuite, redact: Redactor) -> TreeDigests:
    """What a session of the suite would find."""
    async with workspaces.open(f"plan-{secrets.token_hex(6)}", suite) as workspace:
        offered = await anyio.to_thread.run_sync(scan, workspace.root, workspace.path, redact)
        return await tree_digests(workspaces, workspace, offered, redact)


async def steering_between(prepared: Prepared) -> tuple[SteeringChange, ...]:
    """The files that steer and differ between base and head."""
    sides = (prepared.base_workspaces, prepared.workspaces)
    before, after = [await _tree(side, prepared.suites[0], prepared.redact) for side in sides]
    return line_changes(before.lines, after.lines)


async def stored_of_both(prepared: Prepared) -> dict[str, StoredTrials]:
    """By suite, the trials of head and base that one developer has stored; a replay counts none.

    Raises:
        ZeldaError: There is no such commit, both sides have the same files, there can be no workspace, or the runs
            cannot be listed.
    """
    head, base, suites, order = prepared.workspaces, prepared.base_workspaces, prepared.suites, prepared.order
    # Between the same files every difference is noise.
    if order.against and await head.session_files() == await base.session_files():
        ref, side = order.against.ref, "Your files are" if order.working_tree else "The tested commit has"
        meant = "change a file that sessions see, or name an older commit, as in `zelda run --against HEAD~1`"
        if not order.working_tree and (await head.inspect()).changed:
            meant = f"`zelda run --against {ref}` without --commit compares your files as they are"
        message = f"{side} exactly the files of {ref}, so nothing was run: {meant}."
        raise WorkspaceError(message, code="SAME_FILES")
    if prepared.replayed:
        return {}
    await base.inspect()
    settings = {suite.name: suite.pool for suite in suites}
    variant = prepared.redact(order.variant.name) if order.variant else None
    pool = await anyio.to_thread.run_sync(stored_pool, prepared.store, settings, datetime.now(UTC), variant)
    wanted = [suite for suite in suites if any(name == suite.name for name, _ in pool.groups)]
    heads, bases = [await expected_fingerprints(prepared, wanted, side) for side in (head, base)]
    return {name: pool.of_laptop(name, bases[name], head, settings[name]) for name, head in heads.items()}
