"""Unquoted words: what all YAML readers agree on is a value, what they do not is a surprise."""

import pytest

from zelda_ci.config.loader import Surprise, plain_value


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_nothing_is_null(text):
    assert plain_value(text) is None


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("TRUE", True)])
def test_only_true_and_false_are_switches(text, value):
    assert plain_value(text) is value


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("30", 30), ("-3", -3), ("+7", 7), ("9" * 18, int("9" * 18))])
def test_plain_digits_are_whole_numbers(text, value):
    assert plain_value(text) == value
    assert isinstance(plain_value(text), int)


@pytest.mark.parametrize(("text", "value"), [("0.5", 0.5), ("-1.25", -1.25), ("3.", 3.0), (".5", 0.5)])
def test_digits_with_a_dot_are_numbers(text, value):
    assert plain_value(text) == value
    assert isinstance(plain_value(text), float)


@pytest.mark.parametrize(
    "text",
    ["on", "Off", "yes", "NO", "y", "N", "012", "0o17", "0x1F", "0b101", "1_000", "1e3", "1.5E-3", "12:30", "1:30:00",
     "2026-02-13", "2026-02-13T14:30:00Z", "2026-02-13 14:30:00", ".inf", "-.INF", ".nan", "=", "<<", "9" * 19,
     "9" * 50_000],
)  # fmt: skip
def test_what_readers_disagree_on_is_a_surprise(text):
    assert plain_value(text) == Surprise(text)


@pytest.mark.parametrize(
    "text", ["one", "nothing", "yes please", "3 apples", "3.10.1", "v1", "-", ".", "+", "a: b", "12:30 in the morning",
             "2026-02-13 was a Friday", "onward", "9" * 50_000 + "x"],
)  # fmt: skip
def test_everything_else_is_text(text):
    assert plain_value(text) == text
