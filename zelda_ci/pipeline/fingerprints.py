"""What trials can feel of files: fingerprints of runs, what differs between commits, and which suites that concerns."""

import json
import os
import platform
import posixpath
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from zelda_ci import metrics
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.schema import CONFIG_FILE
from zelda_ci.config.suites import LoadedSuite
from zelda_ci.domain import run as names
from zelda_ci.domain.base import Record
from zelda_ci.domain.kinds import ItemKind, may_steer
from zelda_ci.domain.manifest import SteeringChange, ToolsManifest
from zelda_ci.domain.run import PLATFORM, Fingerprint, RunResult, Steers, StoredTrials
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import ConfigError, StorageError, WorkspaceError
from zelda_ci.execution.manifest.scan import scan
from zelda_ci.execution.manifest.tree import MAX_FILE_BYTES
from zelda_ci.files import globs, temporary
from zelda_ci.pipeline.comparing import newest_results, stored_pool
from zelda_ci.pipeline.invocation import Prepared
from zelda_ci.redact import Redactor
from zelda_ci.selection import effects
from zelda_ci.selection.choice import SuiteChoice, SuiteEvidence, choose, line_changes
from zelda_ci.selection.effects import ChangeSet, FileChange, FileText, ProjectFiles
from zelda_ci.selection.reach import RECIPES, Graph, RepositoryFiles, described
from zelda_ci.workspace.git import LINK, SUBMODULE, Git, TreeFile, for_status, prepare, read_commit, tree_files
from zelda_ci.workspace.objects import Objects
from zelda_ci.workspace.source import UNKNOWN_COMMIT_HINT
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
# A repository of skills may have thousands; what all of them lead to is no longer looked for then.
MAX_FILES = 20_000
# Of each suite; what it did before these says little of what it does today.
MAX_TRIALS = 30
# Commits that stored trials were run on; those of others are not looked at.
MAX_COMMITS = 20
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

    def __init__(
        self, tested: TestedFiles, steers: Mapping[str, Steers] | None, lines: Mapping[str, Sequence[str]]
    ) -> None:
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
    places = effects.own_places(suite, tree.folder)
    own = {it.path for it in tree.files if not places.isdisjoint(globs.upwards(it.path))}
    named = [it for it in tree.files if it.path in own or effects.is_meant(it.path, suite, tree.folder)]
    found = {
        **_settings(suite),
        names.STEERING: tree.steering,
        names.SUITE_FILES: tree.suites if suite.commands_see_suites else "",
        names.NAMED_FILES: _of_files(named) if named else "",
        names.REPLAYED: str(replayed).lower(),
    }
    return _combined(found | {name: platform.get(name) or "" for name in PLATFORM}, tree.code)


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
    found, redact, trees = {}, prepared.redact, dict[str, TreeDigests]()
    known = {"agentSdk": version("claude-agent-sdk"), "system": system_name(prepared.environ)}
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
    """What a session finds, before anything has run; what CLAUDE.md files import steers, too."""
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
    """By suite, the trials of head and base that one developer has stored; both must not be the same."""
    head, base, suites, order = prepared.workspaces, prepared.base_workspaces, prepared.suites, prepared.order
    # Between the same files every difference is noise. The base comes first: it may not exist, and files are copied.
    if order.against and await base.session_files() == await head.session_files():
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


async def read_changes(git: Git, before: str, after: str, folder: str, dirty: Iterable[str] = ()) -> ChangeSet:
    """What differs between two commits that a repository has, and what the files of the second that steer draw in.

    `folder` is the project's, from the top. Of files in `dirty`, nothing is known but that they differ, too.
    """
    listings = [await git.attempt("ls-tree", "-r", "-z", "--full-tree", commit) for commit in (before, after)]
    if any(it.exit_code or it.truncated for it in listings):
        return ChangeSet(problem=f"what changed since {before[:7]} could not be read")
    olds, news = [{file.path: file for file in tree_files(it.stdout)} for it in listings]
    raw = [(printable(path), olds.get(path), news.get(path)) for path in sorted({*olds, *news})]
    raw, texts = [each for each in raw if each[1] != each[2]], _Texts(git)
    await texts.load(it for path, *sides in raw if may_steer(path) for it in sides if it and _has_text(it))
    changes = []
    for path, old, new in raw:
        was, now = [texts.of(side) if side else "" for side in (old, new)]
        is_known = new and was is not None and now is not None
        line = effects.first_difference((was or "").splitlines(), (now or "").splitlines()) if is_known else None
        changes.append(FileChange(path, _side(path, old, texts), _side(path, new, texts), line))
    dirty = [*dict.fromkeys(dirty)]
    changes += [FileChange(path, FileText(kind="other"), FileText(kind="other")) for path in dirty]
    if not changes:
        return ChangeSet()
    # What is gone was drawn in by those who still name it.
    gone = [*(path for path, _, new in raw if new is None), *dirty]
    reached = await _reach(texts, {printable(path): file for path, file in news.items()}, folder, gone)
    return reached if reached.problem else replace(reached, files=tuple(changes))


async def read_steering(
    tested: TestedFiles, imported: Collection[str]
) -> tuple[dict[str, Steers] | None, dict[TreeFile, str | None]]:
    """How files of a tree steer, by path, and the texts of those that have one; `imported` are CLAUDE.md's imports."""
    known, texts = {printable(file.path): file for file in tested.files}, _Texts(tested.git)
    steers: dict[str, Steers] | None = None
    reached, project = await _reach(texts, known, tested.folder), ProjectFiles(tested.folder)
    if reached.problem is None:
        steers = {file.path: "drawn" for file in tested.files if file.path in imported}
        for path, file in known.items():
            side = _side(path, file, texts)
            if how := side and effects.how_it_steers(path, side, reached, project):
                steers[file.path] = how
    steering = [file for file in tested.files if file.path in (steers or ())]
    await texts.load(filter(_has_text, steering))
    return steers, {file: texts.of(file) for file in steering}


def printable(path: str) -> str:
    """As paths are spelled where they are compared: names need not be text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


async def _reach(texts: "_Texts", files: Mapping[str, TreeFile], folder: str, gone: Iterable[str] = ()) -> ChangeSet:
    """What files that steer lead to, or would if it were not gone."""
    links = [path for path, file in files.items() if file.mode == LINK]
    runners = [path for path in files if posixpath.basename(path) in RECIPES]
    await texts.load(files[path] for path in (*links, *runners))
    targets, recipes = [{path: texts.of(files[path]) or "" for path in paths} for paths in (links, runners)]
    graph = Graph(RepositoryFiles(dict.fromkeys((*gone, *files)), targets, folder), recipes)
    seen, places = set[str](), {path for path in files if graph.steers(path) and _has_text(files[path])}
    needed = {path for path in places if path.endswith((".md", ".json"))}
    # First all that is felt; then what is merely named, for who reads that.
    for lead in (graph.followed, graph.named):
        while waiting := {it for it in places if it in files and graph.tree.is_file(it)} - seen:
            seen |= waiting
            if len(seen) > MAX_FILES:
                return ChangeSet(problem=f"more than {MAX_FILES:,} files steer, or are named by those that do")
            await texts.load(files[path] for path in waiting)
            found = {path: texts.of(files[path]) for path in sorted(waiting)}
            if lost := [path for path, text in found.items() if text is None and path in needed]:
                return ChangeSet(problem=f"{lost[0]} could not be read")
            for path, text in found.items():
                if text:
                    graph.look_into(path, text)
            places = {place for path in found for place in lead(path)}
        places = {place for path in seen for place in graph.named(path)}
    return ChangeSet((), *graph.found())


def _has_text(file: TreeFile) -> bool:
    return file.mode not in (LINK, SUBMODULE)


def _side(path: str, file: TreeFile | None, texts: "_Texts") -> FileText | None:
    if file is None:
        return None
    if not _has_text(file):
        return FileText(kind="link" if file.mode == LINK else "submodule")
    text = texts.of(file) if may_steer(path) else ""
    return FileText(kind="other") if text is None else described(path, text)


class _Texts:
    """The texts of files as the scan reads them, whatever ends their lines; without what it would not read."""

    def __init__(self, git: Git) -> None:
        self._git, self._known = git, dict[str, str | None]()

    def of(self, file: TreeFile) -> str | None:
        return self._known.get(file.content)

    async def load(self, files: Iterable[TreeFile]) -> None:
        """Read those that are there and not too large."""
        names = {file.content for file in files if file.mode != SUBMODULE} - self._known.keys()
        self._known |= dict.fromkeys(names)
        async with Objects(self._git) as objects:
            found = await objects.read(names, MAX_FILE_BYTES)
        for name, data in found.items():
            if b"\0" not in data:
                text = data.decode("utf-8", "replace").removeprefix("\ufeff")
                self._known[name] = text.replace("\r\n", "\n").replace("\r", "\n")


def project_files(loaded: LoadedProject, folder: str) -> ProjectFiles:
    """Where a project has its files; `folder` is its own in the repository."""
    # Spelled as the changes are, which are printed: names need not be text.
    folder = "" if folder == "." else printable(folder)
    return ProjectFiles(folder, posixpath.join(folder, CONFIG_FILE), posixpath.join(folder, loaded.config.test_dir))


def evidence(
    suites: Iterable[LoadedSuite], folder: str, trials: Sequence[RunResult], environ: Mapping[str, str]
) -> list[SuiteEvidence]:
    """Each suite with its files and its trials, and what it would run on today; of a project with this folder."""
    platform, known = {"agentSdk": version("claude-agent-sdk"), "system": system_name(environ)}, []
    for suite in suites:
        it, prompt = suite.resolved, suite.provenance.get("prompt")
        files = effects.own_places(it, folder, (it.file, *([prompt.file] if prompt and prompt.file else [])))
        today = {**platform, names.EVALUATORS: digest(metrics.versions(it.metrics))}
        known.append(SuiteEvidence(it, files, tuple(run for run in trials if run.suite == it.name), today))
    return known


async def changed_since(ref: str, prepared: Prepared) -> tuple[SuiteChoice, ...]:
    """Which suites a change can concern, by the trials that are stored here.

    What counts is where the line of the tested commit left the branch, tag or commit `ref`.
    """
    loaded, environ, order, suites = prepared.loaded, prepared.environ, prepared.order, prepared.chosen
    with temporary.folder() as place:
        git = prepare(place, environ, Redactor(prepared.settings.secrets)).within(loaded.root)
        where = await git.attempt("rev-parse", "--show-prefix", "--show-toplevel")
        if where.exit_code != 0:
            message = f"{loaded.root} is in no git repository, so nobody knows what changed since {ascii(ref)[1:-1]}."
            raise ConfigError(message, hint="Leave --changed-since out to run all suites.", code="NO_REPOSITORY")
        prefix, top = map(os.fsdecode, where.stdout.split(b"\n")[:2])
        project, ends = project_files(loaded, prefix.rstrip("/")), list[str]()
        for revision in (ref, order.commit.ref if order.commit else "HEAD"):
            commit = await read_commit(loaded.root, environ, revision)
            if commit is None:
                message = f"There is no commit {revision!a} in this repository."
                raise ConfigError(message, hint=UNKNOWN_COMMIT_HINT, code="UNKNOWN_COMMIT")
            ends.append(commit.sha)
        status, git = for_status(git, environ), git.within(Path(top))
        base = await git.attempt("merge-base", *ends)
        before, head = base.stdout.decode().strip() if base.exit_code == 0 else ends[0], ends[1]
        # Files that are not as they were committed: suites and configuration are read as they lie there.
        listing = (await status.attempt("status", "--porcelain", "-z", "-uall", "--no-renames")).stdout.split(b"\0")
        paths = (printable(os.fsdecode(entry[3:])) for entry in listing if entry)
        own = (project.config, f"{project.test_dir}/")
        dirty = [path for path in paths if order.working_tree or path == own[0] or path.startswith(own[1])]
        changes = await read_changes(git, before, head, project.folder, dirty)
        trials = list[RunResult]()
        with suppress(StorageError):
            trials = newest_results(prepared.store, {it.resolved.name: MAX_TRIALS for it in suites})
        known = evidence(suites, project.folder, trials, environ)
        # Trials tell of the commit that is compared with, if none of what they felt has changed up to it. What was not
        # committed, nobody knows later.
        lasting, later = list[SuiteEvidence](), dict[str, ChangeSet]()
        for suite in known:
            kept = []
            for run in suite.trials:
                tested = run.source.commit if run.source and run.source.parent is None else None
                if tested and tested not in later and len(later) < MAX_COMMITS:
                    later[tested] = await read_changes(git, tested, before, project.folder)
                since, one = later.get(tested or ""), replace(suite, trials=(run,))
                if since and not choose(since, [one], project, min_trials=1)[0].runs:
                    kept.append(run)
            lasting.append(replace(suite, trials=tuple(kept)))
        return choose(changes, lasting, project)
