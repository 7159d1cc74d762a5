"""Secrets that are wrapped, escaped, dumped or encoded twice; and text that only looks like that."""

import base64
import json
import random
import urllib.parse
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cases import for_each
from zelda_ci import encodings
from zelda_ci.redact import MASK, Redactor, Secret

DUMPED = Path(__file__).parents[2] / "data" / "dumps.json"
SECRET = "Zq7!kd93_Hs/wP2x+LmN8vB4"
REDACT = Redactor([Secret(SECRET)])
AROUND = f"user=x {SECRET} and more text follows here\n"


# What programs print, by command, then by what was given to them. Made by running them.
RECORDED: dict[str, dict[str, str]] = json.loads(DUMPED.read_bytes())


def dump(command: str) -> Callable[[str], str]:
    return lambda text: RECORDED[command][text]


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def hexadecimal(text: str) -> str:
    return text.encode().hex()


def each(form: str) -> Callable[[str], str]:
    return lambda text: "".join(form % byte for byte in text.encode())


DUMPS = [
    *("xxd", "xxd -u", "xxd -c 8", "xxd -e", "xxd -b", "xxd -i", "xxd -p", "hexdump", "hexdump -C", "hexdump -c"),
    *("od -x", "od -An -tx1", "od -Ax -tx1z", "od -tx8", "fold -w 8", "base64 -w 20", "base64 -w 76"),
]
SHOWN: dict[str, Callable[[str], str]] = {
    "plain": str,
    "in JSON": lambda text: json.dumps({"out": text}),
    "in a diff": lambda text: "".join(f"+{line}\n" for line in text.splitlines()),
    "numbered": lambda text: "".join(f"{number:6}\u2192{line}\n" for number, line in enumerate(text.splitlines(), 1)),
}


def leaks(shown: str, secret: str = SECRET) -> bool:
    """Whether three characters in a row are left, in the spellings that a reader sees at once."""
    raw = secret.encode()
    hidden = [secret[at : at + 4] for at in range(len(secret) - 3)]
    for form in ("%02x", "%02x ", "%02X ", "%d ", "%03o "):
        whole = "".join(form % byte for byte in raw)
        hidden += [whole[at : at + 16] for at in range(0, len(whole) - 15, 2)]
    return any(part in shown for part in hidden)


@for_each(product(DUMPS, SHOWN))
def test_a_dump_or_wrapped_text_is_masked_however_it_is_shown(command: str, show: str) -> None:
    for text in (SECRET, AROUND * 3):
        safe = REDACT(SHOWN[show](dump(command)(text)))
        assert MASK in safe
        assert not leaks(safe)


ENCODED: dict[str, Callable[[str], str]] = {
    "base64 twice": lambda text: b64(b64(text)),
    "base64 twice, wrapped": lambda text: base64.encodebytes(base64.encodebytes(text.encode())).decode(),
    "base64 three times": lambda text: b64(b64(b64(text))),
    "hex of base64": lambda text: hexadecimal(b64(text)),
    "base64 of hex": lambda text: b64(hexadecimal(text)),
    "base64 of escapes": lambda text: b64(each("\\u%04x")(text)),
    "escapes of base64": lambda text: each("\\x%02x")(b64(text)),
    "percent twice": lambda text: urllib.parse.quote(each("%%%02x")(text)),
    "u": each("\\u%04x"),
    "u in JSON in JSON": lambda text: json.dumps(json.dumps(each("\\u%04x")(text))),
    "u{}": each("\\u{%x}"),
    "x": each("\\x%02x"),
    "percent": each("%%%02x"),
    "entities": each("&#%d;"),
    "hexadecimal entities": each("&#x%x;"),
    "some as escapes": lambda text: "".join(f"\\u{ord(c):04x}" if n % 3 else c for n, c in enumerate(text)),
    "a list": lambda text: str([*text.encode()]),
    "colons": each("%02x:"),
    "a list in C": each("0x%02x, "),
}


@for_each(ENCODED)
def test_a_secret_in_up_to_three_spellings_one_in_the_other_is_masked(encoding: str) -> None:
    encoded = ENCODED[encoding](SECRET)
    safe = REDACT(f"it is {encoded};\n")
    assert MASK in safe
    assert len(safe.replace(MASK, "")) < len(encoded) / 2 + 10
    assert safe.startswith("it is")


@pytest.mark.parametrize("before", ["", "x", "xy", "xyz: "])
def test_what_stands_before_a_secret_in_base64_does_not_hide_it(before: str) -> None:
    for path in ("", "a/", "ab/", "abc/"):
        encoded = path + b64(b64(f"{before}{SECRET} and after") + "and after")
        assert MASK in REDACT(f"see {encoded}")


ORDINARY = random.Random(1)
TEXTS = {
    "numbers": "\n".join(" ".join(str(ORDINARY.randrange(300)) for _ in range(16)) for _ in range(500)),
    "hex": "\n".join(ORDINARY.randbytes(20).hex() for _ in range(500)),
    "base64": base64.encodebytes(ORDINARY.randbytes(20_000)).decode(),
    "dump": dump("od -Ax -tx1z")("ordinary text, which is dumped\n" * 20),
    "escapes": each("\\u%04x")("ordinary text"),
    "code": "".join(f"    'key{n}': [{n}, 0x{n:02x}, '\\x1b[{n}m'],\n" for n in range(500)),
    "list": "- first\n- second\n+ added\n> quoted\n" * 100,
}


@for_each(TEXTS)
def test_ordinary_text_of_that_kind_stays_as_it_is(kind: str) -> None:
    assert REDACT(TEXTS[kind]) == TEXTS[kind]


def test_only_what_holds_the_secret_is_masked() -> None:
    inner = f"before {'a' * 300} {SECRET} {'b' * 300} after"
    safe = REDACT(f"one {b64(b64(inner))} two")
    assert safe.startswith("one ")
    assert safe.endswith(" two")
    assert len(safe) > len(b64(b64(inner))) * 0.8
    wrapped = "\n".join(["first line", SECRET[:10], SECRET[10:], "last line"])
    assert REDACT(wrapped) == f"first line\n{MASK}\nlast line"
    dumped = dump("xxd")("A line of text.\n" * 5 + SECRET + "\n" + "B line of text.\n" * 5)
    assert REDACT(dumped).count("A line of text.") == 5
    assert "..B line" in REDACT(dumped)


@given(st.lists(st.sampled_from([b"\n", b"\r", b"\\n", b"\\r", b"\\", b" ", b"\t", b"a", b"n"]), max_size=12))
def test_places_are_those_of_the_text_without_breaks(parts: list[bytes]) -> None:
    data = b"".join(parts)
    for text, make_view in encodings.joined(data):
        view = make_view()
        assert view.data == text
        assert bytes(data[view.source(at, at + 1)[0]] for at in range(len(text))) == text


printable = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=60)


@settings(deadline=None, max_examples=10)
@given(printable, st.text(max_size=30), st.sampled_from(sorted(ENCODED)))
def test_no_secret_of_any_form_survives_its_encoding(secret: str, before: str, encoding: str) -> None:
    # A backslash before an escape may belong to either.
    if len(set(secret)) < 6 or not {"*", "\\"}.isdisjoint(secret):
        return
    redact = Redactor([Secret(secret)])
    encoded = ENCODED[encoding](secret)
    assert encoded not in redact(f"{before.encode('ascii', 'ignore').decode()} {encoded}\n")
