"""`zelda history`: one suite over time."""

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path

import click

from zelda_ci.cli import completion, options, reporters
from zelda_ci.cli.output import echo
from zelda_ci.compare.drift import MAX_NIGHTS, night_of, watch, with_night
from zelda_ci.config.project import results_folder
from zelda_ci.domain.nights import Night, NightlyHistory
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.trials import Side
from zelda_ci.errors import StorageError
from zelda_ci.files.atomic import read_file
from zelda_ci.report.builders.history import nights_view
from zelda_ci.storage import codec
from zelda_ci.storage.result_store import ResultStore

NIGHTS, RESULTS = "history.json", "zelda-results.json"
MAX_FILE_BYTES = 64 << 20
MAX_NAMED = 5


@click.command(epilog="Examples: `zelda history rest-endpoint`; `zelda history rest-endpoint --from artifacts --json`.")
@click.argument("suite", shell_complete=completion.suites)
@options.project
@click.option("--from", "folder", type=options.FOLDER, metavar="DIR", help="Read unpacked artifacts below this folder.")
@options.limit(30, MAX_NIGHTS)
@options.as_json
def history(*, suite: str, project: Path, folder: Path | None, limit: int, as_json: bool) -> None:
    """Show one suite over time.

    A row for each `zelda run`, or for each night, with how often criteria, build and tests passed, and what changed in
    between: the suite, steering files, code, Claude Code, the models that answered.
    """
    if folder:
        nights = [*_of_artifacts(folder)]
        names = {name for night in nights for name in night.suites}
    else:
        stored = ResultStore(results_folder(project))
        runs = stored.overview().runs
        names = {run.suite for run in runs}
        # Trials of the base that ran beside them show another commit. Ids of batches begin with the time.
        own = [run for run in runs if run.suite == suite and run.side is Side.HEAD and not run.variant]
        batches = sorted({run.batch_id for run in own})[-MAX_NIGHTS:]
        found = ([stored.result(run.run_id) for run in own if run.batch_id == name] for name in batches)
        nights = [night for each in found if (night := night_of(each))]
    kept = NightlyHistory()
    by_id = {it.batch_id: it.replace(suites={suite: it.suites[suite]}) for it in nights if suite in it.suites}
    for night in sorted(by_id.values(), key=lambda night: (night.at, night.batch_id)):
        kept = watch(with_night(kept, night))
    if not kept.nights:
        raise _nothing(suite, names, folder)
    reporters.print_table(kept.replace(nights=kept.nights[-limit:]), nights_view(kept, suite, limit), as_json=as_json)


def _nothing(suite: str, names: Collection[str], folder: Path | None) -> StorageError:
    """Why there is no row to show."""
    message, hint = f"There are no results of the suite {suite!r}.", "`zelda list` shows all stored runs."
    if suite in names:
        hint = "Runs that failed, were not judged, or are of an older Zelda (without a fingerprint) are left out."
    elif names:
        near = get_close_matches(suite, names, n=1)
        guess = f"Did you mean {near[0]}?" if near else f"There are results of {', '.join(sorted(names)[:MAX_NAMED])}."
        message = f"{message} {guess}"
    elif folder:
        message = f"There are no results of nights or runs below {folder}."
        hint = f"Zelda looks for {NIGHTS} and {RESULTS}: unpack artifacts with `gh run download RUN --dir {folder}`."
    else:
        message, hint = "There is no stored run yet.", "Make one with `zelda run`."
    return StorageError(message, hint=hint, code="NO_RUNS")


def _of_artifacts(folder: Path) -> Iterator[Night]:
    """Nights of histories, and of results that no history tells of; results come first, for a row knows more."""
    for path in (*sorted(folder.rglob(RESULTS)), *sorted(folder.rglob(NIGHTS))):
        try:
            data = read_file(path, MAX_FILE_BYTES)
            if path.name == NIGHTS:
                yield from codec.decode(NightlyHistory, data, str(path)).nights
            elif night := night_of(codec.decode(BatchResult, data, str(path)).runs):
                yield night
        except StorageError as problem:
            echo(f"Left out: {problem.message}", err=True)
