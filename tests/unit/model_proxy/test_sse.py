from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.wire import AnswerEvents

EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "n": 1},
    {"type": "ping"},
    {"type": "x", "text": "ä\u2028 \n\n data: no"},
]
STREAM = b"".join(map(wire.written, EVENTS))


@given(st.lists(st.integers(0, len(STREAM)), max_size=8), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_events_are_the_same_however_the_network_cuts_them(cuts: list[int], line_end: bytes) -> None:
    stream = STREAM.replace(b"\n", line_end)
    borders = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    reader = AnswerEvents()
    found = [event for start, end in pairwise(borders) for event in reader.feed(stream[start:end])]
    assert [*found, *reader.end()] == EVENTS


def test_a_byte_order_mark_is_no_part_of_the_first_event() -> None:
    assert [*AnswerEvents().feed(b'\xef\xbb\xbfdata: {"n": 1}\n\n')] == [{"n": 1}]


@pytest.mark.parametrize("garbage", [b"<html><body>502</body>\n\n</html>", b"HTTP 1.1\n\n", b"{no json", b""])
def test_garbage_is_no_event(garbage: bytes) -> None:
    reader = AnswerEvents()
    assert [*reader.feed(garbage), *reader.end()] == []
