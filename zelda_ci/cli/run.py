"""`zelda run`: suites in, results and a report out."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from zelda_ci import app
from zelda_ci.app import RunOrder
from zelda_ci.cli import completion, options, report, reporters
from zelda_ci.cli.choosing import Selection, select_in
from zelda_ci.cli.reporters import Reporter, RunReport
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.settings import EnvironmentSettings, read_environment
from zelda_ci.errors import EXIT_INTERRUPTED
from zelda_ci.overrides import Overrides

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(
    epilog="Examples: `zelda run` runs every suite; `zelda run rest-endpoint --trials 3` runs one three times; "
    "`zelda run 'api/*' --jobs 4` runs those of a folder side by side; `zelda run --last-failed`."
)
@click.argument("names", nargs=-1, metavar="[SUITE]...", shell_complete=completion.suites)
@options.project
@options.selection
@click.option("--all-projects", is_flag=True, help="Run every project in the folder and below, one after the other.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Sessions in parallel.")
@click.option("--record", type=FOLDER, metavar="DIR", help="Record the model's responses as cassettes in this folder.")
@click.option(
    "--replay", type=FOLDER, metavar="DIR", help="Replay the model's responses from this folder: no key, no network."
)
@options.overrides("run")
@options.unsafe
@options.no_check
@options.working_tree
@reporters.option
@reporters.quiet
@click.option("--json", "as_json", is_flag=True, help="The same as --reporter json; progress goes to standard error.")
def run(  # noqa: PLR0913 - its options
    overrides: Overrides,
    *,
    project: Path,
    all_projects: bool,
    jobs: int,
    record: Path | None,
    replay: Path | None,
    unsafe: bool,
    no_check: bool,
    working_tree: bool,
    chosen_reporters: tuple[Reporter, ...],
    quiet: bool,
    as_json: bool,
    names: tuple[str, ...],
    tags: tuple[str, ...],
    grep: str | None,
    last_failed: bool,
) -> int:
    """Run suites, each in a real Claude Code session, and print a report.

    SUITE is the name of a suite, the path of its file or folder, or a pattern such as 'api/*'. Without SUITE, all
    suites run. Each session works in a private copy of the last commit; --working-tree tests what is not committed,
    too. Results are stored under .zelda/runs/.

    A session needs ANTHROPIC_API_KEY or another credential, and costs money; --replay needs neither. Before anything is
    spent, everything that the runs need is tried as `zelda check` does it.
    """
    verbose = bool(click.get_current_context().find_root().params.get("verbose"))
    reporting = reporters.chosen(chosen_reporters, as_json=as_json, quiet=quiet, verbose=verbose)
    chosen = select_in(project, Selection(names, tags, grep, last_failed), all_projects=all_projects)
    settings = read_environment(os.environ)
    order = RunOrder(
        overrides=overrides,
        jobs=jobs,
        record=record,
        replay=replay,
        unsafe=unsafe,
        check=not no_check,
        working_tree=working_tree,
    )
    several = len(chosen.projects) + len(chosen.unusable) > 1
    running = RunReport(reporting, project.resolve() if all_projects else None, settings, titled=several)
    for root, problem in chosen.unusable.items():
        running.refuse(root, problem)
    _run_each([(loaded, replace(order, names=meant)) for loaded, meant in chosen.projects], settings, running)
    return running.finish()


def _run_each(
    orders: Sequence[tuple[LoadedProject, RunOrder]], settings: EnvironmentSettings, running: RunReport
) -> None:
    """One project after the other, and every question before the first."""
    ready = []
    for loaded, order in orders:
        with running.tolerant(loaded.root):
            report.ask_about_isolation(loaded, order, settings)
            ready.append((loaded, order))
    for at, (loaded, order) in enumerate(ready, start=1):
        with running.tolerant(loaded.root):
            with running.progress(loaded) as emit:
                batch = app.run(loaded, order, settings, emit)
            if running.show(batch) == EXIT_INTERRUPTED:
                running.leave([project.root for project, _ in ready[at:]])
                return
