"""`zelda calibrate`: how much does a suite vary when nothing changes?"""

import os
import sys
from dataclasses import replace
from pathlib import Path

import click

from zelda_ci import app
from zelda_ci.app import RunOrder
from zelda_ci.cli import completion, options, report
from zelda_ci.cli.output import echo
from zelda_ci.config.project import results_folder
from zelda_ci.config.selection import select
from zelda_ci.config.settings import read_environment
from zelda_ci.domain.run import RunResult
from zelda_ci.errors import ConfigError
from zelda_ci.overrides import Given, Overrides
from zelda_ci.pipeline.comparing import calibrate_suite, stored_trials
from zelda_ci.report import terminal
from zelda_ci.report.builders.history import calibration_view
from zelda_ci.report.terminal.pages import print_calibration
from zelda_ci.storage.history import RunHistory
from zelda_ci.storage.references import Calibrations

FOLDER = click.Path(path_type=Path, file_okay=False)
ENOUGH = 10


@click.command(
    epilog="Examples: `zelda calibrate rest-endpoint`; `zelda calibrate rest-endpoint --stored` costs nothing."
)
@click.argument("suite", shell_complete=completion.suites)
@options.project
@click.option("--trials", type=options.Whole(min=2, max=1000), help=f"How often the suite is run.  [default: {ENOUGH}]")
@click.option("--stored", is_flag=True, help="Run nothing: take the stored runs of the newest run's commit.")
@click.option("--jobs", type=options.Whole(min=1), default=1, show_default=True, help="Sessions in parallel.")
@click.option("--replay", type=FOLDER, metavar="DIR", help="Replay the model's responses from this folder.")
@options.overrides("calibrate")
@options.unsafe
@options.no_check
@options.working_tree
@click.option("--json", "as_json", is_flag=True, help="Print JSON; progress goes to standard error.")
def calibrate(  # noqa: PLR0913 - its options
    overrides: Overrides,
    *,
    suite: str,
    project: Path,
    trials: int | None,
    stored: bool,
    jobs: int,
    replay: Path | None,
    unsafe: bool,
    no_check: bool,
    working_tree: bool,
    as_json: bool,
) -> None:
    """Measure how much a suite varies when nothing changes.

    Runs SUITE several times on one commit. Reports how often each criterion flips, how far each number spreads, and
    how large a change must be for 1, 3, 5 or 10 trials to separate it from noise. The result is stored under
    .zelda/calibration/, and `zelda compare` quotes it.

    Each trial is a session: it needs ANTHROPIC_API_KEY or another credential, and costs money. --stored needs neither.
    """
    if stored:
        if trials or replay or working_tree:
            hint = "Give --stored to run nothing, or the others to run."
            raise ConfigError("--stored excludes --trials, --replay and --working-tree.", hint=hint, code="USAGE")
        results_dir = results_folder(project)
        runs = stored_trials(RunHistory(results_dir), suite)
    else:
        overrides = replace(overrides, trials=Given(trials or ENOUGH, "option", "--trials"))
        order = RunOrder(
            [suite],
            overrides=overrides,
            jobs=jobs,
            replay=replay,
            unsafe=unsafe,
            check=not no_check,
            working_tree=working_tree,
        )
        suite, results_dir, runs = _run(project, order, as_json=as_json)
    calibration = calibrate_suite(suite, runs)
    path = Calibrations(results_dir).save(calibration)
    if as_json:
        report.print_json(calibration)
    else:
        view = calibration_view(calibration, os.path.relpath(path))
        print_calibration(terminal.open_console(sys.stdout), view)


def _run(project: Path, order: RunOrder, *, as_json: bool) -> tuple[str, Path, tuple[RunResult, ...]]:
    """The suite's name, the results folder and the new runs."""
    loaded = app.load(project, order.names)
    names = [chosen.resolved.name for chosen in select(loaded.suites, order.names)]
    if len(names) != 1:
        raise ConfigError(f"{order.names[0]} is more than one suite.", hint="Calibrate one at a time.", code="USAGE")
    settings = read_environment(os.environ)
    report.ask_about_isolation(loaded, order, settings)
    with report.progress(as_json=as_json) as emit:
        batch = app.run(loaded, order, settings, emit)
    if batch.interrupted:
        echo("Nothing was calibrated; what was finished is stored, and --stored takes it.", err=True)
        raise KeyboardInterrupt
    return names[0], loaded.results_dir, batch.runs
