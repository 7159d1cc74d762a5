"""`zelda report`: stored runs as one HTML file."""

import webbrowser
from collections.abc import Sequence
from dataclasses import replace
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
from zelda_ci.pipeline.comparing import kept_comparison, report_of
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.html.writer import PageOptions, write_report
from zelda_ci.storage.references import LATEST, SideReference, read_side
from zelda_ci.storage.result_store import ResultStore


@click.command(
    epilog="Examples: `zelda report --open`; `zelda report main.json latest -o report.html`; `zelda report latest~1 "
    "latest`; `zelda report openapi-2026-02-13T14-30-00`."
)
@click.argument("runs", nargs=-1, metavar="[RUN]... | BASE HEAD", shell_complete=completion.runs)
@options.project
@click.option("-o", "--output", type=options.FILE, metavar="FILE", help="Where (default: report.html beside the runs).")
@click.option("--open", "is_opened", is_flag=True, help="Show it in the browser.")
@click.option("--no-transcripts", is_flag=True, help="Leave out what sessions said, did and changed.")
@click.option("--all-transcripts", is_flag=True, help="Also show the transcripts of sessions that passed.")
@options.allow_mixed
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
    options.exclusive(no_transcripts=no_transcripts, all_transcripts=all_transcripts)
    results_dir = results_folder(project)
    history = ResultStore(results_dir)
    sides = [read_side(history, name, whole=len(runs) != 2) for name in runs or (LATEST,)]
    made = replace(_report_of(project, history, sides, allow_mixed=allow_mixed), subject=find_root(project).name)
    target = output or results_dir / "report.html"
    options.check_folder(target)
    write_report(target, made, history, PageOptions(not no_transcripts, all_transcripts))
    echo(f"{typed_path(target)} ({brief_count(target.stat().st_size)}B)")
    if is_opened and not webbrowser.open(target.resolve().as_uri()):
        echo("No browser could be started: open the file yourself.", err=True)


def _report_of(project: Path, history: ResultStore, sides: Sequence[SideReference], *, allow_mixed: bool) -> CiReport:
    """Two sides against each other; one, or many, as they are."""
    if len(sides) == 2:
        return compare_stored(project, history, *sides, allow_mixed=allow_mixed)[1]
    batch = batch_of([run for side in sides for run in side.runs])
    if len(sides) == 1 and len(batch.runs) > 1 and (made := kept_comparison(results_folder(project), batch.batch_id)):
        return report_of(*made)
    if not batch.base_runs:
        return report_of(batch)
    base, head = SideReference(Side.BASE.value, batch.base_runs), SideReference(Side.HEAD.value, batch.runs)
    return compare_stored(project, history, base, head, allow_mixed=allow_mixed)[1]
