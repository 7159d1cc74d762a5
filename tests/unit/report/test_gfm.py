"""Outside text in GitHub's Markdown, read back by a Markdown parser, and in what Zelda answers there."""

import ast
import re
from html import unescape
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.support.github_html import ACTS, page
from zelda_ci.ci import conversation
from zelda_ci.ci.conversation import parse_command
from zelda_ci.report.markdown import environment, render_reply
from zelda_ci.report.text import address, code, escape_markdown, html, sentence

MARKDOWN = MarkdownIt("commonmark").enable("table").enable("strikethrough")


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


OTHERS = [
    "a \\| b",
    "<script>alert(1)</script> <!-- hidden",
    "&lt;b&gt; &#64;user",
    "# heading",
    "1. item",
    "$x^2$",
    "\\",
]


@pytest.mark.parametrize("text", ["`@bot merge`", "a/@bot merge me", "x @bot  merge", "@bot merge"])
def test_no_program_that_reads_comments_finds_a_command_in_code(text: str) -> None:
    for written in (escape_markdown(text), code(text)):
        assert not re.search(r"@bot\s+merge", written)
        assert "@bot" in "".join(texts(written)[0])


@given(st.text(alphabet=st.sampled_from(list("ab1 .-+=#>|\\`*_~[](){}<!&;:/@$^\n\t\u00e9")), max_size=30))
def test_any_text_shows_as_it_is(text: str) -> None:
    for each in (text, *OTHERS):
        # What stands between backticks is shown as code.
        wanted = " ".join(sentence(each).split()).replace("`", "")
        escaped = escape_markdown(sentence(each))
        shown, kinds = texts(f"| a | b |\n|---|---|\n| {escaped} | after |\n")
        assert shown == ["a", "b", wanted, "after"]
        assert kinds <= PLAIN | TABLE
        if wanted:
            shown, kinds = texts(f"- {escaped}\n")
            assert shown == [wanted]
            assert kinds <= IN_LIST


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


def rendered(markdown: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))


@given(st.text(alphabet=st.sampled_from(list("ab1 .-+=#>|\\`*_~[](){}<!&;:/@$^\n\t\u00e9")), max_size=30))
def test_any_text_shows_as_it_is_in_a_title_and_as_code(text: str) -> None:
    text = text.replace("##[", "# #[")  # a command of a CI log is broken everywhere
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


@pytest.mark.parametrize("text", ["09:30 UTC", "src/app.py:14-22", "issue # 1", "Fisher's test: p = 0.012, -3, ±1.2"])
def test_what_is_harmless_stays_as_it_is(text: str) -> None:
    assert escape_markdown(text) == text


def test_only_a_plain_web_address_can_be_linked() -> None:
    for url in ("https://github.com/acme/shop/actions/runs/1", "http://ghes.example:8443/o/r"):
        assert address(url) == url
    for other in (
        "javascript:alert(1)",
        "https://x.example/)",
        "https://x y",
        "//x",
        "",
        "https://x/\n",
        "https://u@h",
    ):
        assert address(other) is None, other


COMMIT = "0123456789abcdef" * 2 + "01234567"
HOSTILE = "<img src=x> @octo/team #1 [x](https://evil.example) `code` | <!-- zelda --> \u202e https://evil.example"


ANSWERS = {name: it for name, it in vars(environment().get_template("reply.md.j2").module).items() if name[0] != "_"}


def filled(answer: str, text: str) -> str:
    """An answer with what comes from outside in the place of each value."""
    known = {"commit": COMMIT, "number": None, "suites": [text, text], "criteria": [text, text]}
    return render_reply(answer, url=text, **{name: known.get(name, text) for name in ANSWERS[answer].arguments})


def test_every_answer_is_given_with_what_it_tells_of() -> None:
    given: dict[str, set[str]] = {}
    for call in ast.walk(ast.parse(Path(conversation.__file__).read_text("utf-8"))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "render_reply":
            words = {word.arg for word in call.keywords if word.arg and word.arg != "url"}
            given.setdefault(ast.literal_eval(call.args[0]), set()).update(words)
    assert given.keys() == ANSWERS.keys()
    given["accepted"] = {*ANSWERS["accepted"].arguments}  # they come in a dictionary
    assert given == {name: {*macro.arguments} for name, macro in ANSWERS.items()}


def test_help_shows_every_command_as_it_is_to_be_written() -> None:
    shown = render_reply("help")
    commands = re.findall(r"^- `(/zelda [^`]+)`: ", shown, re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        read = parse_command(command.replace("SUITE", "greeting").replace("…", "").replace("COMMIT", COMMIT))
        assert not getattr(read, "problem", ""), command
    assert "Nothing was done" not in shown
    assert render_reply("help", problem="What?").startswith("What?\n\nNothing was done.\n\n")


def test_a_command_to_copy_has_every_character_of_the_commit_and_no_other() -> None:
    page = f"https://github.com/octo/shop/pull/7/files/{COMMIT}"
    for moved in (True, False):
        shown = render_reply("which_commit", commit=COMMIT, page=page, moved=moved)
        assert f"`/zelda run {COMMIT}`" in shown
        assert f"[Changes up to this commit]({page})" in shown


def test_an_acceptance_names_who_why_and_every_criterion() -> None:
    told = {"suite": "greeting", "criteria": ["It greets.", "It is kind."], "by": "dev", "reason": "it moved"}
    assert render_reply("accepted", **told, runs_again=True, url="https://x.example/1") == (
        "dev accepts this of the suite greeting, because it moved\n\n- It greets.\n- It is kind.\n\n"
        "It holds for this pull request, after further pushes, too, as long as the criterion has the same text.\n\n"
        "To take it back, delete or edit the comment that asks for it, or hide this one.\n\n"
        "The jobs that failed run again, so that the check can turn green.\n\n[The run](https://x.example/1)\n"
    )


@settings(max_examples=30)
@given(st.text(max_size=100))
@example(HOSTILE)
@example("https://x.example/1")
def test_no_words_do_anything(text: str) -> None:
    for answer in ANSWERS:
        seen = page(filled(answer, text))
        assert {tag for tag, _ in seen.tags} <= {"p", "ul", "li", "code", "a"}
        assert all(str(attributes.get("href")).startswith("https://") for tag, attributes in seen.tags if tag == "a")
        assert not [shown for shown in seen.texts if ACTS.search(shown)]


def test_a_permission_that_lacks_is_named() -> None:
    said = render_reply("cannot_run_again", why="Resource not accessible", url="", is_permitted=False)
    assert "`permissions: actions: write`" in said
    assert "Only criteria can be accepted" in render_reply("nothing_fails", suite="greeting", number=None)
