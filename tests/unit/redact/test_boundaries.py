"""Just what is masked, and just what is not: a character, a digit, a level more or less."""

from typing import Any

import pytest

from zelda_ci.redact import MASK, Redactor, Secret

VALUE = "q7Zr0fVw2Lk9Tb4Xs6Nd1Hy3"
redact = Redactor()


def test_a_header_is_masked_with_and_without_its_scheme_and_nothing_else_is() -> None:
    assert Secret(VALUE).as_bearer().mask(f"of Bearer {VALUE}, or {VALUE}") == f"of {MASK}, or {MASK}"


@pytest.mark.parametrize(("wrap", "key"), [(lambda it: {"a": it}, "a"), (lambda it: [it], 0)])
def test_what_is_nested_too_deeply_keeps_its_words(wrap: Any, key: Any) -> None:
    value: Any = {"pin": VALUE, "said": "inside"}
    for depth in range(1, 71):
        value = wrap(value)
        kept: Any = Redactor([Secret(VALUE)]).json({"top": value})["top"]
        assert "inside" in str(kept)
        assert VALUE not in str(kept)
        for _ in range(min(depth, 63)):
            kept = kept[key]
        assert isinstance(kept, str) == (depth >= 63)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://me:Ab3x9z@example.com", "Ab3x9z"),
        ("https://me:Ab3x9@example.com", ""),
        ("://me:Ab3x9z@example.com", "Ab3x9z"),
        ("https://0a1b2c3d4e5f6071@example.com", "0a1b2c3d4e5f6071"),
        ("https://0a1b2c3d4e5f607@example.com", ""),
        ('api_key = "Blue7!Sky"', "Blue7!Sky"),
        ('api_key = "blue7!sky"', ""),
        ("DB_PASSWORD=moongarden7", "moongarden7"),
        ("DB_PASSWORD=moongarden", ""),
        ("DB_PASSWORD=moon/garden7", ""),
        ("DB_PASSWORD=moon-garden", ""),
        ("DB_PASSWORD=moon-garden-lamp", "moon-garden-lamp"),
        ('token = "a1bcdefghij2k3"', ""),
    ],
)
def test_what_just_looks_like_a_secret_and_what_just_does_not(text: str, masked: str) -> None:
    assert redact(text) == (text.replace(masked, MASK) if masked else text)
