"""`zelda report`: stored runs as one HTML file."""

import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

from zelda_ci.cli import completion, options
from zelda_ci.cli.compare import compare_stored
from zelda_ci.cli.output import echo, typed_path
from zelda_ci.config.files import find_root
from zelda_ci.config.project import results_folder
from zelda_ci.domain.numbers import brief_count
from zelda_ci.domain.run import batch_of
from zelda_ci.domain.trials import Side
from zelda_ci.errors import ConfigError
from zelda_ci.pipeline.comparing import kept_comparison
from zelda_ci.pipeline.html_report import report_alone, report_of_arms, report_of_sides, write_html
from zelda_ci.report.text import visible
from zelda_ci.report.told import CiReport
from zelda_ci.storage.history import RunHistory
from zelda_ci.storage.references import LATEST, SideReference, read_side

FILE_NAME = "report.html"


@click.command(
    epilog="Examples: `zelda report --open`; `zelda report main.json latest -o report.html`; `zelda report latest~1 "
    "latest`; `zelda report openapi-2026-02-13T14-30-00`."
)
@click.argument("runs", nargs=-1, metavar="[RUN]... | BASELINE CANDIDATE", shell_complete=completion.runs)
@options.project
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write it (default: report.html in the folder of the results).",
)
@click.option("--open", "is_opened", is_flag=True, help="Show it in the browser.")
@click.option("--no-transcripts", is_flag=True, help="Leave out what sessions said, did and changed.")
@click.option("--all-transcripts", is_flag=True, help="Also show the transcripts of sessions that passed.")
@click.option("--allow-mixed", is_flag=True, help="Show deltas even if suites, models or versions differ.")
def report(
    *,
    runs: tuple[str, ...],
    project: Path,
    output: Path | None,
    is_opened: bool,
    no_transcripts: bool,
    all_transcripts: bool,
    allow_mixed: bool,
) -> None:
    """Write stored runs as one HTML file: verdicts, numbers, transcripts, and two sides beside each other.

    Transcripts are those of sessions that did not pass, and of the two of a suite that stand side by side.

    RUN is a run or a batch as for `zelda show`; without it, the newest batch. Two of them are compared as by
    `zelda compare`: what the first is called is the base. A batch of `zelda run --against main` has both sides already.

    The file needs nothing else: no network, no other files, and no scripts, though more can be done where they run.
    """
    results_dir = results_folder(project)
    history = RunHistory(results_dir)
    sides = [read_side(history, name, whole=len(runs) != 2) for name in runs or (LATEST,)]
    made = _report_of(project, history, sides, allow_mixed=allow_mixed)
    if no_transcripts and all_transcripts:
        message = "--no-transcripts and --all-transcripts exclude each other."
        raise ConfigError(message, hint="Give one of them.", code="USAGE")
    target = output or results_dir / FILE_NAME
    if not target.parent.is_dir():
        hint = "Make it first, or give another file with -o."
        raise ConfigError(f"The folder {target.parent} does not exist.", hint=hint, code="USAGE")
    size = write_html(target, made, history, include_texts=not no_transcripts, all_transcripts=all_transcripts)
    echo(f"{visible(typed_path(target), 1000)} ({brief_count(size)}B)")
    if is_opened and not webbrowser.open(target.resolve().as_uri()):
        echo("No browser could be started: open the file yourself.", err=True)


def _report_of(project: Path, history: RunHistory, sides: Sequence[SideReference], *, allow_mixed: bool) -> CiReport:
    """Two sides against each other; one, or many, as they are."""
    subject = find_root(project).name
    if len(sides) == 2:
        baseline, candidate = sides
    else:
        batch = batch_of([run for side in sides for run in side.runs])
        is_batch = len(sides) == 1 and len(batch.runs) > 1
        if is_batch and (made := kept_comparison(results_folder(project), batch.batch_id)):
            return report_of_arms(*made, subject)
        if not batch.base_runs:
            return report_alone(batch, subject)
        baseline = SideReference(Side.BASE.value, batch.base_runs)
        candidate = SideReference(Side.HEAD.value, batch.runs)
    compared, changes = compare_stored(project, history, baseline, candidate, allow_mixed=allow_mixed)
    return report_of_sides(baseline, candidate, compared, subject, changes)
