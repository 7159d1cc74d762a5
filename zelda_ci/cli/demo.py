"""`zelda demo`: the whole pipeline on a small project, with the model's words from a packaged recording."""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from textwrap import wrap

import anyio
import click

from zelda_ci import app, process
from zelda_ci.cli import options, report
from zelda_ci.cli.output import echo
from zelda_ci.cli.sides import ComparedSides
from zelda_ci.config.environment import read_environment
from zelda_ci.domain.trials import TrialPlan
from zelda_ci.overrides import Given, Overrides
from zelda_ci.pipeline.comparing import keep_comparison
from zelda_ci.pipeline.html_report import write_html
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.report import terminal
from zelda_ci.storage.history import RunHistory
from zelda_ci.workspace.base_commit import BaseOrder

HERE = Path(__file__).parent
PROJECT = HERE / "demo_project"
CASSETTES = HERE / "demo_cassettes"

# What somebody might do to the project, and what sessions do then.
RULE = ".claude/rules/money.md"
CHANGED_SUITE = "discount-code"
CHANGE_CASSETTES = HERE / "demo_change_cassettes"

INTRODUCTION = """\
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
@click.option("--keep", is_flag=True, help="Keep the project, its results and recordings, and say where they are.")
@click.option("--jobs", type=options.Whole(min=1), default=4, show_default=True, help="Sessions in parallel.")
def demo(*, keep: bool, jobs: int) -> int:
    """Watch Zelda at work on a small project: no key, no network, a minute.

    The project has a rule and a skill; one suite adds a feature that should follow them, the other fixes a bug. Then
    the rule is removed, the first suite runs on both sides, and an HTML report shows what became worse. With --keep you
    can look at the suites and at everything that was stored, and run them again without a key.
    """
    _say(INTRODUCTION)
    with _project(keep=keep) as (project, recordings):
        code, _ = _run(project, RunOrder(jobs=jobs, replay=recordings), keep=keep)
        _say(CHANGE)
        (project / RULE).unlink()
        plan = Overrides({"trials": Given(TRIALS, "option", "--trials")})
        order = RunOrder((CHANGED_SUITE,), overrides=plan, jobs=jobs, replay=recordings, working_tree=True)
        sides = _run(project, replace(order, against=BaseOrder("HEAD")), keep=keep)[1]
        page = _page(project, sides, keep=keep) if sides else None
    if page:
        echo(f"\nSee both sides in your browser, and where they part: {page}")
    if keep:
        echo(f"The project and its results are kept in {project}")
        again = shlex.quote(os.path.relpath(recordings, project))
        echo(f"Run it again there, without a key: zelda run --replay {again}")
    else:
        echo("The project was temporary: `zelda demo --keep` keeps it, with all results.")
    echo("\nNow yours: `zelda init` in your project.")
    return code


def _say(text: str) -> None:
    width = terminal.open_console(sys.stdout).width
    echo("\n".join(wrap(text.strip(), width, break_long_words=False, break_on_hyphens=False)) + "\n")


def _run(project: Path, order: RunOrder, *, keep: bool) -> tuple[int, ComparedSides | None]:
    """Run suites and print their report; the exit code that it means, and the comparison of two sides."""
    loaded, settings = app.load(project), read_environment(os.environ)
    order = replace(order, unsafe=True, is_own_content=True)
    with report.progress(as_json=False) as emit:
        batch = app.Invocation(loaded, order, settings).with_stored().run(emit)
    if order.against is None or batch.interrupted:
        return report.show(batch, loaded.results_dir if keep else None, as_json=False), None
    sides = ComparedSides.of(batch, {})
    keep_comparison(loaded.results_dir, batch, {})
    sides.show(whole=False)
    return 0, sides


def _page(project: Path, sides: ComparedSides, *, keep: bool) -> Path:
    """The HTML report of the suite on both sides; it stays even if the project does not."""
    results_dir = app.load(project).results_dir
    target = results_dir / "report.html" if keep else Path(tempfile.mkdtemp(prefix="zelda-report-")) / "report.html"
    write_html(target, sides.report(project.name), [RunHistory(results_dir)])
    return target


@contextmanager
def _project(*, keep: bool) -> Iterator[tuple[Path, Path]]:
    """The project as a repository, and recordings for every run that may be made of it."""
    folder = Path(tempfile.mkdtemp(prefix="zelda-demo-"))
    try:
        project = folder / "corner-shop"
        shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
        anyio.run(_commit, project, "Open")
        recordings = shutil.copytree(CASSETTES, folder / "recordings")
        for trial in range(1, TRIALS.looks[-1] + 1):
            for side, cassettes in (("", CHANGE_CASSETTES), ("base-", CASSETTES)):
                for end in (".json", "@judge.json"):
                    name = f"{CHANGED_SUITE}@{side}{trial}{end}"
                    shutil.copy(cassettes / f"{CHANGED_SUITE}{end}", recordings / name)
        yield project, recordings
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


async def _commit(project: Path, message: str) -> None:
    """Make it a repository with one more commit, whatever the user's git is configured to do."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _SIGNATURE.items()},
    }
    for words in (["init", "--quiet", "--initial-branch=main"], ["add", "--all"], ["commit", "--quiet", "-m", message]):
        await process.capture(["git", *words], cwd=project, environment=environment)


_SIGNATURE = {"NAME": "Zelda", "EMAIL": "zelda@example.com", "DATE": "2026-01-01T00:00:00Z"}
