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
from zelda_ci.app import RunOrder
from zelda_ci.cli import report
from zelda_ci.config.settings import read_environment

HERE = Path(__file__).parent
PROJECT = HERE / "demo_project"
CASSETTES = HERE / "demo_cassettes"

INTRODUCTION = """\
Two suites run on a small project, each in a real Claude Code session in a private git worktree. The model's words
come from a recording, so no key is needed and nothing leaves this machine; all else is real: CLI, git, files, commands.
"""


@click.command()
@click.option("--keep", is_flag=True, help="Keep the project and its results, and say where they are.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Sessions in parallel.")
def demo(*, keep: bool, jobs: int) -> int:
    """Watch Zelda at work on a small project: no key, no network, a few seconds.

    The project has a rule and a skill; one suite adds a feature that should follow them, the other fixes a bug. With
    --keep you can look at the suites and at everything that was stored, and run them again.
    """
    click.echo(INTRODUCTION)
    with _project(keep=keep) as project:
        loaded = app.load(project)
        with report.progress(as_json=False) as emit:
            order = RunOrder(jobs=jobs, replay=CASSETTES, unsafe=True, is_own_content=True)
            batch = app.run(loaded, order, read_environment(os.environ), emit)
        code = report.show(batch, loaded.results_dir if keep else None, as_json=False)
    if keep:
        click.echo(f"\nThe project and its results are kept in {project}")
    else:
        click.echo(
            "\nThe project was temporary: `zelda demo --keep` keeps it, with all results. Your own: `zelda init`."
        )
    return code


@contextmanager
def _project(*, keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="zelda-demo-"))
    try:
        project = folder / "corner-shop"
        shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
        anyio.run(_commit, project)
        yield project
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


async def _commit(project: Path) -> None:
    """Make it a repository with one commit, whatever the user's git is configured to do."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _SIGNATURE.items()},
    }
    for words in (["init", "--quiet", "--initial-branch=main"], ["add", "--all"], ["commit", "--quiet", "-m", "Open"]):
        await process.capture(["git", *words], cwd=project, environment=environment)


_SIGNATURE = {"NAME": "Zelda", "EMAIL": "zelda@example.com", "DATE": "2026-01-01T00:00:00Z"}
