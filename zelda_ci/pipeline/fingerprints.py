"""The fingerprint of a run: what it found, what it ran with, and on what."""

import platform
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version

import anyio
import anyio.to_thread

from zelda_ci.domain.fingerprint import Fingerprint
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.run import RunResult, StoredTrials
from zelda_ci.domain.steering import SteeringChange
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import WorkspaceError
from zelda_ci.execution.manifest.scan import scan
from zelda_ci.pipeline.changed_files import read_tree
from zelda_ci.pipeline.comparing import stored_pool
from zelda_ci.pipeline.digests import TreeDigests, fingerprint
from zelda_ci.pipeline.invocation import Prepared
from zelda_ci.redact import Redactor
from zelda_ci.selection.choice import line_changes
from zelda_ci.workspace.workspaces import Workspaces

# Names the image in which Zelda runs, where somebody sets it.
IMAGE_VARIABLE = "ZELDA_IMAGE"


def system_name(environ: Mapping[str, str]) -> str:
    """The image where one is named, otherwise the system; without what changes with every machine."""
    if image := environ.get(IMAGE_VARIABLE, "").strip():
        return image
    try:
        release = platform.freedesktop_os_release()
        name = f"{release['ID']} {release.get('VERSION_ID', '')}".strip()
    except OSError:
        name = f"{platform.system()} {platform.mac_ver()[0]}".strip()
    return f"{name} {platform.machine()}"


def fingerprint_of(run: RunResult, tree: TreeDigests, system: str) -> Fingerprint:
    """Of a run that is over."""
    level, versions = run.isolation.level if run.isolation else "", run.versions
    words = {"agentSdk": versions.agent_sdk, "system": system, "isolationLevel": level, "cli": versions.cli}
    return fingerprint(run.config, tree, words, models=run.models, replayed=run.replayed)


async def expected_fingerprints(
    prepared: Prepared, suites: Iterable[ResolvedSuite], workspaces: Workspaces
) -> dict[str, Fingerprint]:
    """What runs of the suites will have, by name, as far as it is known before a session: no models, and no CLI."""
    found, redact = {}, prepared.redact
    known = {"agentSdk": version("claude-agent-sdk"), "system": system_name(prepared.environ)}
    trees: dict[str, tuple[TreeDigests, str]] = {}
    for suite in suites:
        # What of a suite changes what its workspace holds.
        key = f"{suite.commands_see_suites} {suite.isolation.model_dump_json()}"
        if key not in trees:
            trees[key] = await _tree(workspaces, suite, redact)
        tree, level = trees[key]
        words = {**known, "isolationLevel": level}
        found[suite.name] = fingerprint(suite.redacted(redact), tree, words, replayed=prepared.replayed)
    return found


async def tree_digests(
    workspaces: Workspaces, workspace: Workspace, offered: ToolsManifest | None, redact: Redactor
) -> TreeDigests:
    """What a session finds, before anything has run; what CLAUDE.md files import steers, too.

    Raises:
        WorkspaceError: The tree could not be listed.
    """
    tested = await workspaces.tested_files(workspace)
    # By the rules of Claude Code itself, which see what is not committed, too.
    items = offered.items if offered else ()
    return await read_tree(tested, {str(item.name) for item in items if item.kind is ItemKind.MEMORY}, redact)


async def _tree(workspaces: Workspaces, suite: ResolvedSuite, redact: Redactor) -> tuple[TreeDigests, str]:
    """What a session of the suite would find, and its isolation."""
    async with workspaces.open(f"plan-{secrets.token_hex(6)}", suite) as workspace:
        offered = await anyio.to_thread.run_sync(scan, workspace, redact)
        return await tree_digests(workspaces, workspace, offered, redact), workspace.confinement.level


async def steering_between(prepared: Prepared) -> tuple[SteeringChange, ...]:
    """The files that steer and differ between base and head."""
    sides = (prepared.base_workspaces, prepared.workspaces)
    before, after = [(await _tree(side, prepared.suites[0], prepared.redact))[0].lines for side in sides]
    return line_changes(before, after)


async def stored_of_both(prepared: Prepared) -> dict[str, StoredTrials]:
    """By suite, the trials of head and base that one developer has stored; a replay counts none.

    Raises:
        ZeldaError: There is no such commit, both sides have the same files, there can be no workspace, or the runs
            cannot be listed.
    """
    head, base, suites = prepared.workspaces, prepared.base_workspaces, prepared.suites
    if await head.content_key() == await base.content_key():
        await _refuse_equal_sides(prepared)
    if prepared.replayed:
        return {}
    await base.inspect()
    settings = {suite.name: suite.pool for suite in suites}
    pool = await anyio.to_thread.run_sync(stored_pool, prepared.history, settings, datetime.now(UTC))
    wanted = [suite for suite in suites if any(name == suite.name for name, _ in pool.groups)]
    heads, bases = [await expected_fingerprints(prepared, wanted, side) for side in (head, base)]
    return {name: pool.of_laptop(name, bases[name], head, settings[name]) for name, head in heads.items()}


async def _refuse_equal_sides(prepared: Prepared) -> None:
    """See to it that a comparison can find something: between the same files every difference is noise."""
    order, tested = prepared.order, await prepared.workspaces.inspect()
    if order.against is None or tested.commit is None:
        return
    ref = order.against.ref
    if not order.working_tree and tested.changed:
        meant = f"`zelda run --against {ref}` without --commit compares your files as they are"
    else:
        meant = "change a file that sessions see, or name an older commit, as in `zelda run --against HEAD~1`"
    side = "Your files are" if order.working_tree else "The tested commit has"
    message = f"{side} exactly the files of {ref}, so nothing was run: {meant}."
    raise WorkspaceError(message, code="SAME_FILES")
