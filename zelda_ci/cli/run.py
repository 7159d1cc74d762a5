"""`zelda run`: suites in, results and a report out."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click

from zelda_ci.app import Invocation
from zelda_ci.cli import completion, debug_log, merge, options, report, reporters
from zelda_ci.cli.choosing import Selection, select_in
from zelda_ci.cli.output import echo
from zelda_ci.cli.reporters import Reporter, RunReport, folder_name, narrowed
from zelda_ci.config.environment import read_environment
from zelda_ci.domain.run import BatchResult, StoredTrials, empty_batch
from zelda_ci.domain.shards import ShardOf
from zelda_ci.errors import EXIT_INTERRUPTED, ZeldaError
from zelda_ci.overrides import Overrides
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.workspace.base_commit import BaseOrder

# A session mostly waits for the model: two processors carry more, and the lowest rate limits this many.
JOBS = 4
FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(
    epilog="Examples: `zelda run` runs every suite; `zelda run rest-endpoint --trials 3` runs one three times; "
    "`zelda run 'api/*' -x` runs those of a folder; `zelda run --last-failed`."
)
@click.argument("names", nargs=-1, metavar="[SUITE]...", shell_complete=completion.suites)
@options.project
@options.selection
@click.option(
    "--changed-since",
    metavar="REF",
    help="Only suites whose result may change by what changed since this branch, tag or commit; the others are named.",
)
@click.option("--all", "run_all", is_flag=True, help="All suites, whatever --changed-since says.")
@click.option("--all-projects", is_flag=True, help="Run every project in the folder and below, one after the other.")
@click.option(
    "--jobs",
    type=options.Whole(min=1),
    default=JOBS,
    envvar="ZELDA_JOBS",
    show_default=True,
    help="Sessions in parallel; ZELDA_JOBS is the same.",
)
@click.option("--record", type=FOLDER, metavar="DIR", help="Record the model's responses as cassettes in this folder.")
@click.option(
    "--replay", type=FOLDER, metavar="DIR", help="Replay the model's responses from this folder: no key, no network."
)
@click.option(
    "--against",
    metavar="REF",
    help="Compare with this commit, branch or tag, such as main or HEAD~1: a few trials of your files, and where they "
    "look worse, more of both, side by side.",
)
@click.option(
    "--budget-usd",
    type=options.Amount(min=0, min_open=True),
    help="Most that the whole invocation may cost, judges included; what is under way may finish.",
)
@click.option(
    "--shard",
    type=options.ShardType(),
    help="Run this part of the suites only, as 2/4, and leave it as a file under .zelda/shards/ for `zelda merge`.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only say what would run and what it may cost, from stored trials; needs no key. With --json for programs.",
)
@click.option("-x", "--fail-fast", is_flag=True, help="Begin nothing more once a run did not pass: --max-failures 1.")
@click.option(
    "--max-failures",
    type=options.Whole(min=1),
    help="Begin nothing more once so many runs did not pass; what is under way finishes, and the rest is named.",
)
@click.option("--yes", is_flag=True, help="Also run suites whose build or tests fail before any session.")
@options.overrides("run")
@options.unsafe
@options.no_check
@options.commit
@reporters.option
@reporters.page
@reporters.quiet
@reporters.steps
@click.option("--json", "as_json", is_flag=True, help="The same as --reporter json; progress goes to standard error.")
def run(  # noqa: PLR0913 - its options
    overrides: Overrides,
    *,
    project: Path,
    changed_since: str | None,
    run_all: bool,
    all_projects: bool,
    jobs: int,
    record: Path | None,
    replay: Path | None,
    against: str | None,
    budget_usd: float | None,
    shard: ShardOf | None,
    dry_run: bool,
    fail_fast: bool,
    max_failures: int | None,
    yes: bool,
    unsafe: bool,
    no_check: bool,
    commit: str | None,
    chosen_reporters: tuple[Reporter, ...],
    page: Path | None,
    quiet: bool,
    steps: bool,
    as_json: bool,
    names: tuple[str, ...],
    tags: tuple[str, ...],
    grep: str | None,
    last_failed: bool,
) -> int:
    """Run suites, each in a real Claude Code session, and print a report.

    SUITE is a suite's name, its file or folder, or a pattern such as 'api/*'; without it, all suites run. Each session
    works in a copy of your files as they are, committed or not, but not of those that git ignores; with --commit in a
    copy of a commit. Results are stored under .zelda/runs/. With --against, suites run on your files and on that
    commit, side by side, as often as a verdict needs, and are compared.

    A session needs ANTHROPIC_API_KEY or another credential, and costs money; --replay needs neither. Before anything is
    spent, everything that the runs need is tried as `zelda check` does it.
    """
    reporting = reporters.chosen(chosen_reporters, as_json=as_json, quiet=quiet, page=page)
    reporting = replace(reporting, steps=steps)
    chosen = select_in(project, Selection(names, tags, grep, last_failed), all_projects=all_projects)
    roots = [loaded.root for loaded, _ in chosen.projects]
    of_each = reporting.of_each(roots) if all_projects else [reporting]
    for each in of_each:
        each.need_folders()
    settings = read_environment(os.environ)
    order = RunOrder(overrides=overrides, jobs=jobs, record=record, replay=replay, unsafe=unsafe, check=not no_check)
    against_ref = None if against is None else BaseOrder(against)
    # Every shard must see the same files: a commit has them on all machines.
    order = options.tested(order, options.LAST if shard and commit is None else commit)
    order = replace(order, against=against_ref, budget_usd=budget_usd, despite_failing=yes)
    order = replace(order, max_failures=1 if fail_fast else max_failures)
    asked = [
        Asked(Invocation(loaded, replace(order, names=meant), settings), RunReport(each, loaded))
        for (loaded, meant), each in zip(chosen.projects, of_each, strict=True)
    ]
    since = None if run_all else changed_since
    if shard:
        return merge.run_shard(asked[0].invocation, shard, asked[0].report, since)
    work = EachProject(since, is_several=chosen.is_several)
    for root, problem in chosen.unusable.items():
        work.refuse(root, problem)
    if dry_run:
        for one in asked:
            work.foretell(one, as_json=reporting.printed == "json")
    else:
        work.run(asked)
    return work.code


@dataclass(frozen=True)
class Asked:
    """What to run in a project, and how it is reported."""

    invocation: Invocation
    report: RunReport

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.invocation.loaded.root


class EachProject:
    """Runs one project after the other; of several, one that cannot be run does not keep the others from it."""

    def __init__(self, changed_since: str | None, *, is_several: bool) -> None:
        self._changed_since, self._is_several = changed_since, is_several
        self._endings: list[str] = []
        self.code = 0

    def run(self, asked: Sequence[Asked]) -> None:
        """Every project, and every question before the first."""
        ready = []
        for one in asked:
            with self._tolerant(one.root):
                found = narrowed(one.invocation, self._changed_since)
                if found:
                    report.ask_about_isolation(found)
                ready.append((one, found))
        spent = 0.0
        for at, (one, found) in enumerate(ready, start=1):
            with self._tolerant(one.root):
                self._title(one)
                batch, stored = self._batch(one, found, spent)
                spent += batch.cost_usd
                code = one.report.show(batch, stored)
                self._end(one.root, f"exit code {code}" if batch.runs else "nothing to run", code)
                if code == EXIT_INTERRUPTED or batch.ended:
                    for left, _ in ready[at:]:
                        self._end(left.root, "not begun")
                    break
        if self._is_several:
            echo("\nProjects: " + ", ".join(self._endings), err=True)

    def foretell(self, one: Asked, *, as_json: bool) -> None:
        """What would run, without the suites that what has changed cannot concern, and what it may cost."""
        with self._tolerant(one.root):
            found = narrowed(one.invocation, self._changed_since)
            if found is None:
                return
            self._title(one)
            with one.report.progress():
                forecast = found.with_stored().forecast()
            report.print_forecast_of(forecast, as_json=as_json)

    def refuse(self, root: Path, problem: ZeldaError) -> None:
        """Say what is wrong with a project."""
        echo(f"\nProject {folder_name(root)}", err=True)
        debug_log.explain(problem)
        self._end(root, "could not be run", problem.exit_code)

    def _batch(
        self, one: Asked, found: Invocation | None, spent: float
    ) -> tuple[BatchResult, Mapping[str, StoredTrials]]:
        if found is None:
            return empty_batch(datetime.now(UTC)), {}
        budget = found.order.budget_usd
        if budget is not None and spent:
            # It is that of the whole command: what one project has spent, the next one lacks.
            found = found.ordering(replace(found.order, budget_usd=max(0.0, budget - spent)))
        with one.report.progress() as emit:
            counted = found.with_stored()
            return counted.run(emit), counted.order.stored

    def _title(self, one: Asked) -> None:
        if self._is_several:
            echo(f"\nProject {folder_name(one.root)}", err=bool(one.report.reporting.printed))

    def _end(self, root: Path, words: str, code: int = 0) -> None:
        self._endings.append(f"{folder_name(root)} ({words})")
        self.code = max(self.code, code)

    @contextmanager
    def _tolerant(self, root: Path) -> Iterator[None]:
        try:
            yield
        except ZeldaError as problem:
            if not self._is_several:
                raise
            self.refuse(root, problem)
