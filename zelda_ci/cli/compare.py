"""`zelda compare`: two stored sides, and whether the gate passes."""

import sys
from pathlib import Path

import click

from zelda_ci.cli import completion, options, reporters
from zelda_ci.cli.output import echo_raw
from zelda_ci.config.project import InvalidConfigError, load, results_folder
from zelda_ci.domain.run import batch_of
from zelda_ci.errors import StorageError
from zelda_ci.imports import one_at_a_time
from zelda_ci.pipeline.comparing import Compared, changed_steering, compare_sides, kept_comparison, report_of
from zelda_ci.report import terminal
from zelda_ci.report.builders.comparison import comparison_view
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.terminal.pages import print_comparison
from zelda_ci.storage.references import LATEST, SideReference, read_side
from zelda_ci.storage.result_store import ResultStore


@click.command(
    epilog="Examples: `zelda compare`; `zelda compare latest:rest-endpoint~1 latest:rest-endpoint`; `zelda compare "
    "main.json head.json --markdown`. Exit codes: 0 the gate passes, 1 it does not, 2 a side cannot be read or "
    "the head is INCOMPLETE."
)
@click.argument("base", required=False, metavar="[BASE]", shell_complete=completion.runs)
@click.argument("head", default=LATEST, metavar="[HEAD]", shell_complete=completion.runs)
@options.project
@options.allow_mixed
@options.as_json
@click.option("--markdown", is_flag=True, help="Print Markdown for GitHub; the gate's findings go to standard error.")
def compare(*, base: str | None, head: str, project: Path, allow_mixed: bool, as_json: bool, markdown: bool) -> int:
    """Compare two sides: what changed, how sure that is, and whether the gate passes.

    Without arguments, the newest batch (all runs of one `zelda run`) is compared with the one before; of a batch of
    `zelda run --against REF`, the comparison that it made is shown.

    A side is a batch or a run (its id, or the beginning of one), or a file: the output of `zelda run --json`, or a
    result.json. `latest` is the newest batch, `latest~1` the one before; `latest:SUITE` and `latest:SUITE~1` count
    batches with this suite, and take only its runs.

    Sessions vary: with one trial on a side, a difference is changed, not proven, and the gate does not count it.
    """
    options.exclusive(json=as_json, markdown=markdown)
    results_dir = results_folder(project)
    history = ResultStore(results_dir)
    newest = [run for run in history.overview().runs if not run.variant][:1] if base is None else ()
    made = kept_comparison(results_dir, newest[0].batch_id) if newest else None
    if made:
        compared, report = made[1], report_of(*made)
        view = reporters.sides_view(report)
    else:
        sides = read_side(history, base or f"{LATEST}~1"), read_side(history, head)
        compared, report = compare_stored(project, history, *sides, allow_mixed=allow_mixed)
        names = {"baseline": sides[0].name, "candidate": sides[1].name}
        view = comparison_view(compared.comparison, compared.gate, **names, changes=report.changes.steering)
    if as_json:
        reporters.print_json(compared.comparison)
    elif markdown:
        with one_at_a_time("zelda_ci.report.markdown"):
            from zelda_ci.report.markdown import render  # noqa: PLC0415 - jinja2 takes its time

        echo_raw(render("comparison.md.j2", view=view), nl=False)
    elif made:
        reporters.print_sides(report, whole=True)
    else:
        print_comparison(terminal.open_console(sys.stdout), view)
    if as_json or markdown:
        reporters.print_gate(compared.gate)
    if compared.broken:
        hint = "Run the head again; `zelda show` says what went wrong."
        raise StorageError(f"{', '.join(compared.broken)} could not be evaluated.", hint=hint, code="NOT_EVALUATED")
    return compared.gate.exit_code


def compare_stored(
    project: Path, history: ResultStore, base: SideReference, head: SideReference, *, allow_mixed: bool
) -> tuple[Compared, CiReport]:
    """Two stored sides under the gates that are configured now."""
    try:
        gates = {suite.resolved.name: suite.resolved.gate for suite in load(project).suites}
    except InvalidConfigError as invalid:
        # There need be none, as beside two files that came from elsewhere.
        if invalid.code != "NO_SUITES":
            raise
        gates = {}
    compared = compare_sides(base, head, gates, allow_mixed=allow_mixed, pair_suites=True)
    changed = changed_steering(history, base.runs, head.runs)
    return compared, report_of(batch_of(head.runs), compared, batch_of(base.runs), changed)
