"""The files that `zelda init` writes. The configuration is derived from its model, so that it cannot drift."""

import json
from collections.abc import Iterator
from importlib.resources import files
from textwrap import wrap
from typing import Any

from zelda_ci import __version__
from zelda_ci.config import schema
from zelda_ci.config.schema import REPOSITORY, ConfigKey, ProjectConfig, keys

DOCUMENTATION = f"https://github.com/{REPOSITORY}/blob/v{__version__}/docs/configuration.md"
_WIDTH = 100
_HEAD = """\
Settings that all suites of this project share. Every value here is the default, so you can delete what you do not
want to set; a suite overrides single keys. Where there is no default, a line like "# key: value" shows an example.
A key without a value counts as not given. `zelda validate` shows what each suite ends up with, and why.
"""


def project_config() -> str:
    """A `zelda.config.yaml` with every key: what it means and its default."""
    return "".join(f"{line}\n" for line in _project_lines())


def example_suite() -> str:
    """A suite that makes sense in nearly every project."""
    text = files(__name__).joinpath("test-example.yaml").read_text("utf-8")
    return text.replace("{schema}", schema.address("zelda.suite.schema.json"))


def _project_lines() -> Iterator[str]:
    yield f"# yaml-language-server: $schema={schema.address('zelda.config.schema.json')}"
    yield "#"
    yield from _comment(_HEAD, "")
    yield f"# Reference: {DOCUMENTATION}"
    for key in keys(ProjectConfig):
        yield from _lines(key)


def _lines(key: ConfigKey) -> Iterator[str]:
    """A key with its comment; the top level is spaced out."""
    indentation = "  " * (len(key.path) - 1)
    if not indentation:
        yield ""
    yield from _comment(key.field.description or "", indentation)
    if key.group:
        yield f"{indentation}{key.name}:"
        return
    default = key.field.get_default()
    if default is None:
        yield f"{indentation}# {key.name}: {_written(_example(key))}"
    else:
        yield f"{indentation}{key.name}: {_written(default)}"


def _example(key: ConfigKey) -> Any:
    """The key's own example, or its part of the group's."""
    if key.field.examples:
        return key.field.examples[0]
    group = next(above.field for above in keys(ProjectConfig) if above.path == key.path[:-1])
    return (group.examples or [{}])[0].get(key.name, "")


def _comment(text: str, indentation: str) -> Iterator[str]:
    return (f"{indentation}# {line}" for line in wrap(text, _WIDTH - len(indentation), break_on_hyphens=False))


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
