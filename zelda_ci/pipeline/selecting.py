"""Of the suites that were asked for, those that a change can concern: git and stored trials in, choices out."""

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from posixpath import join

from zelda_ci import metrics
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.schema import CONFIG_FILE
from zelda_ci.config.suites import LoadedSuite
from zelda_ci.domain.run import EVALUATORS, RunResult
from zelda_ci.errors import ConfigError, StorageError
from zelda_ci.pipeline.changed_files import printable, read_changes
from zelda_ci.pipeline.comparing import newest_results
from zelda_ci.pipeline.fingerprints import digest, system_name
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.redact import Redactor
from zelda_ci.selection.choice import SuiteChoice, SuiteEvidence, choose
from zelda_ci.selection.effects import ChangeSet, ProjectFiles, own_places
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.git import for_status, prepare, read_commit

# Of each suite; what it did before these says little of what it does today.
MAX_TRIALS = 30
# Commits that stored trials were run on; those of others are not looked at.
MAX_COMMITS = 20


def project_files(loaded: LoadedProject, folder: str) -> ProjectFiles:
    """Where a project has its files; `folder` is its own in the repository."""
    # Spelled as the changes are, which are printed: names need not be text.
    folder = "" if folder == "." else printable(folder)
    return ProjectFiles(folder, join(folder, CONFIG_FILE), join(folder, loaded.config.test_dir))


def evidence(
    suites: Iterable[LoadedSuite], folder: str, trials: Sequence[RunResult], environ: Mapping[str, str]
) -> list[SuiteEvidence]:
    """Each suite with its files and its trials, and what it would run on today; of a project with this folder."""
    platform, known = {"agentSdk": version("claude-agent-sdk"), "system": system_name(environ)}, []
    for suite in suites:
        it, prompt = suite.resolved, suite.provenance.get("prompt")
        files = own_places(it, folder, (it.file, *([prompt.file] if prompt and prompt.file else [])))
        today = {**platform, EVALUATORS: digest(metrics.versions(it.metrics))}
        known.append(SuiteEvidence(it, files, tuple(run for run in trials if run.suite == it.name), today))
    return known


async def changed_since(
    ref: str,
    loaded: LoadedProject,
    suites: Sequence[LoadedSuite],
    environ: Mapping[str, str],
    redact: Redactor,
    order: RunOrder,
) -> tuple[SuiteChoice, ...]:
    """Which suites the change since a commit can concern, by the trials that are stored here.

    What counts is where the line of the tested commit left the branch, tag or commit `ref`.

    Raises:
        ConfigError: The project is in no repository, or there is no such commit.
        WorkspaceError: There is no git, or it did not end.
    """
    with tempfile.TemporaryDirectory(prefix="zelda-changes-") as name:
        git = prepare(Path(name), environ, redact).within(loaded.root)
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
                hint = "Give a branch, a tag, a commit or HEAD~1; `git fetch` brings what only the server has."
                raise ConfigError(message, hint=hint, code="UNKNOWN_COMMIT")
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
            trials = newest_results(ResultStore(loaded.results_dir), {it.resolved.name: MAX_TRIALS for it in suites})
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
