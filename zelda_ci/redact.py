"""Secrets and the one door through which outside text enters: `Redactor` makes `SafeText`, nobody else does."""

import base64
import copy
import html
import json
import math
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Any, LiteralString, NewType
from urllib.parse import quote, quote_plus

import re2

from zelda_ci import named_secrets
from zelda_ci.errors import ConfigError

# Text from outside in which secrets are masked; and a JSON object in which every string and number, keys included, is
# masked, and which can be stored.
SafeText = NewType("SafeText", str)
SafeJson = NewType("SafeJson", dict[str, Any])

MASK = "***"
# A name that outside did not tell, and no text at all.
UNKNOWN, EMPTY = SafeText("unknown"), SafeText("")

# A value shorter than this occurs by chance in ordinary text; masking it would destroy the record.
MIN_SECRET_LENGTH = 6
# RE2 repeats and programs are bounded: a longer secret is known by its pieces of this many bytes.
MAX_PIECE_LENGTH = 512
# Base64 longer than a line comes broken into lines of any width: known by what stands between two breaks.
BASE64_LINE, BASE64_PIECE = 60, 24
# Of a longer one (a certificate store, a cluster's configuration) only the plain and JSON spellings are known.
LONG_SECRET = 1024
# Beyond this many characters of spellings the automaton outgrows its memory and becomes a thousand times slower.
MAX_SPELLINGS = 500_000
# Deeper than any tool's input, and well below where the JSON writers give up.
MAX_JSON_DEPTH = 64

# "sk-" also ends words (task-, risk-, disk-). Before a key stands no letter, unless it ends an escape sequence.
_START = r"(?:\b|_|\\[nrt]|%[0-9A-Fa-f]{2})"
# Anthropic, OpenAI, GitHub, GitLab, Slack, AWS, Google, Stripe, Hugging Face, npm, PyPI, JWT, PEM and PGP. Each is
# decided after a bounded number of characters: an open-ended search would let n false starts cost n times their length.
KEY_SHAPES = (
    _START + r"sk-ant-[A-Za-z0-9_-]{8,}",
    _START + r"sk-(?:proj|svcacct|admin|service|or-v1)-[A-Za-z0-9_-]{20,}",
    _START + r"sk-[A-Za-z0-9]{32,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{20,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"AIza[A-Za-z0-9_-]{35}",
    r"GOCSPX-[A-Za-z0-9_-]{20,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"[sr]k_live_[A-Za-z0-9]{20,}",
    r"hf_[A-Za-z0-9]{30,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-AgE[A-Za-z0-9_-]{30,}",
    r"eyJ[A-Za-z0-9_-]{10,500}\.eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)?",
    # Armour, headers and body; lines may be numbered, escaped or prefixed as in a diff, and the end may be cut off.
    (
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Charset): [^\n\\]{0,200}|\n-[A-Za-z0-9+/=]|[A-Za-z0-9+/=\s\\|→])*"
        r"(?:-?-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?"
    ),
)


class Secret:
    """A value that never prints itself. Only what sends it somewhere may `reveal` it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself."""
        return self._value

    def as_bearer(self) -> "Secret":
        """As the value of an Authorization header."""
        return Secret(f"Bearer {self._value}")

    def fingerprint(self) -> str:
        """A digest that tells it from another; of a key that nobody can guess, it says nothing."""
        return sha256(self._value.encode("utf-8", "surrogateescape")).hexdigest()

    def mask(self, text: str) -> str:
        """Text without the value, of which one like "Bearer x" can be quoted without its scheme."""
        for part in (self._value, self._value.rpartition(" ")[2]):
            text = text.replace(part, MASK) if part else text
        return text

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    __str__ = __repr__


class Redactor:
    """Masks known secrets, in the spellings a log may show them, shapes of well-known keys, and what is named a secret.

    It takes whole messages, never fragments of a stream: a fragment can split a secret.
    """

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self._by_name = True
        forms = {form for secret in secrets for form in spellings(secret.reveal())}
        if sum(map(len, forms)) > MAX_SPELLINGS:
            hint = "Pass large ones as files instead of environment variables."
            raise ConfigError("The secrets together are too large to be masked.", hint=hint, code="SECRETS_TOO_LARGE")
        # The longest first, so that of secrets starting at the same place the whole of the longer one goes.
        pattern = "|".join(map(re2.escape, sorted(forms, key=len, reverse=True)))
        self._secrets = named_secrets.compile_pattern(pattern) if forms else None
        self._shapes = named_secrets.compile_pattern("|".join(KEY_SHAPES))

    def __call__(self, text: str) -> SafeText:
        """Mask what must not be stored. Lone surrogates, which cannot be written as UTF-8, are replaced."""
        # As bytes: RE2 works on them, and counts them in positions.
        data = text.encode("utf-8", "replace")
        if len(data) < MIN_SECRET_LENGTH:  # most keys and numbers of JSON
            return SafeText(data.decode())
        spans = [match.span() for match in self._shapes.finditer(data)]
        position = 0
        while self._secrets and (match := self._secrets.search(data, position)):
            spans.append(match.span())
            # Not from its end: the tail of one secret can be the head of another.
            position = match.start() + 1
        if self._by_name:
            spans += named_secrets.spans(data)
        pieces, end = list[bytes](), 0
        for start, stop in sorted(spans):
            if start > end or not pieces:
                pieces += [data[end:start], MASK.encode()]
            end = max(end, stop)
        return SafeText(b"".join([*pieces, data[end:]]).decode())

    def known_only(self) -> "Redactor":
        """The same without guessing by names: for words of a model that are played back, and must not change."""
        other = copy.copy(self)
        other._by_name = False  # noqa: SLF001 - a copy of this one
        return other

    def json(self, value: dict[str, Any]) -> SafeJson:
        """Mask every string and number of a JSON object, keys included; what no JSON file can hold becomes text."""
        return SafeJson(self._tree(value, 1, ""))

    def _tree(self, value: Any, depth: int, name: str) -> Any:
        match value:
            case str() if self._by_name and named_secrets.is_named(name, value):
                return MASK
            case None | bool():
                return value
            case int() | float():
                # A secret may consist of digits.
                safe = self(str(value))
                storable = -(2**63) <= value < 2**63 if isinstance(value, int) else math.isfinite(value)
                return value if storable and safe == str(value) else safe
            case dict() | list() | tuple() if depth > MAX_JSON_DEPTH:
                with suppress(RecursionError, ValueError, TypeError):
                    return self(json.dumps(value, default=str))
                return "(nested too deeply)"
            case list() | tuple():
                return [self._tree(item, depth + 1, "") for item in value]
            case dict():
                masked: dict[str, Any] = {}
                paired = value.get("name") if value.keys() == {"name", "value"} else None
                for key, item in value.items():
                    shown = self(str(key))
                    # Two masked keys look alike, and neither may push out the other's value.
                    shown = SafeText(f"{shown}#{len(masked)}") if shown in masked else shown
                    item_name = paired if key == "value" and isinstance(paired, str) else str(key)
                    masked[shown] = self._tree(item, depth + 1, item_name)
                return masked
            case _:
                return self(str(value))


def joined(separator: LiteralString, parts: Iterable[SafeText]) -> SafeText:
    """Safe parts with our own text between them are safe."""
    return SafeText(separator.join(parts))


def spellings(value: str) -> Iterator[str]:
    """Spellings of a secret, each short enough for a pattern.

    Terminals and files show a secret without its last newline, and one of many lines line by line. A variable that is
    not UTF-8 is known by the pieces that are.
    """
    whole = [] if re.search(r"[\ud800-\udfff]", value) else [value, value.strip()]
    for part in {*whole, *re.split(r"[\r\n\ud800-\udfff]+", value)}:
        if len(part.strip()) < MIN_SECRET_LENGTH:
            continue
        for form in _forms(part, is_long=len(value) > LONG_SECRET):
            yield from _pieces(form, MAX_PIECE_LENGTH)


def _pieces(form: str, longest: int) -> Iterator[str]:
    """Even pieces, so that the last is not too short to be known by itself."""
    count = math.ceil(len(form) / longest)
    size = math.ceil(len(form) / count)
    return (form[start : start + size] for start in range(0, len(form), size))


def _forms(value: str, *, is_long: bool) -> Iterator[str]:
    """Forms that GitHub's own masker knows too, URL and JSON, and those of HTML, Python, a shell, hex and base64."""
    yield value
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield from (once, once.replace("/", r"\/"), json.dumps(once, ensure_ascii=ascii_only)[1:-1])
    if is_long:
        return
    for escaped in (quote(value, safe=""), quote(value), quote_plus(value)):
        yield from (escaped, re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), escaped))
    yield from (html.escape(value), repr(value)[1:-1], shlex.quote(value).removeprefix("'").removesuffix("'"))
    raw = value.encode()
    yield from (raw.hex(), raw.hex().upper())
    # In both alphabets, at each of three alignments, without the characters that also carry bits of the neighbours.
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw).decode()
        inner = encoded[(shift * 8 + 5) // 6 : (shift + len(raw)) * 8 // 6]
        for form in (inner, inner.replace("+", "-").replace("/", "_")):
            yield form
            yield from _pieces(form, BASE64_PIECE) if len(form) > BASE64_LINE else ()
