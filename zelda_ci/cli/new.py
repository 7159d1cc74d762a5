"""`zelda new`: one suite more."""

import os
import re
from pathlib import Path

import click

from zelda_ci.cli import options
from zelda_ci.cli.init import surveyed
from zelda_ci.cli.output import echo
from zelda_ci.config import init as scaffold
from zelda_ci.config.environment import read_environment
from zelda_ci.config.messages import nearest
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem
from zelda_ci.errors import ConfigError
from zelda_ci.pipeline.survey import Survey

NAME = re.compile(r"(?:[\w.-]+/)*[\w][\w.-]*")


@click.command(epilog="Examples: `zelda new discount`; `zelda new api/health --skill rest-endpoint`.")
@click.argument("name", metavar="NAME")
@click.option("--skill", metavar="X", help="About this skill or sub-agent.")
@click.option("--rule", metavar="X", help="About this rule or CLAUDE.md file: its name or path.")
@options.project
def new(*, name: str, skill: str | None, rule: str | None, project: Path) -> None:
    """Add a suite: a task in the project's language, and criteria that can be seen.

    NAME is the suite's name, with folders if you like: `api/health` becomes zelda/api/test-health.yaml. With --skill or
    --rule, the task is one for which the skill is needed or to which the rule applies, as far as its file says.
    """
    options.exclusive(skill=skill, rule=rule)
    if not NAME.fullmatch(name) or ".." in name.split("/"):
        hint = "Take letters, digits, - and _, with folders before a slash: api/health."
        raise ConfigError(f"{name} is no name of a suite.", hint=hint, code="USAGE")
    found = surveyed(project, read_environment(os.environ))
    item = _item(found, skill or rule or "", is_rule=rule is not None) if skill or rule else None
    suite = scaffold.first_suite(item, found.files, found.folder)
    above, _, last = f"{scaffold.kept_config(found.root).test_dir}/{name}".rpartition("/")
    draft = scaffold.draft(found.root, f"{above}/test-{last.removeprefix('test-')}.yaml", suite.text)
    if draft.exists:
        raise ConfigError(f"{draft.file} exists already.", hint="Choose another name.", code="INIT_WOULD_OVERWRITE")
    scaffold.write([draft])
    echo(f"wrote {draft.file}{f', about {suite.about}' if suite.about else ''}")
    echo(f"Next: make its prompt and criteria yours, then `zelda run {name}`.")


def _item(found: Survey, name: str, *, is_rule: bool) -> ManifestItem:
    kinds = (ItemKind.RULE, ItemKind.MEMORY) if is_rule else (ItemKind.SKILL, ItemKind.AGENT)
    usable = [item for item in found.items if item.kind in kinds and not item.problem and not item.shadowed]
    short = {item.name.removesuffix(".md").rpartition("/")[2] if is_rule else item.name: item for item in usable[::-1]}
    if item := short.get(name) or next(
        (it for it in usable if scaffold.seen_from(found.folder, it.file) == name), None
    ):
        return item
    near = nearest(name, list(short))
    there = f"Did you mean {near}?" if near else f"There are {', '.join(sorted(short)) or 'none'}."
    raise ConfigError(f"There is no {'rule' if is_rule else 'skill'} {name}.", hint=there, code="USAGE")
