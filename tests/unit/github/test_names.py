"""Names of artifacts and of the files in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zelda_ci.github.archives import MAX_ARTIFACT_NAME_LENGTH, artifact_name, is_artifact_name, is_member_name

HOSTILE = ['a/b"c:d<e>f|g*h?i', "line\r\nbreak", "..", ".", "", " ", "\\\\", "x" * 500, "\x00\u202e\ud800", "-.-"]


@pytest.mark.parametrize("text", ["zelda-results", "Zelda results (2)", "résultats", "a.b_c", "日本語"])
def test_a_legal_name_stays(text: str) -> None:
    assert artifact_name(text) == text


def test_texts_that_look_alike_stay_apart() -> None:
    assert len({artifact_name(text) for text in ["a/b", "a:b", "a\\b", "a-b"]}) == 4


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_made_of_hostile_text_can_be_printed(text: str) -> None:
    assert artifact_name(text).isprintable()


@given(st.text())
def test_any_text_becomes_a_legal_name_that_is_stable(text: str) -> None:
    name = artifact_name(text)
    assert is_artifact_name(name)
    assert artifact_name(name) == name
    assert len(name) <= MAX_ARTIFACT_NAME_LENGTH


@pytest.mark.parametrize("name", ["zelda-ci.json", "runs/a-1/result.json", ".hidden", "ä b"])
def test_a_relative_path_is_a_member(name: str) -> None:
    assert is_member_name(name)


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "./a", "a\\b", "C:x", "a\nb", 'a"b']
)
def test_a_path_that_leads_elsewhere_is_no_member(name: str) -> None:
    assert not is_member_name(name)
