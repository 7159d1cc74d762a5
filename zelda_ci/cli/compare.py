"""`zelda compare`: did the head get worse?"""

import sys
from pathlib import Path

import click

from zelda_ci.cli import completion, options, printing
from zelda_ci.cli.output import echo, echo_raw
from zelda_ci.config.project import examine, results_folder
from zelda_ci.domain.steering import SteeringChange
from zelda_ci.errors import ConfigError, StorageError
from zelda_ci.imports import one_at_a_time
from zelda_ci.pipeline.comparing import Compared, changed_steering, compare_sides, kept_comparison
from zelda_ci.pipeline.html_report import report_of_arms
from zelda_ci.report import terminal
from zelda_ci.report.builders.comparison import comparison_view
from zelda_ci.report.builders.gate import gate_sentences
from zelda_ci.report.terminal.pages import print_comparison
from zelda_ci.storage.history import RunHistory
from zelda_ci.storage.references import LATEST, SideReference, read_side


@click.command(
    epilog="Examples: `zelda compare`; `zelda compare latest:rest-endpoint~1 latest:rest-endpoint`; `zelda compare "
    "main.json head.json --markdown`. Exit codes: 0 the gate passes, 1 it does not, 2 a side cannot be read or "
    "the head is INCOMPLETE."
)
@click.argument("baseline", required=False, metavar="[BASE]", shell_complete=completion.runs)
@click.argument("candidate", default=LATEST, metavar="[HEAD]", shell_complete=completion.runs)
@options.project
@click.option("--allow-mixed", is_flag=True, help="Show deltas even if suites, models or versions differ.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the gate's findings go to standard error.")
@click.option("--markdown", is_flag=True, help="Print Markdown for GitHub; the gate's findings go to standard error.")
def compare(
    *, baseline: str | None, candidate: str, project: Path, allow_mixed: bool, as_json: bool, markdown: bool
) -> int:
    """Compare two sides: what changed, how sure that is, and whether the gate passes.

    Without arguments, the newest batch (all runs of one `zelda run`) is compared with the one before; of a batch of
    `zelda run --against REF`, the comparison that it made is shown.

    A side is a batch or a run (its id, or the beginning of one), or a file: the output of `zelda run --json`, or a
    result.json. `latest` is the newest batch, `latest~1` the one before; `latest:SUITE` and `latest:SUITE~1` count
    batches with this suite, and take only its runs.

    Sessions vary: with one trial on a side, a difference is changed, not proven, and the gate does not count it.
    """
    if as_json and markdown:
        raise ConfigError("--json and --markdown exclude each other.", hint="Give one of them.", code="USAGE")
    results_dir = results_folder(project)
    history = RunHistory(results_dir)
    newest = history.overview().runs[:1] if baseline is None else ()
    made = kept_comparison(results_dir, newest[0].batch_id) if newest else None
    if made:
        compared, view = made[1], printing.sides_view(report_of_arms(*made))
    else:
        before, after = read_side(history, baseline or f"{LATEST}~1"), read_side(history, candidate)
        compared, changes = compare_stored(project, history, before, after, allow_mixed=allow_mixed)
        names = {"baseline": before.name, "candidate": after.name}
        view = comparison_view(compared.comparison, compared.gate, **names, changes=changes)
    if as_json:
        printing.print_json(compared.comparison)
    elif markdown:
        with one_at_a_time("zelda_ci.report.markdown"):
            from zelda_ci.report.markdown import render  # noqa: PLC0415 - jinja2 takes its time

        echo_raw(render("comparison.md.j2", view=view), nl=False)
    elif made:
        printing.print_sides(report_of_arms(*made), whole=True)
    else:
        print_comparison(terminal.open_console(sys.stdout), view)
    if as_json or markdown:
        for reason in gate_sentences(compared.gate):
            echo(f"gate: {reason}", err=True)
    if compared.empty:
        hint = "Run the head again; `zelda show` says why its runs failed."
        raise StorageError("No run of the head is valid, so nothing was compared.", hint=hint, code="NO_VALID_RUN")
    if compared.broken:
        hint = "Run the head again; `zelda show` says what went wrong."
        raise StorageError(f"{', '.join(compared.broken)} could not be evaluated.", hint=hint, code="NOT_EVALUATED")
    return compared.gate.exit_code


def compare_stored(
    project: Path, history: RunHistory, before: SideReference, after: SideReference, *, allow_mixed: bool
) -> tuple[Compared, tuple[SteeringChange, ...]]:
    """Two stored sides under the gates that are configured now, and the files that steer and differ.

    Raises:
        ConfigError: The configuration is broken: what it asks for cannot be known. There need be none, as beside two
            files that came from elsewhere.
    """
    examination = examine(project)
    if examination.project is None and examination.code != "NO_SUITES":
        raise examination.error()
    suites = examination.project.suites if examination.project else ()
    gates = {suite.resolved.name: suite.resolved.gate for suite in suites}
    compared = compare_sides(before, after, gates, allow_mixed=allow_mixed, pair_suites=True)
    return compared, changed_steering(history, before.runs, after.runs)
