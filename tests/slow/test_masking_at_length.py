"""Megabytes before the redactor: hardly anything of real sources is hidden, and no text keeps it busy for long."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from tests.support.cases import for_each
from zelda_ci import named_secrets
from zelda_ci.redact import Redactor, Secret

REDACT = Redactor([Secret("Zq7!kd93_Hs/wP2x+LmN8vB4")])
ROOT = Path(__file__).parents[2]
MOST_FALSE = 8
"""In these megabytes; of 160 MB of sources and documentation, 41 were masked, and 1 was neither secret nor example."""


def sources() -> Iterator[Path]:
    """This project's own files, and of what is installed that which speaks of tokens and passwords."""
    for folder in ("zelda_ci", "docs", "schemas", "tests/data", "examples", ".github"):
        yield from (ROOT / folder).rglob("*")
    for package in ("anthropic", "claude_agent_sdk", "pydantic", "starlette", "httpx2", "anyio", "yaml", "pip", "mcp"):
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        yield from Path(spec.origin).parent.rglob("*.py")


def test_hardly_anything_of_real_sources_is_hidden() -> None:
    size, hidden = 0, list[str]()
    for file in sources():
        data = file.read_bytes()[:2_000_000] if file.is_file() else b""
        if b"\0" in data:
            continue
        size += len(data)
        hidden += [f"{file}: {data[start - 40 : end]!r}" for start, end in named_secrets.spans(data)]
    assert size > 10_000_000
    assert len(hidden) <= MOST_FALSE, "\n".join(hidden)


HOSTILE = ["token=", "token ", 'password"', "password=a1", "://", "//a:", "login a password ", '"password="aaaaaaa']


@for_each(HOSTILE)
def test_a_megabyte_that_looks_like_secrets_is_read_to_its_end(unit: str) -> None:
    """It takes a second; if it grew with the square of the length, the test would run into its time limit."""
    assert REDACT(unit * (1_000_000 // len(unit)))
