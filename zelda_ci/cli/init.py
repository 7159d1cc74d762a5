"""`zelda init`: a configuration, a first suite and a line in .gitignore, drawn from what the project is."""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from click.core import ParameterSource

from zelda_ci import app
from zelda_ci.cli import options, printing
from zelda_ci.cli.output import echo
from zelda_ci.config import init as scaffold
from zelda_ci.config.environment import EnvironmentSettings, read_environment
from zelda_ci.config.files import suite_files
from zelda_ci.config.init import CommandLine, FileDraft, FirstSuite, about, first_suite, subjects
from zelda_ci.config.schema import CONFIG_FILE, ProjectConfig
from zelda_ci.errors import ConfigError, ZeldaError
from zelda_ci.files.secret_files import find_secrets
from zelda_ci.pipeline.invocation import RunOrder, weak_machine
from zelda_ci.pipeline.survey import Survey, survey
from zelda_ci.redact import Redactor
from zelda_ci.report.text import sentence, visible

MAX_CHOICES = 9
MAX_SHOWN = 400


@dataclass(frozen=True)
class InitOptions:
    """How `zelda init` goes about it."""

    asks: bool
    """Whether somebody is there to answer, and wants to."""
    yes: bool
    force: bool
    tries: bool


@click.command(
    epilog="Examples: `zelda init` in your project; `zelda init --yes` in a script: no question, and what exists is "
    "kept; `zelda init --project packages/api` for one package of a monorepo.",
)
@options.project
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: take the defaults, and keep files that exist.")
@click.option("--force", is_flag=True, help="Overwrite files that exist, without asking.")
@click.option("--no-check", is_flag=True, help="Write the project's commands down without trying them.")
def init(*, project: Path, yes: bool, force: bool, no_check: bool) -> None:
    """Set up a project for Zelda CI.

    Looks at the folder: its language, package manager and commands, and what steers Claude Code in it. Writes a short
    zelda.config.yaml and a first suite about a skill, a rule or the CLAUDE.md file that it found, and has git ignore
    results, bytecode and environments. Setup, build and test command are tried at once, as `zelda check` does it,
    without a session and without cost; what does not work is left out, with the reason.
    """
    # A closed standard input is None to Python.
    asks = not yes and sys.stdin is not None and sys.stdin.isatty()
    settings = read_environment(os.environ)
    weak = weak_machine(settings)
    if weak and asks:
        weak = printing.ask_to_accept(weak, settings)
    elif weak:
        echo(f"{sentence(weak.meaning, printing.MAX_MEANING)}\n{weak.acceptance}\n", err=True)
    how = InitOptions(asks=asks, yes=yes, force=force, tries=not no_check and weak is None)
    _set_up(_settled(surveyed(project, settings), how), how, settings)


def surveyed(folder: Path, settings: EnvironmentSettings) -> Survey:
    """Look at a folder; secrets that lie in it are masked."""
    lying = find_secrets(folder.resolve(), settings.environ, ())
    return survey(folder, Redactor([*settings.secrets(), *lying.secrets]))


def _settled(found: Survey, how: InitOptions) -> Survey:
    """The folder that is to be set up, where it lies in a larger project: somebody decides, or it is said."""
    source = click.get_current_context().get_parameter_source("project")
    asks = how.asks and source is not ParameterSource.COMMANDLINE
    here, top = visible(str(found.root)), visible(str(found.top))
    if found.above:
        above = visible(os.path.relpath(found.above))
        echo(f"{above} is a project of Zelda's already. This will be another one, for {here} alone.", err=True)
        if asks and not click.confirm("Set it up?", err=True):
            hint = f"For a suite of the other one, write a file to its folder of suites, in {above}."
            raise ConfigError("Nothing was written.", hint=hint, code="INIT_FAILED")
    elif found.root != found.top:
        echo(f"{here} is a folder of the repository {top}.", err=True)
        whole = visible(os.path.relpath(found.top))
        if asks and click.confirm("Set up the whole repository instead?", default=not found.kinds, err=True):
            return surveyed(found.top, read_environment(os.environ))
        echo(f"Set up is this folder alone; the whole repository: zelda init --project {shlex.quote(whole)}", err=True)
    return found


def _set_up(found: Survey, how: InitOptions, settings: EnvironmentSettings) -> None:
    """Write what is missing, try the commands, and say what comes next."""
    root = found.root
    commands = [CommandLine(key, proposal.command, proposal.source) for key, proposal in found.proposals().items()]
    kept = scaffold.kept_config(root)
    suite = _first_suite(found, asks=how.asks and not suite_files(root, kept.test_dir))
    config = scaffold.draft(root, CONFIG_FILE, _config_text(found, commands, is_tried=False))
    # Without anybody to ask, and without a word about it, nothing that exists is passed over.
    wanted = [] if how.asks or how.yes or how.force else [config, _suite_draft(root, ProjectConfig(), suite)]
    if taken := [draft.file for draft in wanted if draft.exists]:
        verb = "exists" if len(taken) == 1 else "exist"
        raise ConfigError(
            f"{' and '.join(taken)} {verb} already; nothing was changed.",
            hint="Overwrite with --force, or keep what exists and add the rest with --yes.",
            code="INIT_WOULD_OVERWRITE",
        )
    drafts = _agreed(config, how)
    values = ProjectConfig() if drafts else kept
    example = _suite_draft(root, values, suite)
    others = [path for path in suite_files(root, values.test_dir) if path != example.path]
    written = [] if others and not example.exists else _agreed(example, how)
    beside = scaffold.written_beside((kind.language for kind in found.kinds), found.files)
    ignore, folders = scaffold.ignored(root, found.top, [values.results_dir, *beside])
    scaffold.write([*drafts, *written, *([ignore] if ignore else [])])
    for text in (*found.sentences(), *found.broken(), ""):
        echo(text)
    for draft in (*drafts, *written):
        on = f", about {suite.about}" if draft is example and suite.about else ""
        echo(f"{'overwrote' if draft.exists else 'wrote'} {draft.file}{on}")
    if others and not written:
        echo(f"kept {visible(values.test_dir)}/: suites are there already")
    added = ", ".join(f"{visible(folder)}/" for folder in folders)
    if ignore:
        echo(f"added {added} to .gitignore" if ignore.exists else f"wrote .gitignore with {added}")
    else:
        echo(f"kept .gitignore: it has {visible(values.results_dir)}/ already")
    if drafts and commands and how.tries:
        _try(found, commands, (suite.name,) if written else (), settings)
    elif drafts and commands:
        echo("\nThe commands were not tried; `zelda check` tries them.")
    there = os.path.relpath(root)
    there = "" if there == "." else f" --project {shlex.quote(there)}"
    prompt = f"replace the prompt in {example.file} with a task of yours, if you have a better one; " if written else ""
    name = f" {suite.name}" if written else ""
    echo(f"\nNext: {prompt}`zelda check{there}`, then `zelda run{name}{there}`.")


def _try(found: Survey, commands: Sequence[CommandLine], names: Sequence[str], settings: EnvironmentSettings) -> None:
    """Try the commands where they stand now, and write down what came of it."""
    echo("\nTrying the commands on your files, without a session. You may press Ctrl+C: all files are written.")
    try:
        invocation = app.Invocation(app.load(found.root, names), RunOrder(names, working_tree=True), settings)
        with printing.progress(as_json=False) as emit:
            report = invocation.check(emit, only_commands=True)
        checks = {check.subject: check for check in report.checks}
        if any(line.key not in checks for line in commands):
            first = next(iter(report.failures), None)
            message, hint = (first.message or first.about, first.hint) if first else ("the check ended early.", None)
            raise ConfigError(message, hint=hint, code="INIT_FAILED")
    except ZeldaError as problem:
        echo(f"not tried: {problem.message}")
        echo(f"{problem.hint or 'Once that is mended:'}\n`zelda check` tries them.")
        return
    # Tests that fail without a session would fail after each, too.
    failed = {check.subject: check.failing or check.message for check in report.checks if check.status != "passed"}
    tried = [replace(line, remark=failed.get(line.key)) for line in commands]
    scaffold.write([scaffold.draft(found.root, CONFIG_FILE, _config_text(found, tried, is_tried=True))])
    for line in tried:
        echo(f"{line.key}: {line.command} - ", nl=False)
        echo("left out" if line.remark else "works", fg="yellow" if line.remark else "green")
        if line.remark:
            # What may name places of this machine is not for the file: the line that says it best, and what helps.
            printed = [each.strip() for each in (checks[line.key].output or "").splitlines() if each.strip()]
            telling = [each for each in printed if "error" in each.lower()][:1] or printed[-1:]
            for text in filter(None, (line.remark, *telling, checks[line.key].hint)):
                echo(f"  {visible(text, MAX_SHOWN)}")


def _config_text(found: Survey, commands: Sequence[CommandLine], *, is_tried: bool) -> str:
    how = "`zelda init` tried the commands." if is_tried else "Nobody tried the commands yet: `zelda check` does."
    return scaffold.config_text([next(iter(found.sentences())), *([how] if commands else [])], commands, found.programs)


def _first_suite(found: Survey, *, asks: bool) -> FirstSuite:
    """About what somebody chooses, or else about what says most clearly when or what."""
    choices = subjects(found.items)
    number = 1
    if asks and len(choices) > 1:
        echo("What is the first suite to be about?", err=True)
        for index, item in enumerate(choices[:MAX_CHOICES], 1):
            echo(f"  {index}  {about(item, found.folder)}", err=True)
        last = min(len(choices), MAX_CHOICES)
        number = click.prompt("Number", type=click.IntRange(1, last), default=1, err=True)
    return first_suite(choices[number - 1] if choices else None, found.files, found.folder)


def _suite_draft(root: Path, values: ProjectConfig, suite: FirstSuite) -> FileDraft:
    return scaffold.draft(root, f"{values.test_dir}/test-{suite.name}.yaml", suite.text)


def _agreed(draft: FileDraft, how: InitOptions) -> list[FileDraft]:
    """The draft, if it may be written."""
    if draft.exists and not how.force:
        if how.asks:
            echo(f"warning: {draft.file} exists already", fg="yellow", err=True)
        if not how.asks or not click.confirm(f"Overwrite {draft.file}?", err=True):
            echo(f"kept {draft.file}")
            return []
    return [draft]
