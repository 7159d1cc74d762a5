"""`zelda demo`: the whole pipeline on a small project, with the model's words from a packaged recording."""

import os
import shlex
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from textwrap import wrap

import anyio
import click

from zelda_ci import app, process
from zelda_ci.cli import options
from zelda_ci.cli.boundary import echo
from zelda_ci.cli.reporters import HTML, Reporting, RunReport
from zelda_ci.config.environment import read_environment
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.trials import TrialPlan
from zelda_ci.overrides import Given, Overrides
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.report import terminal
from zelda_ci.report.model import Detail
from zelda_ci.workspace.source import BaseOrder

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
    _say(INTRODUCTION)
    folder = Path(tempfile.mkdtemp(prefix="zelda-demo-"))
    project, recordings = folder / "corner-shop", folder / "recordings"
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
    anyio.run(_commit, project)
    shutil.copytree(CASSETTES, recordings)
    for trial in range(1, TRIALS.looks[-1] + 1):
        for side, cassettes in (("", CHANGE_CASSETTES), ("base-", CASSETTES)):
            for end in (".json", "@judge.json"):
                shutil.copy(cassettes / f"{CHANGED_SUITE}{end}", recordings / f"{CHANGED_SUITE}@{side}{trial}{end}")
    order = RunOrder(jobs=options.JOBS, replay=recordings, unsafe=True, is_own_content=True)
    code, _ = _run(project, order, Reporting(Detail.FULL))
    _say(CHANGE)
    (project / RULE).unlink()
    plan = Overrides({"trials": Given(TRIALS, "option", "--trials")})
    order = replace(order, names=(CHANGED_SUITE,), overrides=plan, working_tree=True, against=BaseOrder("HEAD"))
    page = project / ".zelda" / "report.html"
    _, batch = _run(project, order, Reporting(Detail.LINES, files=((HTML, page),)))
    if not batch.interrupted:
        echo("\nOpen it in your browser: it shows both sides, and where they part.")
    echo(f"The project and its results are in {project}")
    again = shlex.quote(os.path.relpath(recordings, project))
    echo(f"Run it again there, without a key: zelda run --replay {again}")
    echo("\nNow yours: `zelda init` in your project.")
    return code


def _say(text: str) -> None:
    width = terminal.open_console(sys.stdout).width
    echo("\n".join(wrap(text.strip(), width, break_long_words=False, break_on_hyphens=False)) + "\n")


def _run(project: Path, order: RunOrder, reporting: Reporting) -> tuple[int, BatchResult]:
    """Run suites as `zelda run` does, and report them."""
    loaded = app.load(project)
    report = RunReport(reporting, loaded.results_dir, loaded.root.name)
    with report.progress() as emit:
        batch = app.Invocation(loaded, order, read_environment(os.environ)).with_stored().run(emit)
    return report.show(batch, {}), batch


async def _commit(project: Path) -> None:
    """Make it a repository with one commit, whatever the user's git is configured to do."""
    signature = {"NAME": "Zelda", "EMAIL": "zelda@example.com", "DATE": "2026-01-01T00:00:00Z"}
    environment = {f"GIT_{role}_{key}": it for role in ("AUTHOR", "COMMITTER") for key, it in signature.items()}
    environment |= {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    for words in (["init", "--quiet", "--initial-branch=main"], ["add", "--all"], ["commit", "--quiet", "-m", "Open"]):
        await process.capture(["git", *words], cwd=project, environment=environment)
