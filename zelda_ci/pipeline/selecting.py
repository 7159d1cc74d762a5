"""Of the suites that were asked for, those that a change can concern: git and stored trials in, choices out."""

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import anyio

from zelda_ci import metrics
from zelda_ci.config.merge import LoadedSuite
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.schema import CONFIG_FILE
from zelda_ci.domain.fingerprint import EVALUATORS
from zelda_ci.domain.run import RunResult
from zelda_ci.errors import ConfigError, StorageError
from zelda_ci.pipeline.changed_files import printable, read_changes
from zelda_ci.pipeline.digests import digest
from zelda_ci.pipeline.fingerprints import system_name
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.redact import Redactor
from zelda_ci.selection.choice import SuiteChoice, choose
from zelda_ci.selection.effects import ChangeSet, ProjectFiles, SuiteEvidence, own_places
from zelda_ci.storage.history import RunHistory
from zelda_ci.workspace.git import Git, for_status, prepare

# Of each suite; what it did before these says little of what it does today.
MAX_TRIALS = 30
# Commits that stored trials were run on; those of others are not looked at.
MAX_COMMITS = 20


def project_files(loaded: LoadedProject, prefix: str) -> ProjectFiles:
    """Where a project has its files; `prefix` is its folder in the repository, empty at the top."""
    # Spelled as the changes are, which are printed: names need not be text.
    prefix = printable(prefix)
    return ProjectFiles(prefix, _in(prefix, CONFIG_FILE), _in(prefix, loaded.config.test_dir))


def evidence(
    suites: Iterable[LoadedSuite], prefix: str, trials: Sequence[RunResult], environ: Mapping[str, str]
) -> tuple[SuiteEvidence, ...]:
    """Each suite with its files and its trials, and what it would run on today."""
    known, prefix = [], printable(prefix)
    platform = {"agentSdk": version("claude-agent-sdk"), "system": system_name(environ)}
    for suite in suites:
        it = suite.resolved
        prompt = suite.provenance.get("prompt")
        files = own_places(it, prefix, (it.file, *([prompt.file] if prompt and prompt.file else [])))
        own = tuple(run for run in trials if run.suite == it.name)
        judges = {EVALUATORS: digest(metrics.versions(it.metrics))}
        known.append(SuiteEvidence(it, files, own, platform | judges))
    return tuple(known)


def stored_trials(history: RunHistory, names: Iterable[str]) -> list[RunResult]:
    """The newest stored trials of each suite; without any where they cannot be read."""
    wanted = dict.fromkeys(names, MAX_TRIALS)
    trials = []
    try:
        for run in history.overview().runs:
            if wanted.get(run.suite, 0):
                wanted[run.suite] -= 1
                trials.append(history.result(run.run_id))
    except StorageError:
        return []
    return trials


def changed_since(
    ref: str,
    loaded: LoadedProject,
    suites: Sequence[LoadedSuite],
    environ: Mapping[str, str],
    redact: Redactor,
    order: RunOrder,
) -> tuple[SuiteChoice, ...]:
    """Which suites what has changed since a commit can concern, by the trials that are stored here.

    Args:
        ref: A branch, tag or commit; what counts is where the line of the tested commit left it.
        loaded: The project.
        suites: Those that were asked for, as they would run.
        environ: The user's environment.
        redact: For what git says.
        order: Which files are tested.

    Raises:
        ConfigError: The project is in no repository, or there is no such commit.
        WorkspaceError: There is no git, or it did not end.
    """
    with tempfile.TemporaryDirectory(prefix="zelda-changes-") as name:
        git = prepare(Path(name), environ, redact).within(loaded.root)
        return anyio.run(_changed_since, ref, loaded, suites, git, environ, order)


async def _changed_since(
    ref: str,
    loaded: LoadedProject,
    suites: Sequence[LoadedSuite],
    git: Git,
    environ: Mapping[str, str],
    order: RunOrder,
) -> tuple[SuiteChoice, ...]:
    tested = order.commit.ref if order.commit else "HEAD"
    project = await _Repository.find(git, loaded, ref, tested)
    dirty = await _dirty(for_status(git, environ), project.files, whole=order.working_tree)
    changes = await read_changes(project.git, project.before, project.head, project.files.folder, dirty)
    names = [suite.resolved.name for suite in suites]
    trials = stored_trials(RunHistory(loaded.results_dir), names)
    known = evidence(suites, project.files.folder, await project.lasting(trials, suites, environ), environ)
    return choose(changes, known, project.files)


@dataclass(frozen=True)
class _Repository:
    git: Git
    """At its top."""
    files: ProjectFiles
    before: str
    head: str

    @classmethod
    async def find(cls, git: Git, loaded: LoadedProject, ref: str, tested: str) -> "_Repository":
        where = await git.attempt("rev-parse", "--show-prefix", "--show-toplevel")
        if where.exit_code != 0:
            message = f"{loaded.root} is in no git repository, so nobody knows what changed since {ascii(ref)[1:-1]}."
            raise ConfigError(message, hint="Leave --changed-since out to run all suites.", code="NO_REPOSITORY")
        prefix, top_folder = where.stdout.split(b"\n")[:2]
        top = git.within(Path(os.fsdecode(top_folder)))
        head, wanted = [await _commit(top, name) for name in (tested, ref)]
        base = await top.attempt("merge-base", wanted, head)
        before = base.stdout.decode().strip() if base.exit_code == 0 else wanted
        return cls(top, project_files(loaded, os.fsdecode(prefix).rstrip("/")), before, head)

    async def lasting(
        self, trials: Sequence[RunResult], suites: Sequence[LoadedSuite], environ: Mapping[str, str]
    ) -> list[RunResult]:
        """The trials that tell of the commit that is compared with: none of what they felt has changed up to it."""
        commits = dict.fromkeys(commit for run in trials if (commit := _tested(run)))
        changes = {
            commit: await read_changes(self.git, commit, self.before, self.files.folder)
            for commit in list(commits)[:MAX_COMMITS]
        }
        known = {it.suite.name: it for it in evidence(suites, self.files.folder, (), environ)}
        return [run for run in trials if self._lasts(run, changes.get(_tested(run) or ""), known[run.suite])]

    def _lasts(self, run: RunResult, changes: ChangeSet | None, suite: SuiteEvidence) -> bool:
        if changes is None:
            return False
        (choice,) = choose(changes, [replace(suite, trials=(run,))], self.files, min_trials=1)
        return not choice.runs


def _tested(run: RunResult) -> str | None:
    """The commit of the user's that was tested; of what was not committed, nobody knows later what it was."""
    source = run.source
    return source.commit if source and source.parent is None else None


async def _commit(git: Git, name: str) -> str:
    outcome = await git.attempt("rev-parse", "--verify", "-q", "--end-of-options", f"{name}^{{commit}}")
    if outcome.exit_code != 0:
        message = f"There is no commit {name!a} in this repository."
        hint = "Give a branch, a tag, a commit or HEAD~1; `git fetch` brings what only the server has."
        raise ConfigError(message, hint=hint, code="UNKNOWN_COMMIT")
    return outcome.stdout.split()[-1].decode()


async def _dirty(git: Git, files: ProjectFiles, *, whole: bool) -> list[str]:
    """Files that are not as they were committed: suites and configuration are read as they lie there."""
    outcome = await git.attempt("status", "--porcelain", "-z", "-uall", "--no-renames")
    paths = [entry[3:].decode("utf-8", "backslashreplace") for entry in outcome.stdout.split(b"\0") if entry]
    return [path for path in paths if whole or path == files.config or path.startswith(f"{files.test_dir}/")]


def _in(prefix: str, path: str) -> str:
    return f"{prefix}/{path}" if prefix else path
