"""Secrets and the one door through which outside text enters: `Redactor` makes `SafeText`, nobody else does."""

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any, NewType
from urllib.parse import quote, quote_plus

import re2

SafeText = NewType("SafeText", str)
"""Text from outside in which secrets are masked."""

SafeJson = NewType("SafeJson", dict[str, Any])
"""A JSON object from outside in which every string, keys included, is masked."""

MASK = "***"

# A value shorter than this occurs by chance in ordinary text; masking it would destroy the record.
SHORTEST_SECRET = 6

KEY_SHAPES = (
    r"sk-ant-[A-Za-z0-9_-]{8,}",
    r"sk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{20,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"AIza[A-Za-z0-9_-]{35}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_-]{30,}",
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s\\]*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
)
"""Shapes of well-known credentials (Anthropic, OpenAI, GitHub, GitLab, Slack, AWS, Google, npm, PyPI, JWT, PEM)."""


class Secret:
    """A value that never prints itself; `reveal` is the only way to it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself, for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    __str__ = __repr__


class Redactor:
    """Masks known secrets, in the spellings a log may show them, and the shapes of well-known keys.

    Redact whole messages, never fragments of a stream: a fragment can split a secret.
    """

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        values = {secret.reveal() for secret in secrets}
        forms = {form for value in values if len(value) >= SHORTEST_SECRET for form in _spellings(value)}
        # The longest first, so that a secret inside another never leaves the rest of the longer one behind.
        known = [re2.escape(form) for form in sorted(forms, key=len, reverse=True)]
        options = re2.Options()
        options.log_errors = False
        options.max_mem = 64 << 20
        self._pattern = re2.compile("|".join([*known, *KEY_SHAPES]), options)

    def __call__(self, text: str) -> SafeText:
        """Mask what must not be stored. Lone surrogates, which cannot be written as UTF-8, are replaced."""
        clean = text.encode("utf-8", "replace").decode("utf-8")
        return SafeText(self._pattern.sub(MASK, clean))

    def json(self, value: dict[str, Any]) -> SafeJson:
        """Mask every string of a JSON object, keys included."""
        return SafeJson({str(self(str(key))): self._tree(item) for key, item in value.items()})

    def _tree(self, value: Any) -> Any:
        match value:
            case str():
                return self(value)
            case dict():
                return self.json(value)
            case list() | tuple():
                return [self._tree(item) for item in value]
            case _:
                return value


def _spellings(value: str) -> Iterator[str]:
    """The forms GitHub's own masker knows too: as it is, URL, JSON and base64 at each of three alignments."""
    yield value
    yield quote(value, safe="")
    yield quote_plus(value)
    yield json.dumps(value)[1:-1]
    raw = value.encode()
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        # The first and last characters also carry bits of the neighbours, so they differ from place to place.
        inner = encoded[(shift * 8 + 5) // 6 : (shift + len(raw)) * 8 // 6]
        if len(inner) >= SHORTEST_SECRET:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")
