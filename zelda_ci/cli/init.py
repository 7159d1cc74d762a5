"""`zelda init` and `zelda new`: a configuration and suites, drawn from what the project is."""

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from zelda_ci import app
from zelda_ci.cli import options, reporters
from zelda_ci.cli.boundary import echo
from zelda_ci.config import init as scaffold
from zelda_ci.config.document import load_document
from zelda_ci.config.environment import EnvironmentSettings, read_environment
from zelda_ci.config.files import suite_files
from zelda_ci.config.imported import Importer
from zelda_ci.config.init import CommandLine, FileDraft, FirstSuite, about, first_suite, subjects
from zelda_ci.config.schema import CONFIG_FILE, ProjectConfig, SuiteConfig
from zelda_ci.config.source import nearest
from zelda_ci.config.suites import usual_name
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem
from zelda_ci.domain.numbers import some_of
from zelda_ci.errors import ConfigError, ZeldaError
from zelda_ci.files import untrusted
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.survey.folder import Survey, survey

MAX_CHOICES, MAX_SHOWN = 9, 400


@click.command(
    epilog="Examples: `zelda init` in your project; `zelda init --yes` in a script: no question, and what exists is "
    "kept; `zelda init --project packages/api` for one package of a monorepo."
)
@options.project
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: take the defaults, and keep files that exist.")
@click.option("--force", is_flag=True, help="Overwrite files that exist, without asking.")
@click.option("--no-check", is_flag=True, help="Write the project's commands down without trying them.")
@click.option("--routing", is_flag=True, help="Draft a routing suite, too: which skill is called for which prompt.")
def init(*, project: Path, yes: bool, force: bool, no_check: bool, routing: bool) -> None:
    """Set up a project for Zelda CI.

    Looks at the folder: its language, package manager and commands, and what steers Claude Code in it. Writes a short
    zelda.config.yaml and a first suite about a skill, a rule or the CLAUDE.md file that it found, and has git ignore
    bytecode and environments. Setup, build and test command are tried at once, as `zelda check` does it,
    without a session and without cost; what does not work is left out, with the reason.
    """
    asks, settings = not yes and os.isatty(0), read_environment(os.environ)
    found = _settled(survey(project, settings), settings, asks=asks and project == Path())
    root, kept = found.root, scaffold.kept_config(found.root)
    commands = found.commands()
    suite = _first_suite(found, asks=asks and not suite_files(root, kept.test_dir))
    config = scaffold.draft(root, CONFIG_FILE, _config_text(found, commands, is_tried=False))
    # Without anybody to ask, and without a word about it, nothing that exists is passed over.
    wanted = [] if asks or yes or force else [config, _suite_draft(root, ProjectConfig(), suite)]
    if taken := [draft.file for draft in wanted if draft.exists]:
        raise ConfigError(
            f"{' and '.join(taken)} {'exists' if len(taken) == 1 else 'exist'} already; nothing was changed.",
            hint="Overwrite with --force, or keep what exists and add the rest with --yes.",
            code="INIT_WOULD_OVERWRITE",
        )
    drafts = _agreed(config, asks=asks, force=force)
    values = ProjectConfig() if drafts else kept
    example = _suite_draft(root, values, suite)
    others = [path for path in suite_files(root, values.test_dir) if path != example.path]
    written = [] if others and not example.exists else _agreed(example, asks=asks, force=force)
    drafted = scaffold.routing_suite(found.items) if routing else None
    file = f"{values.test_dir}/test-routing.yaml"
    routes = _agreed(scaffold.draft(root, file, drafted), asks=asks, force=force) if drafted else []
    if routing and not drafted:
        echo("no routing suite: there is no skill, sub-agent or command that the model may call")
    beside = scaffold.written_beside((kind.language for kind in found.kinds), found.files)
    ignore, folders = scaffold.ignored(root, found.top, beside)
    scaffold.write([*drafts, *written, *routes, *([ignore] if ignore else [])])
    for text in (*found.sentences(), *found.broken(), ""):
        echo(text)
    for draft in (*drafts, *written, *routes):
        on = f", about {suite.about}" if draft is example and suite.about else ""
        echo(f"{'overwrote' if draft.exists else 'wrote'} {draft.file}{on}")
    if others and not written:
        echo(f"kept {values.test_dir}/: suites are there already")
    added = ", ".join(f"{folder}/" for folder in folders)
    if ignore:
        echo(f"added {added} to .gitignore" if ignore.exists else f"wrote .gitignore with {added}")
    if drafts and commands and no_check:
        echo("\nThe commands were not tried; `zelda check` tries them.")
    elif drafts and commands:
        _try(found, commands, (suite.name,) if written else (), settings, asks=asks)
    there = "" if (relative := os.path.relpath(root)) == "." else f" --project {shlex.quote(relative)}"
    prompt = f"replace the prompt in {example.file} with a task of yours, if you have a better one; " if written else ""
    name = f" {suite.name}" if written else ""
    echo(f"\nNext: {prompt}`zelda check{there}`, then `zelda run{name}{there}`.")


def _settled(found: Survey, settings: EnvironmentSettings, *, asks: bool) -> Survey:
    """The folder that is to be set up, where it lies in a larger project: somebody decides, or it is said."""
    if found.above:
        above = os.path.relpath(found.above)
        echo(f"{above} is a project of Zelda's already. This will be another one, for {found.root} alone.", err=True)
        if asks and not click.confirm("Set it up?", err=True):
            hint = f"For a suite of the other one, write a file to its folder of suites, in {above}."
            raise ConfigError("Nothing was written.", hint=hint, code="INIT_FAILED")
    elif found.root != found.top:
        echo(f"{found.root} is a folder of the repository {found.top}.", err=True)
        if asks and click.confirm("Set up the whole repository instead?", default=not found.kinds, err=True):
            return survey(found.top, settings)
        whole = shlex.quote(os.path.relpath(found.top))
        echo(f"Set up is this folder alone; the whole repository: zelda init --project {whole}", err=True)
    return found


def _try(
    found: Survey, commands: Sequence[CommandLine], names: Sequence[str], settings: EnvironmentSettings, *, asks: bool
) -> None:
    """Try the commands where they stand now, and write down what came of it."""
    echo("\nTrying the commands on your files, without a session. You may press Ctrl+C: all files are written.")
    try:
        invocation = app.Invocation(app.load(found.root, names), RunOrder(names, working_tree=True), settings)
        reporters.ask_about_isolation(invocation, asks=asks)
        with reporters.listener(as_json=False) as emit:
            report = invocation.check(emit, only_commands=True)
        checks = {check.subject: check for check in report.checks}
        if any(line.key not in checks for line in commands):
            why = next(((it.message or it.about, it.hint) for it in report.failures), ("the check ended early.", None))
            raise ConfigError(why[0], hint=why[1], code="INIT_FAILED")
    except ZeldaError as problem:
        echo(f"not tried: {problem.message}\n{problem.hint or 'Once that is mended:'}\n`zelda check` tries them.")
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
                echo(f"  {text[:MAX_SHOWN]}")


def _config_text(found: Survey, commands: Sequence[CommandLine], *, is_tried: bool) -> str:
    how = "`zelda init` tried the commands." if is_tried else "Nobody tried the commands yet: `zelda check` does."
    programs = found.kinds[0].programs if found.kinds else ()
    return scaffold.config_text([next(iter(found.sentences())), *([how] if commands else [])], commands, programs)


def _first_suite(found: Survey, *, asks: bool) -> FirstSuite:
    """About what somebody chooses, or else about what says most clearly when or what."""
    choices = subjects(found.items)[:MAX_CHOICES]
    number = 1
    if asks and len(choices) > 1:
        echo("What is the first suite to be about?", err=True)
        for index, item in enumerate(choices, 1):
            echo(f"  {index}  {about(item, found.folder)}", err=True)
        number = click.prompt("Number", type=click.IntRange(1, len(choices)), default=1, err=True)
    return first_suite(choices[number - 1] if choices else None, found.files, found.folder)


def _suite_draft(root: Path, values: ProjectConfig, suite: FirstSuite) -> FileDraft:
    return scaffold.draft(root, f"{values.test_dir}/test-{suite.name}.yaml", suite.text)


def _agreed(draft: FileDraft, *, asks: bool, force: bool) -> list[FileDraft]:
    """The draft, if it may be written."""
    if draft.exists and not force:
        if asks:
            echo(f"warning: {draft.file} exists already", fg="yellow", err=True)
        if not asks or not click.confirm(f"Overwrite {draft.file}?", err=True):
            echo(f"kept {draft.file}")
            return []
    return [draft]


@click.command(
    "import",
    epilog="Examples: `zelda import plugins/docs/evals`; `zelda import skills/pdf/evals/evals.json`; "
    "`zelda import promptfooconfig.yaml`.",
)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path(path_type=Path))
@options.project
@click.option("--force", is_flag=True, help="Overwrite suites of the same name that say something else.")
def import_(*, paths: Sequence[Path], project: Path, force: bool) -> None:
    """Make suites of what you have for other tools.

    PATH is a folder of cases of `claude plugin eval`, the evals.json of a skill, or a promptfoo configuration. What has
    an equivalent becomes a suite in the folder `imported` of your suites; the rest is printed as a list of things to
    do, with file and line. To import again writes the same files.
    """
    root = Path(os.path.realpath(project))
    test_dir = scaffold.kept_config(root).test_dir
    folder = f"{test_dir}/imported"
    others = [path for path in suite_files(root, test_dir) if path.parent != root / folder]
    importer = Importer(root, map(_name_in, others))
    importer.read(*(Path(os.path.realpath(path)) for path in paths))
    drafts = [scaffold.draft(root, f"{folder}/test-{name}.yaml", text) for name, text in importer.suites.items()]
    changed = [draft for draft in drafts if draft.exists and untrusted.read(draft.path) != draft.content]
    if changed and not force:
        names = some_of([draft.file for draft in changed], MAX_CHOICES)
        hint = "Overwrite them with --force, or give yours another name."
        raise ConfigError(f"These say something else already: {names}.", hint=hint, code="INIT_WOULD_OVERWRITE")
    scaffold.write([draft for draft in drafts if not draft.exists or draft in changed])
    for draft in drafts:
        echo(f"{'kept' if draft.exists and draft not in changed else 'wrote'} {draft.file}")
    if importer.to_do:
        echo(f"\nTo do by hand ({len(importer.to_do)}):")
        for each in importer.to_do:
            echo(f"- [ ] {each}")
    echo("\nNext: read the suites, then `zelda validate`.")


def _name_in(path: Path) -> str:
    """The name of the suite in a file, whatever else is wrong with it."""
    return load_document(path, path.name, SuiteConfig).config.name or usual_name(path.name)


NAME = re.compile(r"(?:[\w.-]+/)*[\w][\w.-]*")


@click.command(epilog="Examples: `zelda new discount`; `zelda new health --skill rest`; `zelda new routes --routing`.")
@click.argument("name", metavar="NAME")
@click.option("--skill", metavar="X", help="About this skill or sub-agent.")
@click.option("--rule", metavar="X", help="About this rule or CLAUDE.md file: its name or path.")
@click.option("--routing", is_flag=True, help="Prompts for each skill, sub-agent and command, of their descriptions.")
@options.project
def new(*, name: str, skill: str | None, rule: str | None, routing: bool, project: Path) -> None:
    """Add a suite: a task, and criteria that can be seen.

    NAME is the suite's name, with folders if you like: `api/health` becomes zelda/api/test-health.yaml. With --skill or
    --rule, the task is one for which the skill is needed or to which the rule applies, as far as its file says.
    """
    options.exclusive(skill=skill, rule=rule, routing=routing)
    if not NAME.fullmatch(name) or ".." in name.split("/"):
        hint = "Take letters, digits, - and _, with folders before a slash: api/health."
        raise ConfigError(f"{name} is no name of a suite.", hint=hint, code="USAGE")
    found = survey(project, read_environment(os.environ))
    item = _item(found, skill or rule or "", is_rule=rule is not None) if skill or rule else None
    suite = scaffold.first_suite(item, found.files, found.folder)
    if (text := scaffold.routing_suite(found.items) if routing else suite.text) is None:
        raise ConfigError("No skill, sub-agent or command here has a description.", hint="Write one.", code="USAGE")
    test_dir = scaffold.kept_config(found.root).test_dir
    above, _, last = f"{test_dir}/{name}".rpartition("/")
    last = last.removeprefix("test-")
    draft = scaffold.draft(found.root, f"{above}/test-{last}.yaml", text)
    named = (path for path in suite_files(found.root, test_dir) if _name_in(path).casefold() == last.casefold())
    if taken := draft.path if draft.exists else next(named, None):
        what = "exists" if draft.exists else f"is a suite of the name {last}"
        message = f"{taken.relative_to(found.root)} {what} already."
        raise ConfigError(message, hint="Choose another name.", code="INIT_WOULD_OVERWRITE")
    scaffold.write([draft])
    echo(f"wrote {draft.file}{f', about {suite.about}' if suite.about else ''}")
    echo(f"Next: make {'its prompts' if routing else 'its prompt and criteria'} yours, then `zelda run {name}`.")


def _item(found: Survey, name: str, *, is_rule: bool) -> ManifestItem:
    kinds = (ItemKind.RULE, ItemKind.MEMORY) if is_rule else (ItemKind.SKILL, ItemKind.AGENT)
    usable = [item for item in found.items if item.kind in kinds and not item.problem and not item.shadowed]
    short = {item.name.removesuffix(".md").rpartition("/")[2] if is_rule else item.name: item for item in usable[::-1]}
    by_file = {scaffold.seen_from(found.folder, item.file): item for item in usable[::-1]}
    if item := short.get(name) or by_file.get(name):
        return item
    near = nearest(name, list(short))
    there = f"Did you mean {near}?" if near else f"There are {', '.join(sorted(short)) or 'none'}."
    raise ConfigError(f"There is no {'rule' if is_rule else 'skill'} {name}.", hint=there, code="USAGE")
