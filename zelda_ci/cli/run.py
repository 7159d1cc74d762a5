"""`zelda run`: suites in, results and a report out."""

import os
from pathlib import Path

import click

from zelda_ci import app
from zelda_ci.app import RunOrder
from zelda_ci.cli import options, report, reporters
from zelda_ci.cli.reporters import Reporter, RunReport, files_in
from zelda_ci.config.settings import read_environment
from zelda_ci.overrides import Overrides

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(
    epilog="Examples: `zelda run` runs every suite; `zelda run rest-endpoint --trials 3` runs one three times; "
    "`zelda run --tag smoke --jobs 4` runs those with a tag side by side."
)
@click.argument("names", nargs=-1, metavar="[SUITE]...")
@options.project
@click.option("--tag", "tags", multiple=True, help="Only suites with this tag; may be given several times.")
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
    names: tuple[str, ...],
    project: Path,
    tags: tuple[str, ...],
    jobs: int,
    record: Path | None,
    replay: Path | None,
    unsafe: bool,
    no_check: bool,
    working_tree: bool,
    chosen_reporters: tuple[Reporter, ...],
    quiet: bool,
    as_json: bool,
) -> int:
    """Run suites, each in a real Claude Code session, and print a report.

    SUITE is the name of a suite or the path of its file. Without SUITE, all suites run. Each session works in a private
    copy of the last commit; --working-tree tests what is not committed, too. Results are stored under .zelda/runs/.

    A session needs ANTHROPIC_API_KEY or another credential, and costs money; --replay needs neither. Before anything is
    spent, everything that the runs need is tried as `zelda check` does it.
    """
    verbose = bool(click.get_current_context().find_root().params.get("verbose"))
    reporting = reporters.chosen(chosen_reporters, as_json=as_json, quiet=quiet, verbose=verbose)
    loaded = app.load(project)
    order = RunOrder(
        names,
        tags,
        overrides,
        jobs=jobs,
        record=record,
        replay=replay,
        unsafe=unsafe,
        check=not no_check,
        working_tree=working_tree,
    )
    settings = read_environment(os.environ)
    report.ask_about_isolation(loaded, order, settings)
    running = RunReport(reporting, files_in(loaded.results_dir))
    with running.progress() as emit:
        batch = app.run(loaded, order, settings, emit)
    return running.show(batch)
