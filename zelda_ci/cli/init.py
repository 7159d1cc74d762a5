"""`zelda init`: a configuration, an example suite and a line in .gitignore."""

import sys
from pathlib import Path

import click

from zelda_ci.config import scaffold
from zelda_ci.config.scaffold import FileDraft
from zelda_ci.config.schema import ProjectConfig
from zelda_ci.errors import ConfigError


@click.command(short_help="Set up a project: configuration, an example suite, .gitignore.")
@click.option(
    "--project",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=".",
    metavar="DIR",
    help="Folder of the project (default: the current one).",
)
@click.option("--force", is_flag=True, help="Overwrite files that exist, without asking.")
def init(*, project: Path, force: bool) -> None:
    """Set up a project for Zelda CI.

    Writes zelda.config.yaml, in which every setting is explained, an example suite in zelda/, and adds the folder of
    results to .gitignore. Asks before it overwrites a file, except with --force.
    """
    config = scaffold.config_draft(project)
    if not force:
        _refuse_without_terminal([config, scaffold.example_draft(project, ProjectConfig().test_dir)])
    drafts = _agreed(config, force=force)
    settings = ProjectConfig() if drafts else scaffold.kept_config(project)
    drafts += _agreed(scaffold.example_draft(project, settings.test_dir), force=force)
    ignore = scaffold.ignore_draft(project, settings.results_dir)
    scaffold.write([*drafts, *([ignore] if ignore else [])])
    for draft in drafts:
        click.echo(f"{'overwrote' if draft.exists else 'wrote'} {draft.file}")
    click.echo(_about_ignoring(ignore, settings.results_dir))
    suite = f"{settings.test_dir}/{scaffold.EXAMPLE}"
    click.echo(f"\nNext: describe a task of yours in {suite}, check it with `zelda validate`, then `zelda run`.")


def _refuse_without_terminal(drafts: list[FileDraft]) -> None:
    taken = [draft.file for draft in drafts if draft.exists]
    if taken and not _somebody_can_answer():
        verb = "exists" if len(taken) == 1 else "exist"
        raise ConfigError(
            f"{' and '.join(taken)} {verb} already; nothing was changed.",
            hint="Overwrite with --force.",
            code="INIT_WOULD_OVERWRITE",
        )


def _somebody_can_answer() -> bool:
    # A closed standard input is None to Python.
    return sys.stdin is not None and sys.stdin.isatty()


def _agreed(draft: FileDraft, *, force: bool) -> list[FileDraft]:
    """The draft, if it may be written."""
    if draft.exists and not force:
        click.secho(f"warning: {draft.file} exists already", fg="yellow", err=True)
        if not click.confirm(f"Overwrite {draft.file}?", err=True):
            click.echo(f"kept {draft.file}")
            return []
    return [draft]


def _about_ignoring(ignore: FileDraft | None, results_dir: str) -> str:
    if ignore is None:
        return f"kept .gitignore: it has {results_dir}/ already"
    return f"added {results_dir}/ to .gitignore" if ignore.exists else f"wrote .gitignore with {results_dir}/"
