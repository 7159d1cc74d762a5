from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.model_proxy.requests import body, call, returned, said
from zelda_ci.model_proxy.cassettes import SessionTexts, generated_ids
from zelda_ci.redact import Redactor

HERE = SessionTexts({"workspace": "/here/ws", "root": "/here", "home": "/here/ws/.home"}, Redactor())
THERE = SessionTexts({"workspace": "/there/other place", "root": "/there", "home": "/h"}, Redactor())


def moved(text: str) -> str:
    return str(THERE.fill(HERE.blank(text)))


def test_the_longest_path_wins() -> None:
    assert (
        HERE.blank("/here/ws/.home/x /here/ws/y /here/z") == "{{zelda:home}}/x {{zelda:workspace}}/y {{zelda:root}}/z"
    )
    assert moved("cat /here/ws/.home/x /here/ws/y") == "cat /h/x /there/other place/y"


def test_a_folder_that_is_named_after_a_path_is_taken_out_and_put_back() -> None:
    places, folder = SessionTexts({"p": '/a/b "c"é'}, Redactor()), "/config/projects/-a-b--c--/tool-results"
    assert places.blank(folder) == "/config/projects{{zelda:p-slug}}/tool-results"
    assert places.fill(places.blank(folder)) == folder


def test_keys_and_nested_values_are_mapped() -> None:
    value = {"/here/ws": ["/here/ws/a", {"n": 1, "none": None}]}
    assert HERE.blank(value) == {"{{zelda:workspace}}": ["{{zelda:workspace}}/a", {"n": 1, "none": None}]}
    assert HERE.fill(HERE.blank(value)) == value


@pytest.mark.parametrize("value", ["", "/"])
def test_a_value_that_is_everywhere_is_no_placeholder(value: str) -> None:
    assert SessionTexts({"root": value}, Redactor()).blank("a /b/ c") == "a /b/ c"


def test_values_that_turn_up_later_are_taken_out_from_then_on() -> None:
    places = SessionTexts({"workspace": "/ws"}, Redactor())
    assert places.blank("task b12345678") == "task b12345678"
    places.add({"handle_1": "b12345678", "workspace": "/other"})
    assert places.blank("task b12345678 in /ws") == "task {{zelda:handle_1}} in {{zelda:workspace}}"
    assert places.fill("{{zelda:handle_1}} {{zelda:handle_2}}") == "b12345678 {{zelda:handle_2}}"


PIECES = st.sampled_from(["/here", "/here/ws", "/ws", "{{", "}}", "zelda:", "-slug", "-here-ws", "a", " "])


@given(st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=12))
def test_what_is_taken_out_comes_back(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert HERE.fill(HERE.blank(text)) == text


@pytest.mark.parametrize(
    ("output", "handle"),
    [
        ("Async agent launched.\nagentId: a261dd97fa5c6f07d (internal ID", "a261dd97fa5c6f07d"),
        ([{"type": "text", "text": "agentId: a261dd97fa5c6f07d"}], "a261dd97fa5c6f07d"),
        ("Command running in background with ID: b32pjnzel. Output is", "b32pjnzel"),
        ("Full output saved to: /h/projects/-ws/1/tool-results/blh0xd6me.txt\n", "blh0xd6me"),
    ],
)
def test_handles_are_named_after_the_call_that_made_them(output: Any, handle: str) -> None:
    assert generated_ids(call(body(said("x"), returned(output, call="toolu_01-A")))) == {"handle_toolu_01_A": handle}


@pytest.mark.parametrize("output", ["deployed with ID: production", "agentId: none", "", None, 7, [{"type": "image"}]])
def test_other_output_names_nothing(output: Any) -> None:
    assert generated_ids(call(body(returned(output)))) == {}
