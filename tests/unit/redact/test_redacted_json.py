"""JSON objects from outside: masked everywhere, and always fit to be stored."""

from pathlib import PurePosixPath
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zelda_ci.redact import MASK, MAX_JSON_DEPTH, Redactor, Secret

redact = Redactor([Secret("hunter22"), Secret("123456789")])


def test_strings_and_numbers_are_masked_at_every_depth_and_in_keys() -> None:
    value = {"a": ["hunter22", {"b": "x hunter22 y"}], "my hunter22": 1, "n": None, "t": True, "pin": 123456789}
    masked = {"a": [MASK, {"b": f"x {MASK} y"}], f"my {MASK}": 1, "n": None, "t": True, "pin": MASK}
    assert redact.json(value) == masked
    assert redact.json({"other": 12345678, "f": 1.5}) == {"other": 12345678, "f": 1.5}


def test_two_masked_keys_keep_both_values() -> None:
    assert sorted(redact.json({"hunter22": 1, "123456789": 2}).values()) == [1, 2]


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (2**63, str(2**63)),
        (-(2**63) - 1, str(-(2**63) - 1)),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (b"hunter22", f"b'{MASK}'"),
        (PurePosixPath("/x/hunter22"), f"/x/{MASK}"),
        (("hunter22", 1), [MASK, 1]),
    ],
)
def test_what_no_json_file_can_hold_becomes_text(value: object, stored: object) -> None:
    safe = redact.json({"v": value})
    assert safe == {"v": stored}
    assert orjson.loads(orjson.dumps(safe)) == safe


@pytest.mark.parametrize("depth", [MAX_JSON_DEPTH, MAX_JSON_DEPTH + 1, 400, 100_000])
@pytest.mark.parametrize("wrap", [lambda inner: {"a": inner}, lambda inner: {"a": [inner]}])
def test_deep_nesting_is_stored_masked_and_harmless(depth: int, wrap) -> None:
    value: dict[str, Any] = {"secret": "hunter22"}
    for _ in range(depth):
        value = wrap(value)
    stored = orjson.dumps(redact.json(value))
    assert b"hunter22" not in stored


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@settings(deadline=None, max_examples=40)
@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_every_object_can_be_stored_and_comes_back_equal(value: dict[str, Any]) -> None:
    safe = redact.json(value)
    assert orjson.loads(orjson.dumps(safe)) == safe
    assert len(safe) == len(value)


@settings(deadline=None, max_examples=40)
@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_masking_an_object_twice_changes_nothing_more(value: dict[str, Any]) -> None:
    safe = redact.json(value)
    assert redact.json(safe) == safe
