"""Commands about stored runs: what they were, what changed over time and between two sides, a report; clean-up."""

import os
import sys
import webbrowser
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path

import anyio
import click

from zelda_ci import app
from zelda_ci.cli import options, reporters
from zelda_ci.cli.boundary import echo, echo_raw, typed_path
from zelda_ci.cli.reporters import Reporting, RunReport
from zelda_ci.compare.drift import MAX_NIGHTS, night_of, watch, with_night
from zelda_ci.config.environment import read_environment
from zelda_ci.config.files import find_root
from zelda_ci.config.project import InvalidConfigError, load, results_folder
from zelda_ci.domain.nights import Night, NightlyHistory
from zelda_ci.domain.numbers import brief_count, format_count
from zelda_ci.domain.run import BatchResult, batch_of
from zelda_ci.domain.trials import Side
from zelda_ci.errors import ConfigError, NotStoredError, StorageError, ZeldaError
from zelda_ci.files.atomic import read_file
from zelda_ci.imports import one_at_a_time
from zelda_ci.pipeline.comparing import Compared, changed_steering, compare_sides, kept_comparison, report_of
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.redact import Redactor
from zelda_ci.report.builders.history import history_table, nights_view
from zelda_ci.report.builders.steering import attribution_section, coverage_table
from zelda_ci.report.builders.transcript import patch_lines, transcript_lines
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.html.writer import PageOptions, write_report
from zelda_ci.report.model import Detail
from zelda_ci.report.terminal.pages import open_console, print_comparison, print_lines, print_run
from zelda_ci.selection.felt import coverage as covered
from zelda_ci.storage import codec
from zelda_ci.storage.references import LATEST, SideReference, find, newest_batch, read_results, read_side
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.workspaces import Workspaces

NIGHTS, RESULTS = "history.json", "zelda-results.json"
MAX_FILE_BYTES, MAX_RUNS, MAX_NAMED = 64 << 20, 1_000, 5


@click.command("list", epilog="Examples: `zelda list --since 7d`; `zelda list --suite rest-endpoint --limit 5`.")
@options.project
@options.suites
@click.option("--since", type=options.MOMENT, help="Only runs since a date (2026-02-13, UTC) or of a period (7d, 24h).")
@options.limit()
@options.as_json
def list_runs(
    *, project: Path, suites: tuple[str, ...], since: datetime | None, limit: int | None, as_json: bool
) -> None:
    """List stored runs, the newest first.

    Scores are percentages. A dash stands for a value that was not computed. If the output is not a terminal, each run
    is one line. `zelda show RUN` shows a run in full.
    """
    history = ResultStore(results_folder(project)).overview()
    chosen = (run for run in history.runs if not suites or run.suite in suites)
    recent = [run for run in chosen if since is None or run.started_at >= since]
    listed = history.replace(runs=tuple(recent[:limit]))
    reporters.print_table(listed, history_table(listed, of=len(history.runs)), as_json=as_json)


@click.command(
    epilog="Examples: `zelda show latest`; `zelda show latest:rest-endpoint --transcript | less`; "
    "`zelda show latest --patch | git apply`."
)
@click.argument("run", required=False, shell_complete=options.complete_runs)
@options.project
@click.option("--json", "as_json", is_flag=True, help="Print the stored result as JSON.")
@click.option("--transcript", is_flag=True, help="Print the whole session: what was said and done.")
@click.option("--patch", is_flag=True, help="Print what the session changed, as a patch.")
def show(*, run: str | None, project: Path, as_json: bool, transcript: bool, patch: bool) -> None:
    """Show a stored run or batch: its report, or the transcript or patch of a run.

    RUN is the id of a run or of a batch (all runs of one `zelda run`), or the beginning of one. `latest` is the newest
    run of your own files, `latest~1` the one before, `latest:SUITE` the newest of a suite. `zelda list` shows all.
    Without RUN, the newest batch is shown; of a batch of `zelda run --against REF`, its comparison, too.
    """
    options.exclusive(json=as_json, transcript=transcript, patch=patch)
    results_dir = results_folder(project)
    history = ResultStore(results_dir)
    batch_id, run_ids = find(history, run or newest_batch(history))
    if len(run_ids) != 1 and (transcript or patch):
        message = f"A batch of {len(run_ids)} runs has no single transcript or patch."
        named = ", ".join(run_ids) or "`zelda list` shows all"
        raise ConfigError(message, hint=f"Give one of its runs: {named}.", code="USAGE")
    console, run_id = open_console(sys.stdout), run_ids[0] if run_ids else ""
    if transcript:
        print_lines(console, transcript_lines(history.run(run_id).transcript()))
    elif patch:
        stored = history.run(run_id).patch()
        if not stored:
            why = "its file is gone" if (it := history.result(run_id).changes) and it.files else "it changed no file"
            echo(f"The session of {run_id} left no patch: {why}.", err=True)
        elif sys.stdout.isatty():
            print_lines(console, patch_lines(stored))
        else:
            sys.stdout.buffer.write(stored)
    else:
        found = [history.result(each) for each in run_ids]
        made = kept_comparison(results_dir, batch_id) if batch_id else None
        if made or len(found) > 1:
            reporting = Reporting(Detail.FULL, "json" if as_json else None)
            RunReport(reporting, results_dir).print(made[1] if made else report_of(batch_of(found)))
        else:
            files = reporters.run_files(results_dir, run_id)
            reporters.print_found(found[0], lambda _, run: print_run(console, run, files), as_json=as_json)


@click.command(
    epilog="Examples: `zelda coverage`; `zelda coverage --suite rest-endpoint --json`; `zelda coverage artifact/` for "
    "an artifact of `zelda ci` that was downloaded."
)
@click.argument("source", required=False, metavar="[RESULTS]", type=click.Path(path_type=Path, exists=True))
@options.project
@options.suites
@options.as_json
def coverage(*, source: Path | None, project: Path, suites: tuple[str, ...], as_json: bool) -> None:
    """Show which suites used which skills, rules, CLAUDE.md files, sub-agents, MCP servers and hooks.

    What no suite ever touches comes first. RESULTS is a file with results, or the folder of an artifact; without it,
    the newest runs that are stored here are read. No session runs.
    """
    if source:
        file = source / RESULTS if source.is_dir() else source
        if not file.is_file():
            hint = "Give the folder of an artifact of `zelda ci`, or a file that `zelda run --json` printed."
            raise NotStoredError(f"{source} holds no {RESULTS}.", hint=hint, code="NO_RUNS")
        runs = [run for run in read_results(file) if not suites or run.suite in suites]
    else:
        history = ResultStore(results_folder(project))
        all_runs = (run for run in history.overview().runs if not run.variant and run.side is Side.HEAD)
        stored = [run for run in all_runs if not suites or run.suite in suites]
        runs = [history.result(run.run_id) for run in stored[:MAX_RUNS]]
    found = covered(runs)
    reporters.print_table(found, coverage_table(found), as_json=as_json)


@click.command(
    epilog="Examples: `zelda rejudge latest` after a judge that could not be reached; "
    "`zelda rejudge rest-endpoint-2026-02-13` by an unambiguous beginning of the run's name."
)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=options.complete_runs)
@options.project
@options.overrides("rejudge")
@options.no_check
@options.as_json
def rejudge(order: RunOrder, *, runs: tuple[str, ...], project: Path, as_json: bool) -> int:
    """Judge stored runs again, without a new session.

    RUN is the id of a run (a folder in .zelda/runs) or of a batch, the beginning of one, or `latest`. The judge reads
    transcript and patch as they were stored, with the configuration of the run, and result.json is rewritten. A
    failure never replaces an existing verdict.

    The judge needs ANTHROPIC_API_KEY or another credential, or PORTKEY_API_KEY if a gateway is configured, and costs
    money. The smallest request shows first whether it answers.
    """
    suites = []
    # Others may be broken by now. Whatever is wrong is told where the runs are read.
    with suppress(ZeldaError):
        history = ResultStore(results_folder(project))
        suites = [history.result(run_id).suite for name in runs for run_id in find(history, name)[1]]
    loaded = app.load(project, suites)
    report = RunReport(Reporting(Detail.FULL, "json" if as_json else None), loaded.results_dir)
    with report.progress() as emit:
        batch = app.Invocation(loaded, order, read_environment(os.environ)).rejudge(runs, emit)
    return report.show(batch, {})


@click.command(epilog="Examples: `zelda prune` says what goes; `zelda prune --before 7d --keep 5 --yes` removes it.")
@options.project
@click.option(
    "--before",
    type=options.MOMENT,
    default="30d",
    show_default=True,
    help="Runs that ended before a date (2026-02-13, in UTC) or a period ago (7d, 24h).",
)
@click.option("--keep", type=options.whole(0), metavar="N", default=1, show_default=True, help="Newest batches kept.")
@click.option("--yes", is_flag=True, help="Remove them; otherwise it is only said what would go.")
def prune(*, project: Path, before: datetime, keep: int, yes: bool) -> None:
    """Remove old runs, with transcripts and patches, and workspaces that killed runs left.

    Whole batches go, but none that a comparison counts which stays. Runs that are under way are not touched. A removed
    run is gone: it can be neither shown nor judged again, and says nothing about prices and prior trials any more.
    """
    results = results_folder(project)
    runs = (store := ResultStore(results)).overview().runs
    # Newest first; whole batches go, but for the newest and those of which a run is young.
    batches = [*dict.fromkeys([newest_batch(store), *(run.batch_id for run in runs)])]
    staying = {run.batch_id for run in runs if run.finished_at >= before} | set(batches[:keep])
    counted = set[str]()
    for batch_id in staying:
        with suppress(StorageError):  # what cannot be shown again keeps nothing
            counted.update(kept.all if (kept := store.comparison(batch_id)) else ())
    staying |= {run.batch_id for run in runs if run.run_id in counted}
    old = [run for run in runs if run.batch_id not in staying]
    what = f"{format_count(len(old), 'run')} of {format_count(len({run.batch_id for run in old}), 'batch', 'batches')}"
    if not yes:
        echo(f"{what} would be removed, of {len(runs)} stored.{' Remove them: add --yes.' if old else ''}")
        return
    # First what may be refused: afterwards, an error would not say what is gone.
    swept = anyio.run(Workspaces(find_root(project), results, os.environ, Redactor()).sweep)
    for run in old:
        store.remove(run.run_id)
    store.forget_comparisons({run.run_id for run in old}, {run.batch_id for run in old})
    left = f", and what {format_count(len(swept), 'killed run')} left" if swept else ""
    echo(f"Removed {what}{left}; {len(runs) - len(old)} stored.")


@click.command(epilog="Examples: `zelda history rest-endpoint`; `zelda history rest-endpoint --from artifacts --json`.")
@click.argument("suite", shell_complete=options.complete_suites)
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
    return NotStoredError(message, hint=hint, code="NO_RUNS")


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


@click.command(
    epilog="Examples: `zelda compare`; `zelda compare latest:rest-endpoint~1 latest:rest-endpoint`; `zelda compare "
    "main.json head.json --markdown`. Exit codes: 0 the gate passes, 1 it does not, 2 a side cannot be read or "
    "the head is INCOMPLETE."
)
@click.argument("base", required=False, metavar="[BASE]", shell_complete=options.complete_runs)
@click.argument("head", default=LATEST, metavar="[HEAD]", shell_complete=options.complete_runs)
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
    made = kept_comparison(results_dir, newest_batch(history)) if base is None else None
    if made:
        compared, report = made
        view = reporters.sides_view(report)
    else:
        sides = read_side(history, base or f"{LATEST}~1"), read_side(history, head)
        compared, report = compare_stored(project, history, *sides, allow_mixed=allow_mixed)
        view = reporters.sides_view(report, sides[0].name, sides[1].name)
    if as_json:
        reporters.print_json(compared.comparison)
    elif markdown:
        with one_at_a_time("zelda_ci.report.markdown"):
            from zelda_ci.report.markdown import render  # noqa: PLC0415 - jinja2 takes its time

        sections = [*map(attribution_section, report.attributions)]
        echo_raw(render("comparison.md.j2", view=view, attributions=sections), nl=False)
    elif made:
        reporters.print_sides(report, whole=True)
    else:
        print_comparison(open_console(sys.stdout), view)
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


@click.command(
    epilog="Examples: `zelda report --open`; `zelda report main.json latest -o report.html`; `zelda report latest~1 "
    "latest`; `zelda report openapi-2026-02-13T14-30-00`."
)
@click.argument("runs", nargs=-1, metavar="[RUN]... | BASE HEAD", shell_complete=options.complete_runs)
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
    sides = [read_side(history, name, whole=len(runs) != 2) for name in runs or (newest_batch(history),)]
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
    whole = sides[0].batch_id if len(sides) == 1 else None
    if whole and (made := kept_comparison(results_folder(project), whole)):
        return made[1]
    batch = batch_of([run for side in sides for run in side.runs])
    if not batch.base_runs:
        return report_of(batch)
    base, head = SideReference(Side.BASE.value, batch.base_runs), SideReference(Side.HEAD.value, batch.runs)
    return compare_stored(project, history, base, head, allow_mixed=allow_mixed)[1]
