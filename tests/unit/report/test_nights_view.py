"""Nights in words and bars, for people and against those who write names."""

import json
from datetime import timedelta

import pytest

from tests.support.schemas import checker
from tests.unit.compare.nights import FIRST, PLATFORM, history_of, night
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.report.builders.history import nights_view, sparkline
from zelda_ci.report.text import plain_title
from zelda_ci.storage import codec

# Of two suites, one fell.
FALLEN = history_of(
    [night(number, {"a": {"c": (3, 3)}, "z": {"c": (3 if number < 12 else 0, 3)}}) for number in range(17)]
)


def test_a_bar_is_a_night_and_changes_stand_between() -> None:
    nights = [
        night(0, {"a": {"c": (2, 2)}}),
        night(1, {"a": {"c": (1, 2)}}),
        night(2, {"b": {"c": (1, 1)}}),
        night(3, {"a": {"c": (0, 2)}}, platform={**PLATFORM, "cli": "2.2"}),
        night(4, {"a": {"c": (2, 2)}}, platform={**PLATFORM, "cli": "2.2"}, outcome="edited"),
        night(5, {"a": {}}, platform={**PLATFORM, "cli": "2.2"}, outcome="edited"),
    ]
    assert sparkline(nights, "a") == "█▅·¦▁¦█·"
    shown = nights_view(NightlyHistory(nights=tuple(nights)), "a", 9)
    assert [row.cells[-1].text for row in shown.lines][1:3] == ["suite, judge or steering files", "Claude Code 2.2"]


@pytest.mark.parametrize("text", ["@octocat", "`rm -rf`", "a\nb", "deadbeef01", "x" * 999, "\u202e"])
def test_a_title_is_one_line_that_calls_nobody(text: str) -> None:
    title = plain_title(text, 200)
    assert len(title.encode("utf-16-le")) <= 2 * 256
    assert not set(title) & {"`", "\n", "\x1b", "\u202e"}
    assert text not in title or text == "a\nb"
    assert plain_title("plain words, 3/4", 100) == "plain words, 3/4"


DAMAGE = {
    "a number that JSON lacks": ('"p": 0', '"p": NaN, "q": 0'),
    "an issue beyond all numbers": ('"accepted"', f'"issue": {10**40}, "accepted"'),
    "a name without end": ('"drifts"', f'"author": {{"login": "{"x" * 200}"}}, "drifts"'),
    "counts without end": ('"trials": 3', f'"trials": {10**9}'),
    "depth without end": ('"nights"', f'"junk": {"[" * 9999}{"]" * 9999}, "nights"'),
    "too many drifts": ('"drifts": [', f'"drifts": [{"{}," * 2000}'),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_no_history_has_is_damage_in_one_short_line(name: str) -> None:
    text = json.dumps(json.loads(codec.encode_within(FALLEN, 10**6)))
    assert DAMAGE[name][0] in text
    with pytest.raises(codec.UnreadableError) as refused:
        codec.decode(NightlyHistory, text.replace(*DAMAGE[name]).encode(), "history.json")
    assert len(refused.value.message) < 400


def test_a_history_survives_its_file_and_fits_its_schema_and_its_room() -> None:
    data = codec.encode_within(FALLEN, 10**6)
    assert codec.decode(NightlyHistory, data, "history.json") == FALLEN
    checker("zelda.history.schema.json").validate(json.loads(data))
    small = codec.encode_within(FALLEN, 2_000)
    assert len(small) <= 2_000
    kept = codec.decode(NightlyHistory, small, "history.json").nights
    assert kept
    assert kept[-1].at == FIRST + timedelta(days=16)
