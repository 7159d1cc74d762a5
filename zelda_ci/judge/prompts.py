"""Prompts: Jinja2 files, each with a version that becomes part of the result, and fences around what is quoted."""

import secrets
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from zelda_ci.imports import one_at_a_time
from zelda_ci.judge.characters import spelled

if TYPE_CHECKING:
    from jinja2 import Environment


def render(name: str, **values: object) -> str:
    """The prompt `<name>.j2` with its values; a value that is missing is an error, never a blank."""
    return environment().get_template(f"{name}.j2").render(**values)


@cache
def environment() -> "Environment":
    with one_at_a_time("jinja2"):
        from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - 30 ms, few commands judge

    # What is rendered is read by a model: escaping HTML would only spoil the evidence.
    return Environment(
        loader=FileSystemLoader(Path(__file__).with_name("prompts")),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701
        trim_blocks=True,
        lstrip_blocks=True,
    )


# How every fence begins.
OPENING = "<evidence-"

NONCE_BYTES = 16


def new_nonce() -> str:
    """A mark that nobody can guess: to be made for each run after its session has ended."""
    return secrets.token_hex(NONCE_BYTES)


def mark_of(nonce: str) -> str:
    """A short form, for the many small marks inside a fence."""
    return nonce[:8]


def fence(kind: str, text: str, nonce: str) -> str:
    """The text between marks that only the holder of the nonce can write.

    Where a text holds the nonce, which takes a leak, it is masked there. The kind is ours: letters, digits and hyphens;
    raises ValueError for another, and for a nonce that is too short to be one.
    """
    if not kind.replace("-", "").isalnum() or len(nonce) < 2 * NONCE_BYTES:
        raise ValueError("a fence needs a plain kind and a nonce of its own")
    inner = text.replace(nonce, "*" * len(nonce))
    return f'{OPENING}{nonce} kind="{kind}">\n{inner}\n</evidence-{nonce}>'


def problems_of(problem: ValidationError) -> str:
    """What is wrong with a form, in words for the model that filled it in; nothing of what it wrote."""
    errors = problem.errors(include_url=False, include_input=False, include_context=False)
    sentences = [f"{'.'.join(map(str, error['loc'])) or 'answer'}: {error['msg']}" for error in errors[:10]]
    return spelled("; ".join(sentences))
