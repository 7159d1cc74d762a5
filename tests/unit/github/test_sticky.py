"""The two hidden lines of a comment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zelda_ci.github.kept_text import CommentOrder, KeptText, is_marked, marker, sealed, visible_text

HEAD = "a" * 40
ORDER = CommentOrder(run_id=12, run_attempt=1, head_sha=HEAD)


@given(st.text(), st.text())
def test_a_sealed_body_is_found_again_with_its_order_and_no_key_can_end_the_hidden_line(key: str, body: str) -> None:
    text = sealed(key, ORDER, body)
    assert is_marked(text, key)
    assert KeptText(body=text).order == ORDER
    line = marker(key)
    assert line.endswith(" -->")
    assert "\n" not in line
    assert "--" not in line.removeprefix("<!--").removesuffix("-->")


@pytest.mark.parametrize(
    "text",
    [
        f"> {marker('k')}\nbody",
        f"\n{marker('k')}\nbody",
        f"Look: {marker('k')}",
        f"{marker('k')} and more\nbody",
        f"```\n{marker('k')}\n```",
        marker("k2") + "\nbody",
        "",
    ],
)
def test_a_marker_anywhere_else_marks_nothing(text: str) -> None:
    assert not is_marked(text, "k")


def test_a_comment_saved_in_a_browser_is_still_found() -> None:
    text = sealed("k", ORDER, "one\ntwo").replace("\n", "\r\n")
    assert is_marked(text, "k")
    assert KeptText(body=text).order == ORDER
    assert visible_text(text) == "one\ntwo"
    assert (KeptText(body=marker("k")).order, visible_text(marker("k"))) == (None, "")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "body",
        "<!-- zelda-ci:order run= attempt=1 head= -->",
        "<!-- zelda-ci:order run=-1 attempt=1 head= -->",
        f"<!-- zelda-ci:order run={'9' * 5000} attempt=1 head= -->",
        "<!-- zelda-ci:order run=\u0661 attempt=1 head= -->",
        "<!-- zelda-ci:order run=1 attempt=1 head=HEAD at=0 -->",
        "<!-- zelda-ci:order run=1 attempt=1 head= at=0 --> <b>",
    ],
)
def test_a_spoilt_order_is_none(line: str) -> None:
    assert KeptText(body=f"{marker('k')}\n{line}\nbody").order is None


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        (CommentOrder(13, 1, HEAD), ORDER),
        (CommentOrder(12, 2, HEAD), ORDER),
        (CommentOrder(13, 1, HEAD), CommentOrder(12, 9, HEAD)),
        (CommentOrder(13, 1, ""), ORDER),
        (CommentOrder(13, 1, HEAD), CommentOrder(12, 1, "")),
        (CommentOrder(12, 2, HEAD, made_at=5), CommentOrder(13, 1, HEAD, made_at=4)),
        # Within a run nobody can make the results of an attempt newer than those of the next.
        (CommentOrder(12, 2, HEAD, made_at=4), CommentOrder(12, 1, HEAD, made_at=5)),
    ],
)
def test_a_later_run_or_attempt_is_after_an_earlier_one(later: CommentOrder, earlier: CommentOrder) -> None:
    assert later.is_after(earlier)
    assert not earlier.is_after(later)


def test_nothing_is_after_itself_and_a_run_of_another_head_after_nothing() -> None:
    assert not ORDER.is_after(ORDER)
    assert not CommentOrder(12, 1, HEAD, made_at=5).is_after(ORDER)
    assert not CommentOrder(13, 1, "b" * 40).is_after(ORDER)
