"""`zelda history`: one suite over time."""

import os
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path

import click

from zelda_ci.cli import completion, options, printing
from zelda_ci.cli.output import echo
from zelda_ci.compare.drift import MAX_NIGHTS, night_of, watch, with_night
from zelda_ci.config.project import results_folder
from zelda_ci.domain.nights import Night, NightlyHistory
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.trials import Side
from zelda_ci.errors import StorageError
from zelda_ci.files.atomic import read_file
from zelda_ci.report.builders.nights import nights_view
from zelda_ci.report.text import visible
from zelda_ci.storage import codec
from zelda_ci.storage.history import RunHistory

NIGHTS, RESULTS = "history.json", "zelda-results.json"
MAX_FILE_BYTES = {RESULTS: 64 << 20, NIGHTS: 16 << 20}
ROWS = 30
MAX_NAMED = 5
MAX_NAME_LENGTH = 100


@click.command(epilog="Examples: `zelda history rest-endpoint`; `zelda history rest-endpoint --from artifacts --json`.")
@click.argument("suite", shell_complete=completion.suites)
@options.project
@click.option(
    "--from",
    "folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Read unpacked artifacts below this folder in place of the project's runs.",
)
@click.option(
    "--limit",
    type=options.Whole(1, MAX_NIGHTS),
    metavar="N",
    default=ROWS,
    help=f"Only the newest N rows.  [default: {ROWS}]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def history(*, suite: str, project: Path, folder: Path | None, limit: int, as_json: bool) -> None:
    """Show one suite over time.

    A row for each `zelda run`, or for each night, with how often criteria, build and tests passed, and what changed in
    between: the suite, steering files, code, Claude Code, the models that answered.
    """
    if folder:
        nights = [*_of_artifacts(folder)]
        names = {name for night in nights for name in night.suites}
    else:
        stored = RunHistory(results_folder(project))
        runs = stored.overview().runs
        names = {run.suite for run in runs}
        # Trials of the base that ran beside them show another commit. Ids of batches begin with the time.
        own = [run for run in runs if run.suite == suite and run.side is Side.HEAD]
        batches = sorted({run.batch_id for run in own})[-MAX_NIGHTS:]
        found = ([stored.result(run.run_id) for run in own if run.batch_id == name] for name in batches)
        nights = [night for each in found if (night := night_of(each))]
    kept = NightlyHistory()
    by_id = {
        night.batch_id: night.replace(suites={suite: night.suites[suite]}) for night in nights if suite in night.suites
    }
    for night in sorted(by_id.values(), key=lambda night: (night.at, night.batch_id)):
        kept = watch(with_night(kept, night))
    if not kept.nights:
        raise _nothing(suite, names, folder)
    if as_json:
        printing.print_json(kept.replace(nights=kept.nights[-limit:]))
        return
    printing.print_table(nights_view(kept, suite, limit))


def _nothing(suite: str, names: Collection[str], folder: Path | None) -> StorageError:
    """Why there is no row to show."""
    if suite in names:
        message = f"No run of the suite {suite!r} can be shown."
        hint = "Runs that failed, were not judged, or are of an older Zelda (without a fingerprint) are left out."
    elif names:
        shown = sorted(visible(name, MAX_NAME_LENGTH) for name in names)
        near = get_close_matches(suite, shown, n=1)
        guess = f"Did you mean {near[0]}?" if near else f"There are results of {', '.join(shown[:MAX_NAMED])}."
        message, hint = f"There are no results of the suite {suite!r}. {guess}", "`zelda list` shows all stored runs."
    elif folder:
        message = f"There are no results of nights or runs below {folder}."
        hint = f"Zelda looks for {NIGHTS} and {RESULTS}: unpack artifacts with `gh run download RUN --dir {folder}`."
    else:
        message, hint = "There is no stored run yet.", "Make one with `zelda run`."
    return StorageError(message, hint=hint, code="NO_RUNS")


def _of_artifacts(folder: Path) -> Iterator[Night]:
    """Nights of histories, and of results that no history tells of; results come first, for a row knows more."""
    for name in (RESULTS, NIGHTS):
        for place, folders, names in os.walk(folder):
            folders.sort()
            path = Path(place) / name
            # Links lead nowhere.
            if name not in names or path.is_symlink():
                continue
            try:
                data = read_file(path, MAX_FILE_BYTES[name])
                if name == NIGHTS:
                    yield from codec.decode(NightlyHistory, data, str(path)).nights
                elif night := night_of(codec.decode(BatchResult, data, str(path)).runs):
                    yield night
            except StorageError as problem:
                echo(f"Left out: {problem.message}", err=True)
