"""What runs suites: `zelda run`, its shards, whose parts `zelda merge` puts together, `zelda why` and `zelda demo`."""

import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from textwrap import wrap

import anyio
import click

from zelda_ci import app, process
from zelda_ci.cli import options, reporters
from zelda_ci.cli.boundary import echo, explain, typed_path
from zelda_ci.cli.reporters import HTML, Reporting, RunReport
from zelda_ci.config.environment import read_environment
from zelda_ci.config.files import NEW_ONES, find_root, listed, projects
from zelda_ci.config.project import select
from zelda_ci.config.suites import containing, last_failed
from zelda_ci.domain.numbers import some_of
from zelda_ci.domain.outcome import Outcome, batch_outcome
from zelda_ci.domain.run import BatchResult, ShardOf, ShardPart, empty_batch, shard_of
from zelda_ci.domain.trials import Side, TrialPlan
from zelda_ci.errors import EXIT_INTERRUPTED, ConfigError, StorageError, ZeldaError
from zelda_ci.files.atomic import storage_errors, write_whole
from zelda_ci.overrides import Given, Overrides
from zelda_ci.pipeline.attribution import asked_about
from zelda_ci.pipeline.fingerprints import changed_since, system_name
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.pipeline.shards import check_parts, describe, import_parts, make_plan, order_of, parts_in, write_part
from zelda_ci.report.builders.steering import attribution_details, attribution_line, subject_words, worth_table
from zelda_ci.report.model import Detail, plain
from zelda_ci.report.terminal.pages import open_console, print_forecast
from zelda_ci.report.text import sentence
from zelda_ci.selection.choice import reasons
from zelda_ci.storage.references import LATEST
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.git import read_commit
from zelda_ci.workspace.source import BaseOrder

RECORDING = click.Path(path_type=Path, file_okay=False)


def _chosen(folder: Path, order: RunOrder, grep: str | None, *, failed: bool) -> app.Invocation:
    """What is to run in the project of a folder: of the ordered suites those that match, or failed when last run."""
    loaded = app.load(folder, order.names)
    suites = select(loaded, order.names, order.tags)
    if grep is not None:
        suites = containing(suites, grep)
    if failed:
        # What ran beside the tested files says nothing of them. The newest come first.
        stored = ResultStore(loaded.results_dir).overview().runs
        runs = [run for run in stored if run.side is Side.HEAD and not run.variant]
        bad = {(run.suite, run.batch_id) for run in runs if run.outcome > Outcome.PASSED}
        suites = last_failed(suites, {run.suite: (run.suite, run.batch_id) not in bad for run in reversed(runs)})
    names = [suite.resolved.name for suite in suites]
    return app.Invocation(loaded, replace(order, names=names, tags=()), read_environment(os.environ))


def _only_changed(invocation: app.Invocation, ref: str | None) -> app.Invocation | None:
    """The invocation without the suites that the change cannot concern, each of which is named; none if all are."""
    if ref is None:
        return invocation
    choices = anyio.run(changed_since, ref, invocation)
    for line in (*reasons(choices, runs=True), *reasons(choices, runs=False)):
        echo(sentence(line), err=True)
    kept = [choice.suite for choice in choices if choice.runs]
    return invocation.ordering(replace(invocation.order, names=kept, tags=())) if kept else None


def _run_projects(folder: Path, run: Callable[[Path, float], tuple[int, BatchResult]]) -> int:
    """Run every project in a folder and below; one that cannot be run does not keep the others from it."""
    roots = [*projects(folder.resolve())]
    if not roots:
        hint = "A project has a zelda.config.yaml, or suites in zelda/. `zelda init` makes one."
        raise ConfigError(f"There is no project in {folder} or below.", hint=hint, code="NO_SUITES")
    codes, endings, spent, is_over, not_here = list[int](), list[str](), 0.0, False, list[ZeldaError]()
    for name, root in ((os.path.relpath(root), root) for root in roots):
        if is_over:
            endings.append(f"{name} (not begun)")
            continue
        try:
            code, batch = run(root, spent)
            spent += batch.cost_usd
            is_over = code == EXIT_INTERRUPTED or bool(batch.ended)
        except ZeldaError as problem:
            if problem.code in {"UNKNOWN_SUITE", "NO_SUITE_SELECTED"}:  # it has none of those that are meant
                not_here.append(problem)
                continue
            echo(f"\nProject {name} could not be run.", err=True)
            explain(problem)
            code = problem.exit_code
        codes.append(code)
        endings.append(f"{name} (exit code {code})")
    if not codes:
        raise not_here[0]
    echo(f"\nProjects: {', '.join(endings)}", err=True)
    return max(codes)


def _watch(folder: Path, run: Callable[[], int]) -> int:
    """Run at once, and again after each change of a file that git tracks or would; until it is interrupted."""
    root = find_root(folder)
    if not (seen := _state(root)):
        hint = "Make it a repository first, or run without --watch."
        raise ConfigError("--watch needs a git repository.", hint=hint, code="USAGE")
    while True:
        try:
            if (code := run()) == EXIT_INTERRUPTED:
                return code
        except ZeldaError as problem:
            explain(problem)
        echo(f"\nWatching {len(seen)} files. Ctrl+C ends it.", err=True)
        now = before = seen
        # Until one differs, and the editor has written all that it had to write.
        while now == seen or now != before:
            time.sleep(1)
            before, now = now, _state(root)
        names = sorted(name for name in seen.keys() | now.keys() if seen.get(name) != now.get(name))
        echo(f"Changed: {some_of(names, 3)}", err=True)
        seen = now


def _state(root: Path) -> dict[str, tuple[int, int]]:
    """By name, what a save changes; nothing of files that are gone."""
    state = {}
    for name in listed(root, *NEW_ONES) or ():
        with suppress(OSError):
            status = (root / name).lstat()
            state[name] = (status.st_mtime_ns, status.st_size)
    return state


@click.command(
    epilog="Example: four jobs run `zelda run --against main --shard 1/4` to `4/4`, and a fifth, which has their files "
    "in the folder parts, `zelda merge parts`. Exit codes: those of `zelda run`; 2 also where a part is missing, "
    "doubled or of another run."
)
@click.argument("folder", type=options.FOLDER, metavar="DIR")
@options.project
@reporters.options
def merge(*, folder: Path, project: Path, reporting: Reporting) -> int:
    """Put the parts of a run that several machines shared together, and report it as one run.

    DIR holds the files zelda-shard-*.zip that shards (`zelda run --shard 1/4`) have left on each machine, in any
    folders. Their runs are stored here under .zelda/runs/. What is printed, compared and returned is what one `zelda
    run` of all suites would have.

    Every shard must be there once, and all must have made the same plan. Otherwise nothing is merged, the message
    names what is wrong, and the exit code is 2.
    """
    loaded = app.load(project)
    report = RunReport(reporting, loaded.results_dir, loaded.root.name)
    with parts_in(folder) as found:
        parts = check_parts(found)
        planned, here = parts[0].said.plan.commit, anyio.run(read_commit, loaded.root, os.environ)
        if planned and here and here.sha != planned:
            message = f"The parts are of the commit {planned[:7]}, and {here.sha[:7]} is checked out."
            hint = "Check out the same commit where the parts are merged, or give their folder alone."
            raise StorageError(message, hint=hint, code="OTHER_COMMIT")
        batch = import_parts(parts, loaded.results_dir)
    return report.show(batch, {name: each for part in parts for name, each in part.said.counted.items()})


def _run_shard(whole: app.Invocation, shard: ShardOf, report: RunReport, *, is_empty: bool) -> int:
    """Run one shard's suites of the whole, if any, and leave its part; the exit code says if that could be done."""
    loaded, environ = whole.loaded, whole.settings.environ
    with report.progress() as emit:
        whole = whole if is_empty else whole.with_stored()
        suites, tested = () if is_empty else whole.masked, anyio.run(read_commit, loaded.root, environ)
        plan = make_plan(whole.order, suites, tested and tested.sha, whole.expected_seconds, shard.shards)
        names = plan.names_of(shard.number)
        echo(describe(plan)[shard.number - 1])
        own = whole.ordering(order_of(whole.order, plan, shard.number))
        batch = own.run(emit) if names else empty_batch(datetime.now(UTC))
    counted = {name: whole.order.stored[name] for name in names if name in whole.order.stored}
    part = ShardPart(shard=shard.number, plan=plan, platform=system_name(environ), counted=counted)
    file = write_part(part, batch, loaded.results_dir)
    echo(f"Part {shard}: {typed_path(file)} (`zelda merge` puts all parts together, and judges)")
    outcome = batch_outcome(batch)
    return outcome.exit_code if outcome >= Outcome.INCOMPLETE else 0


@click.command(
    epilog="Examples: `zelda run` runs every suite; `zelda run rest-endpoint --trials 3` runs one three times; "
    "`zelda run 'api/*' -x` runs those of a folder; `zelda run --last-failed`."
)
@options.tested("run")
@click.option("--grep", metavar="PATTERN", help="Only suites whose name, description, prompt or criteria match.")
@click.option("--last-failed", is_flag=True, help="Only suites that did not pass when they were last run.")
@click.option(
    "--changed-since",
    metavar="REF",
    help="Only suites whose result may change by what changed since this branch, tag or commit; the others are named.",
)
@click.option("--all", "run_all", is_flag=True, help="All suites, whatever --changed-since says.")
@click.option("--all-projects", is_flag=True, help="Run every project in the folder and below, one after the other.")
@options.jobs(help="Sessions in parallel; ZELDA_JOBS is the same.")
@options.of_order("--record", type=RECORDING, metavar="DIR", help="Record the model's responses in this folder.")
@options.of_order(
    "--replay", type=options.FOLDER, metavar="DIR", help="Replay the model's responses from it: no key, no network."
)
@options.against(
    help="Compare with this commit, branch or tag, such as main or HEAD~1: a few trials of your files, and where they "
    "look worse, more of both, side by side."
)
@options.budget(help="Most that the whole invocation may cost, judges included; what is under way may finish.")
@click.option(
    "--without",
    "parts",
    multiple=True,
    metavar="NAME",
    help="Say what a skill, rule, agent, file or section (CLAUDE.md:Heading) is worth: run without it, and with inert "
    "text in its place, beside the files as they are. May be given several times.",
)
@click.option(
    "--shard",
    type=options.OptionType(shard_of, "shard"),
    metavar="I/N",
    help="Run this part of the suites only, as 2/4, and leave it as a file under .zelda/shards/ for `zelda merge`.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only say what would run and what it may cost, from stored trials; needs no key. With --json for programs.",
)
@options.of_order("-x", "--fail-fast", "max_failures", flag_value=1, type=int, help="The same as --max-failures 1.")
@options.of_order(
    "--max-failures",
    type=options.whole(1),
    help="Begin nothing more once so many runs did not pass; what is under way finishes, and the rest is named.",
)
@click.option(
    "--watch",
    "is_watching",
    is_flag=True,
    help="Run again after each save what it can concern, --against the last commit if nothing else is named. Each save "
    "spends money: see --budget-usd.",
)
@options.of_order("--yes", "despite_failing", is_flag=True, help="Also run suites whose build or tests fail already.")
@options.no_check
@reporters.options
@click.option("-v", "--steps", is_flag=True, help="Show what sessions say and do as it happens, a line each.")
def run(  # noqa: PLR0913 - its options
    order: RunOrder,
    *,
    project: Path,
    grep: str | None,
    last_failed: bool,
    changed_since: str | None,
    run_all: bool,
    all_projects: bool,
    parts: tuple[str, ...],
    shard: ShardOf | None,
    dry_run: bool,
    is_watching: bool,
    steps: bool,
    reporting: Reporting,
) -> int:
    """Run suites, each in a real Claude Code session, and print a report.

    SUITE is a suite's name, its file or folder, or a pattern such as 'api/*'; without it, all suites run. Each session
    works in a copy of your files as they are, committed or not, but not of those that git ignores; with --commit in a
    copy of a commit. Results are stored under .zelda/runs/. With --against, suites run on your files and on that
    commit, side by side, as often as a verdict needs, and are compared.

    A session needs ANTHROPIC_API_KEY or another credential, and costs money; --replay needs neither. Before anything is
    spent, everything that the runs need is tried as `zelda check` does it.
    """
    options.exclusive(record=order.record, replay=order.replay)
    if parts:
        apart = {"against": order.against, "shard": shard, "watch": is_watching, "replay": order.replay}
        apart |= {"all-projects": all_projects, "dry-run": dry_run}
        options.alone("without", given=parts, beside=apart)
        invocation, is_json = _chosen(project, order, grep, failed=last_failed), reporting.printed == "json"
        found = reporters.carry_out(invocation, partial(invocation.worth, parts), as_json=is_json)
        reporters.print_table(found, worth_table(found), as_json=is_json)
        return 2 if found.untold else 0
    if is_watching:
        options.alone("watch", given=True, beside={"dry-run": dry_run, "shard": shard})
        against = order.against or BaseOrder(options.LAST)
        order, changed_since = replace(order, against=against), changed_since or against.ref
    if shard:
        # Every shard must see the same suites and the same commit; it knows a part only, and `zelda merge` reports all.
        apart = {"all-projects": all_projects, "last-failed": last_failed, "dry-run": dry_run}
        apart |= {"commit": not order.working_tree, "reporter": bool(reporting.printed or reporting.files)}
        options.alone("shard", given=shard, beside=apart)
        order = replace(order, working_tree=False)

    def run_project(folder: Path, spent: float = 0.0) -> tuple[int, BatchResult]:
        whole = _chosen(folder, order, grep, failed=last_failed)
        loaded, budget, batch = whole.loaded, order.budget_usd, empty_batch(datetime.now(UTC))
        if all_projects:
            echo(f"\nProject {os.path.relpath(folder)}", err=bool(reporting.printed))
        for notice in loaded.notices if dry_run else ():
            echo(f"warning: {sentence(notice)}", err=True)
        if budget is not None:
            # It is that of the whole command: what one project has spent, the next one lacks.
            whole = whole.ordering(replace(whole.order, budget_usd=max(0.0, budget - spent)))
        below = loaded.root if all_projects else Path()
        report = RunReport(replace(reporting, steps=steps), loaded.results_dir, loaded.root.name, folder=below)
        invocation = _only_changed(whole, None if run_all else changed_since)
        if invocation and not dry_run:
            reporters.ask_about_isolation(invocation)
        if shard:
            return _run_shard(invocation or whole, shard, report, is_empty=invocation is None), batch
        if invocation is None:
            return 0 if dry_run else report.show(batch, {}), batch
        if dry_run:
            forecast = invocation.with_stored().forecast()
            reporters.print_found(forecast, print_forecast, as_json=reporting.printed == "json")
            return 0, batch
        with report.progress() as emit:
            counted = invocation.with_stored()
            batch = counted.run(emit)
        return report.show(batch, counted.order.stored), batch

    def once() -> int:
        if not all_projects:
            return run_project(project)[0]
        if reporting.printed == "junit" or any(file.is_absolute() for _, file in reporting.files):
            hint = "Give files by relative paths: each project writes its own below its folder."
            raise ConfigError("Several projects cannot write one report.", hint=hint, code="USAGE")
        return _run_projects(project, run_project)

    return _watch(project, once) if is_watching else once()


@click.command(
    epilog="Examples: `zelda why` after a `zelda run --against main` that found a regression; `zelda why "
    "latest:rest-endpoint --criterion 2 --budget-usd 5`. Exit codes: 0 there is an answer, be it that no part did it; "
    "2 it is not decided, or nothing got worse."
)
@click.argument("run", default=LATEST, metavar="[RUN]", shell_complete=options.complete_runs)
@options.project
@click.option(
    "--criterion",
    type=options.whole(1),
    metavar="N",
    help="Ask about this criterion of the suite, counted from 1; without it, about what got worse for sure.",
)
@options.against(help="Take what differs from this commit, branch or tag; else from the one that was compared with.")
@options.budget(help="Most that the search may cost, judges included; else what the comparison has left of its budget.")
@options.jobs(help="In parallel.")
@options.overrides("why")
@options.unsafe
@options.no_check
@options.as_json
def why(order: RunOrder, *, run: str, project: Path, criterion: int | None, as_json: bool) -> int:
    """Find out which lines of a change made a suite worse.

    RUN is a comparison that `zelda run --against REF` made (the id of its batch, or of one of its runs); `latest` is
    the newest, `latest:SUITE` the newest of a suite.

    The change is taken apart into hunks of the files that steer. Sessions run with some of them taken back, four at a
    time, until one is likely to be the cause, or no part of the change is; six more confirm it. Where only one
    part changed that the suite can feel, no session runs. Settings that were given to `zelda run` by options have to be
    given again.
    """
    loaded = app.load(project)
    question = asked_about(loaded.results_dir, run, criterion)
    against = order.against or (BaseOrder(question.base) if question.base else None)
    if against is None:
        message = f"{run} was compared with nothing, so nobody knows what changed."
        hint = "Run it with `zelda run --against main`, or say with what: `zelda why --against main`."
        raise ConfigError(message, hint=hint, code="NO_BASE")
    if not question.worse:
        hint = "`zelda compare` shows what changed; --criterion N asks about one that failed, proven or not."
        raise ConfigError(f"Nothing got worse for sure in {run}.", hint=hint, code="NOTHING_WORSE")
    worse, *others = question.worse
    if others:
        named = "; ".join(f"{it.suite}: {it.subject}" for it in others)
        echo(f"The answer is about {sentence(worse.subject, 80)!r}. Also worse: {sentence(named, 300)}", err=True)
    budget = order.budget_usd if order.budget_usd is not None else question.left_usd
    # The same files as the head had, if they are still there.
    head, source = worse.heads[-1], worse.heads[-1].source
    if head.replayed:
        message = f"{head.run_id} was replayed, and no recording has sessions with part of the change taken back."
        raise ConfigError(message, hint="Compare without --replay, then ask `zelda why`.", code="ONLY_REPLAYED")
    commit = source.commit if source and not (source.parent or source.dirty) else None
    files = replace(order, commit=BaseOrder(commit) if commit else None, working_tree=commit is None)
    asked = replace(files, names=(worse.suite,), against=against, budget_usd=budget)
    invocation = app.Invocation(loaded, asked, read_environment(os.environ))
    now, then = invocation.fingerprints()[head.suite], head.fingerprint
    if then is None or (now.outcome, now.tree) != (then.outcome, then.tree):
        what = "The suite or its settings have" if commit else "The tested files, the suite or its settings have"
        raise ConfigError(
            f"{what} changed since {head.run_id} ran: its sessions are no evidence any more.",
            hint="Give the options that it ran with, such as --model; or compare again, and ask `zelda why` then.",
            code="HEAD_CHANGED",
        )
    with reporters.listener(as_json=as_json) as emit:
        found = invocation.why(worse, emit)
    if as_json:
        reporters.print_json(found)
    else:
        echo(f"\n{sentence(f'{found.suite}: {subject_words(found)}')}\n{plain(attribution_line(found))}")
        for each in attribution_details(found):
            echo(f"   {sentence(each)}")
    return 2 if found.verdict == "undecided" else 0


# --- the demo ---------------------------------------------------------------------------------------------------

HERE = Path(__file__).parent
PROJECT, CASSETTES = HERE / "demo_project", HERE / "demo_cassettes"
# What somebody might do to the project, and what sessions do then.
RULE, CHANGED_SUITE, CHANGE_CASSETTES = ".claude/rules/money.md", "discount-code", HERE / "demo_change_cassettes"
INTRODUCTION = """
Two suites run on a small project, each in a real Claude Code session in a private copy of it. The model's words come
from a recording, so no key is needed and nothing leaves this machine; all else is real: CLI, git, files, commands.
"""
CHANGE = f"""
Now somebody removes {RULE}. Is that worse? `zelda run {CHANGED_SUITE} --against HEAD` runs the suite on the files as
they are and on the last commit, side by side, until that is proven or refuted.
"""
# The fewest trials that can prove it: the demo shall be over in a minute.
TRIALS = TrialPlan(first=2, looks=(5,))


@click.command()
def demo() -> int:
    """Watch Zelda at work on a small project: no key, no network, a minute.

    The project has a rule and a skill; one suite adds a feature that should follow them, the other fixes a bug. Then
    the rule is removed, the first suite runs on both sides, and an HTML report shows what became worse. The project
    stays in a temporary folder: you can look at the suites and at everything that was stored, and run them again
    without a key.
    """
    _print_wrapped(INTRODUCTION)
    with storage_errors(Path("a temporary folder")):
        folder = Path(tempfile.mkdtemp(prefix="zelda-demo-"))
    project, recordings = folder / "corner-shop", folder / "recordings"
    try:
        for source, target in ((PROJECT, project), (CASSETTES, recordings)):
            for file in filter(Path.is_file, source.rglob("*")):
                if file.suffix != ".pyc":
                    _copy(file, target / file.relative_to(source))
        anyio.run(_commit_all, project)
        for trial in range(1, TRIALS.looks[-1] + 1):
            for side, cassettes in (("", CHANGE_CASSETTES), ("base-", CASSETTES)):
                for end in (".json", "@judge.json"):
                    _copy(cassettes / f"{CHANGED_SUITE}{end}", recordings / f"{CHANGED_SUITE}@{side}{trial}{end}")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    order = RunOrder(jobs=options.JOBS, replay=recordings, unsafe=True, is_own_content=True)
    code, _ = _run_demo(project, order, Reporting(Detail.FULL))
    _print_wrapped(CHANGE)
    (project / RULE).unlink()
    plan = Overrides({"trials": Given(TRIALS, "option", "--trials")})
    order = replace(order, names=(CHANGED_SUITE,), overrides=plan, working_tree=True, against=BaseOrder("HEAD"))
    page = project / ".zelda" / "report.html"
    _, batch = _run_demo(project, order, Reporting(Detail.LINES, files=((HTML, page),)))
    if not batch.interrupted:
        echo("\nOpen it in your browser: it shows both sides, and where they part.")
    echo(f"The project and its results are in {project}")
    again = shlex.quote(os.path.relpath(recordings, project))
    echo(f"Run it again there, without a key: zelda run --replay {again}")
    echo("\nNow yours: `zelda init` in your project.")
    return code


def _copy(source: Path, target: Path) -> None:
    write_whole(target, [source.read_bytes()], durable=False)


def _print_wrapped(text: str) -> None:
    width = open_console(sys.stdout).width
    echo("\n".join(wrap(text.strip(), width, break_long_words=False, break_on_hyphens=False)) + "\n")


def _run_demo(project: Path, order: RunOrder, reporting: Reporting) -> tuple[int, BatchResult]:
    """Run suites as `zelda run` does, and report them."""
    loaded = app.load(project)
    report = RunReport(reporting, loaded.results_dir, loaded.root.name)
    with report.progress() as emit:
        batch = app.Invocation(loaded, order, read_environment(os.environ)).with_stored().run(emit)
    return report.show(batch, {}), batch


async def _commit_all(project: Path) -> None:
    """Make it a repository with one commit, whatever the user's git is configured to do."""
    signature = {"NAME": "Zelda", "EMAIL": "zelda@example.com", "DATE": "2026-01-01T00:00:00Z"}
    environ = {f"GIT_{role}_{key}": it for role in ("AUTHOR", "COMMITTER") for key, it in signature.items()}
    environ |= {"PATH": os.environ.get("PATH", os.defpath), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (["init", "--quiet", "--initial-branch=main"], ["add", "--all"], ["commit", "--quiet", "-m", "Open"]):
        await process.capture(["git", *words], cwd=project, environment=environ)
