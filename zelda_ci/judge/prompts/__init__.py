"""Prompts: jinja2 files, each with a version that becomes part of the result."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from zelda_ci.imports import one_at_a_time

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent


def render(name: str, **values: object) -> str:
    """The prompt `<name>.j2` with its values; a value that is missing is an error, never a blank."""
    return _environment().get_template(f"{name}.j2").render(**values)


@cache
def _environment() -> "Environment":
    with one_at_a_time("jinja2"):
        from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - 30 ms, few commands judge

    # What is rendered is read by a model: escaping HTML would only spoil the evidence.
    return Environment(
        loader=FileSystemLoader(HERE),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701
        trim_blocks=True,
        lstrip_blocks=True,
    )
