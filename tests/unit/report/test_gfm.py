"""Outside text in GitHub's Markdown, read back by a Markdown parser."""

from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.support.github_html import ACTS, page
from zelda_ci.report.text import address, code, escape_markdown, html, sentence

MARKDOWN = MarkdownIt("commonmark").enable("table").enable("strikethrough")

HOSTILE = [
    "a | b",
    "a \\| b",
    "`code` ``x``",
    "<script>alert(1)</script> <b>bold</b> <!-- hidden",
    "&lt;b&gt; &amp; &#64;user",
    "[text](http://example.com) ![image](x.png) [ref][1] [^note]",
    "**bold** __bold__ *it* _it_ ~~gone~~",
    "# heading",
    "- item",
    "+ item",
    "1. item",
    "2) item",
    "--- ",
    "=== ",
    "> quote",
    "$x^2$ and $`y`$",
    "\\",
    "ends with \\",
    "| --- | --- |",
]


def texts(markdown: str) -> tuple[list[str], set[str]]:
    """The text that is shown, place by place, and the kinds of everything else."""
    shown, kinds = [], set()
    for token in MARKDOWN.parse(markdown):
        kinds.add(token.type)
        for child in token.children or ():
            kinds.add(child.type)
        if token.children is not None:
            shown.append("".join(child.content for child in token.children).replace("`", ""))
    return shown, kinds


PLAIN = {"inline", "text", "text_special", "code_inline"}
IN_LIST = PLAIN | {"bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"}
IN_LIST |= {"paragraph_open", "paragraph_close"}
TABLE = {f"{part}_{end}" for part in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")}


def check(text: str) -> None:
    # What stands between backticks is shown as code.
    wanted = " ".join(sentence(text).split()).replace("`", "")
    escaped = escape_markdown(sentence(text))
    shown, kinds = texts(f"| a | b |\n|---|---|\n| {escaped} | after |\n")
    assert shown == ["a", "b", wanted, "after"]
    assert kinds <= PLAIN | TABLE
    if wanted:
        shown, kinds = texts(f"- {escaped}\n")
        assert shown == [wanted]
        assert kinds <= IN_LIST


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_shows_as_it_is_in_a_table_and_in_a_list(text: str) -> None:
    check(text)


@given(st.text(alphabet=st.sampled_from(list("ab1 .-+=#>|\\`*_~[](){}<!&;:/@$^\n\t\u00e9")), max_size=30))
def test_any_text_shows_as_it_is(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("@octocat", "`@octocat`"),
        ("see #12.", "see `#12`."),
        ("(GH-12)", "(`GH-12`)"),
        ("gh-12", "`gh-12`"),
        ("https://example.com", "`https://example.com`"),
        ("mailto:me", "`mailto:me`"),
        ("www.example.com", "`www.example.com`"),
        ("me@example.com", "`me@example.com`"),
        ("commit 0123456789abcdef0123456789abcdef01234567", "commit `0123456789abcdef0123456789abcdef01234567`"),
        ("owner/repo@0123456", "`owner/repo@0123456`"),
        (":smile:", "`:smile:`"),
        ("a|@b|c", "`a`\\|`@b`\\|`c`"),
        ("``@b``", "``` ``@b`` ```"),
    ],
)
def test_github_finds_nobody_to_notify_and_nothing_to_link(text: str, shown: str) -> None:
    assert escape_markdown(text) == shown
    seen = page(f"x {shown}\n")
    assert "".join(seen.shown).strip() == f"x {text}"
    assert not [found for found in seen.texts if ACTS.search(found)]


@pytest.mark.parametrize("text", ["09:30 UTC", "77 of 100", "src/app.py:14-22", "suite-000", "issue # 1", "a: b"])
def test_times_places_and_numbers_carry_nothing_that_cannot_be_seen(text: str) -> None:
    assert escape_markdown(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("registered in `src/app.py`, next", "registered in `src/app.py`, next"),
        ("\u201c`a b` is\u201d", "\u201c`a b` is\u201d"),
        ("`@octocat` and `<b>`", "`@octocat` and &lt;`b>`"),
        ("@x(`a`", "`` @x(`a` ``"),
        ("`a``b`", "\\`a\\`\\`b\\`"),
        ("`a|b`", "\\`a\\|b\\`"),
    ],
)
def test_what_stands_between_backticks_is_code_where_it_touches_no_other(text: str, shown: str) -> None:
    assert escape_markdown(text) == shown
    assert "".join(page(f"x {shown}\n").shown).replace("`", "").strip() == f"x {text}".replace("`", "")


def test_what_is_harmless_stays_as_it_is() -> None:
    text = "Fisher's exact test: p = 0.012 (5 of 5), -3 turns, 80.0 ±1.2"
    assert escape_markdown(text) == text


def rendered(markdown: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))


@given(st.text(alphabet=st.sampled_from(list("ab1 .-+=#>|\\`*_~[](){}<!&;:/@$^\n\t\u00e9")), max_size=30))
def test_any_text_shows_as_it_is_in_a_title_and_as_code(text: str) -> None:
    wanted = " ".join(text.split())
    titled = rendered(f"<details><summary>{html(text)}</summary>\n\nx\n\n</details>")
    title = titled.split("<summary>")[1].split("</summary>")[0]
    assert unescape(title.replace("<code>", "").replace("</code>", "")) == wanted
    if wanted and "\n" not in text:
        row = rendered(f"| a | b |\n|---|---|\n| {code(text)} | after |\n")
        shown = row.split("<tbody>")[1].split("<td>")[1].split("</td>")[0]
        # Between two bars nothing but blanks is one blank that stays.
        plain = unescape(shown.replace("<code>", "").replace("</code>", "")).replace("\xa0", " ")
        assert plain.split() == text.split()
        assert row.count("<td>") == 2


def test_several_lines_of_code_are_a_block_on_one_line() -> None:
    text = "first *line*\n</pre><b>\n  - third"
    assert "\n" not in code(text)
    shown = rendered(f"- item\n  - {code(text)}\n")
    assert unescape(shown.split("<pre>")[1].split("</pre>")[0]) == text
    assert "<b>" not in shown


@pytest.mark.parametrize("name", ["main@abc1234", "feature/x-1", "0123456789abcdef"])
def test_a_name_is_code_that_can_be_copied(name: str) -> None:
    assert code(name) == f"`{name}`"


@pytest.mark.parametrize(
    "url", ["https://github.com/acme/shop/actions/runs/1", "http://ghes.example:8443/o/r", "https://x.example"]
)
def test_a_web_address_can_be_linked(url: str) -> None:
    assert address(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "https://x.example/)",
        "https://x y",
        "//x",
        "",
        "https://x/<b>",
        "https://x/\n",
        "data:x",
        "https://u@h",
    ],
)
def test_nothing_else_can(url: str) -> None:
    assert address(url) is None
