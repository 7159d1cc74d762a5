"""`zelda coverage`: which suites felt which of the files that steer Claude Code."""

from pathlib import Path

import click

from zelda_ci.cli import options, printing
from zelda_ci.config.project import results_folder
from zelda_ci.errors import StorageError
from zelda_ci.report.builders.coverage import coverage_table
from zelda_ci.selection.evidence import coverage as covered
from zelda_ci.storage.history import RunHistory
from zelda_ci.storage.references import read_results

RESULTS = "zelda-results.json"
MAX_RUNS = 1_000


@click.command(
    epilog="Examples: `zelda coverage`; `zelda coverage --suite rest-endpoint --json`; `zelda coverage artifact/` for "
    "an artifact of `zelda ci` that was downloaded."
)
@click.argument("source", required=False, metavar="[RESULTS]", type=click.Path(path_type=Path, exists=True))
@options.project
@options.suites
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def coverage(*, source: Path | None, project: Path, suites: tuple[str, ...], as_json: bool) -> None:
    """Show which suites used which skills, rules, CLAUDE.md files, sub-agents, MCP servers and hooks.

    What no suite ever touches comes first. RESULTS is a file with results, or the folder of an artifact; without it,
    the newest runs that are stored here are read. No session runs.
    """
    if source:
        file = source / RESULTS if source.is_dir() else source
        if not file.is_file():
            hint = "Give the folder of an artifact of `zelda ci`, or a file that `zelda run --json` printed."
            raise StorageError(f"{source} holds no {RESULTS}.", hint=hint, code="NO_RUNS")
        runs = [run for run in read_results(file) if not suites or run.suite in suites]
    else:
        history = RunHistory(results_folder(project))
        stored = [run for run in history.overview().runs if not suites or run.suite in suites]
        runs = [history.result(run.run_id) for run in stored[:MAX_RUNS]]
    found = covered(runs)
    if as_json:
        printing.print_json(found)
    else:
        printing.print_table(coverage_table(found))
