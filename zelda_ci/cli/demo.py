"""`zelda demo`: the whole pipeline on a small project, with the model's words from a packaged recording."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import click

from zelda_ci import app, process
from zelda_ci.cli import options, report
from zelda_ci.cli.output import echo
from zelda_ci.config.environment import read_environment
from zelda_ci.domain.run import BatchResult
from zelda_ci.pipeline.comparing import changed_steering, compare_sides
from zelda_ci.pipeline.html_report import report_of_sides, write_html
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.report.builders.comparison import changed_files
from zelda_ci.storage.history import RunHistory
from zelda_ci.storage.references import SideReference

HERE = Path(__file__).parent
PROJECT = HERE / "demo_project"
CASSETTES = HERE / "demo_cassettes"

# What somebody might do to the project, and what sessions do then.
RULE = ".claude/rules/money.md"
CHANGED_SUITE = "discount-code"
CHANGE_CASSETTES = HERE / "demo_change_cassettes"

INTRODUCTION = """\
Two suites run on a small project, each in a real Claude Code session in a private git worktree. The model's words
come from a recording, so no key is needed and nothing leaves this machine; all else is real: CLI, git, files, commands.
"""
CHANGE = f"""
Now somebody removes {RULE}, and the suite {CHANGED_SUITE} runs again, on that commit.
"""


@click.command()
@click.option("--keep", is_flag=True, help="Keep the project and its results, and say where they are.")
@click.option("--jobs", type=options.Whole(min=1), default=1, show_default=True, help="Sessions in parallel.")
def demo(*, keep: bool, jobs: int) -> int:
    """Watch Zelda at work on a small project: no key, no network, a few seconds.

    The project has a rule and a skill; one suite adds a feature that should follow them, the other fixes a bug. With
    --keep you can look at the suites and at everything that was stored, and run them again. Then the rule is removed,
    the first suite fails, and an HTML report shows both sides.
    """
    echo(INTRODUCTION)
    with _project(keep=keep) as project:
        code, before = _run(project, CASSETTES, jobs, keep=keep)
        echo(CHANGE)
        (project / RULE).unlink()
        anyio.run(_commit, project, "Remove the rule of money")
        _, after = _run(project, CHANGE_CASSETTES, jobs, CHANGED_SUITE, keep=keep)
        page = _page(project, before, after, keep=keep)
    echo(f"\nSee both sides in your browser, and where they part: {page}")
    if keep:
        echo(f"The project and its results are kept in {project}")
    else:
        echo("The project was temporary: `zelda demo --keep` keeps it, with all results. Your own: `zelda init`.")
    return code


def _run(project: Path, cassettes: Path, jobs: int, *names: str, keep: bool) -> tuple[int, BatchResult]:
    """Run suites and print their report; the exit code that it means."""
    loaded = app.load(project)
    with report.progress(as_json=False) as emit:
        order = RunOrder(names=names, jobs=jobs, replay=cassettes, unsafe=True, is_own_content=True)
        batch = app.Invocation(loaded, order, read_environment(os.environ)).run(emit)
    return report.show(batch, loaded.results_dir if keep else None, as_json=False), batch


def _page(project: Path, before: BatchResult, after: BatchResult, *, keep: bool) -> Path:
    """The HTML report of the suite on both sides; it stays even if the project does not."""
    results_dir = app.load(project).results_dir
    runs = tuple(run for run in before.runs if run.suite == CHANGED_SUITE)
    sides = SideReference("with the rule", runs), SideReference("without the rule", after.runs)
    history = RunHistory(results_dir)
    compared = compare_sides(*sides, {})
    changes = changed_steering(history, sides[0].runs, sides[1].runs)
    echo(f"\nWhat differs between the two: {', '.join(changed_files(changes))}")
    target = results_dir / "report.html" if keep else Path(tempfile.mkdtemp(prefix="zelda-report-")) / "report.html"
    write_html(target, report_of_sides(*sides, compared, project.name, changes), [history])
    return target


@contextmanager
def _project(*, keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="zelda-demo-"))
    try:
        project = folder / "corner-shop"
        shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
        anyio.run(_commit, project, "Open")
        yield project
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
