"""What Zelda answers in a conversation: plain words, in which nothing from a comment acts."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.github_html import ACTS, page
from zelda_ci.report.builders import replies
from zelda_ci.report.markdown import render_reply

COMMIT = "0123456789abcdef" * 2 + "01234567"
HOSTILE = "<img src=x> @octo/team #1 [x](https://evil.example) `code` | <!-- zelda --> \u202e https://evil.example"


def test_help_shows_every_command_as_it_is_to_be_written() -> None:
    shown = render_reply(replies.helping(""))
    for command, _ in replies.COMMANDS:
        assert f"- `{command}`: " in shown
    assert "Nothing was done" not in shown
    assert render_reply(replies.helping("What?")).startswith("What?\n\nNothing was done.\n\n")


def test_a_command_to_copy_has_every_character_of_the_commit_and_no_other() -> None:
    for reply in (replies.commit_wanted, replies.commit_moved):
        shown = render_reply(reply(7, COMMIT, "https://github.com", "octo/shop"))
        assert f"`/zelda run {COMMIT}`" in shown
        assert f"](https://github.com/octo/shop/pull/7/files/{COMMIT})" in shown


def test_an_acceptance_names_who_why_and_every_criterion() -> None:
    reply = replies.accepted(
        "greeting", ["It greets.", "It is kind."], "dev", "it moved", "https://x.example/1", again=True
    )
    assert render_reply(reply) == (
        "dev accepts this of the suite greeting, because it moved\n\n- It greets.\n- It is kind.\n\n"
        "It holds for this pull request, after further pushes, too, as long as the criterion has the same text.\n\n"
        "To take it back, delete or edit the comment that asks for it, or hide this one.\n\n"
        "The jobs that failed run again, so that the check can turn green.\n\n[The run](https://x.example/1)\n"
    )


@settings(max_examples=30)
@given(st.text(max_size=100))
@example(HOSTILE)
def test_no_words_do_anything(text: str) -> None:
    for reply in (
        replies.helping(text),
        replies.accepted(text, [text, text], text, text, text, again=True),
        replies.cannot_run_again(text, text),
        replies.nothing_fails(text, None),
        replies.starting([text], text),
    ):
        seen = page(render_reply(reply))
        assert {tag for tag, _ in seen.tags} <= {"p", "ul", "li", "code", "a"}
        assert all(str(attributes.get("href")).startswith("https://") for tag, attributes in seen.tags if tag == "a")
        assert not [shown for shown in seen.texts if ACTS.search(shown)]


def test_a_permission_that_lacks_is_named() -> None:
    said = render_reply(replies.cannot_run_again("Resource not accessible", "", is_permitted=False))
    assert "permissions: actions: write" in said
    assert "Only criteria can be accepted" in render_reply(replies.nothing_fails("greeting", None))
