"""Comments and summaries against expected files, which people have looked at in a browser.

After a wanted change: `UPDATE_GOLDEN=1 pytest tests/golden`, then read the difference in `tests/golden/expected_ci/`,
and look at it with `scripts/comment_image NAME OUTPUT.png`.
"""

import os
import re
import unicodedata
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.golden.ci_reports import LINKS, REPORTS, written_by
from tests.support.cases import for_each
from tests.support.github_html import ACTS, MARKDOWN, page, widths
from zelda_ci.domain.characters import ACTING
from zelda_ci.report.builders.ci import STEPS, ci_view, reduced
from zelda_ci.report.markdown import render_comment, render_fork_notice, render_summary, size
from zelda_ci.report.model import CiView

EXPECTED = Path(__file__).parent / "expected_ci"
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))

OURS = {"h3", "p", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "ul", "ol", "li"}
OURS |= {"strong", "code", "pre", "sub", "a", "blockquote", "br"}
TARGETS = {LINKS.run, LINKS.artifact, LINKS.transcripts, LINKS.commit}
# Files of the tested commit, and what somebody has said.
FILES = (f"{LINKS.files}/", "https://github.com/acme/shop/pull/7#issuecomment-")
COMMENTS = sorted({*REPORTS} - {"crowd"})
SUMMARIES = ("failed", "hostile", "regression")
"""Those that somebody looks at; what holds for every page is checked of the others, too."""

every_report = pytest.mark.parametrize("name", sorted(REPORTS))


@cache
def view(name: str) -> CiView:
    return ci_view(REPORTS[name]())


@cache
def comment(name: str) -> str:
    return render_comment(view(name))


@cache
def summary(name: str) -> str:
    return render_summary(view(name))


def expect(name: str, text: str) -> None:
    file = EXPECTED / f"{name}.md"
    if UPDATE:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


def check(markdown: str, targets: frozenset[str | None] = frozenset()) -> None:
    """What holds for every page, whoever wrote the texts in it."""
    shown = page(markdown)
    assert {tag for tag, _ in shown.tags} <= OURS
    attributes = {(tag, key) for tag, found in shown.tags for key in found}
    assert attributes <= {("a", "href"), ("details", "open"), ("th", "style"), ("td", "style")}
    links = {found["href"] or "" for tag, found in shown.tags if tag == "a"}
    assert {link for link in links if not (targets and link.startswith(FILES))} <= targets
    assert not [link for link in links if ".." in link.split("/")]
    assert shown.unbalanced == []
    assert [found[0] for text in shown.texts if (found := ACTS.search(text))] == []
    assert (
        markdown.count("<details")
        == markdown.count("</details>")
        == len([tag for tag, _ in shown.tags if tag == "details"])
    )
    assert [found for found in widths(markdown) if len(found) != 1] == []
    assert not re.search(r"(?<!\\)\$", without_code(markdown))  # else a formula
    assert not [char for char in {*markdown} - {"\n"} if unicodedata.category(char) in ACTING]


def without_code(markdown: str) -> str:
    """In code nothing acts, and nothing is escaped."""
    spans = {
        child.content for token in MARKDOWN.parse(markdown) for child in token.children or () if child.tag == "code"
    }
    for span in sorted(spans, key=len, reverse=True):
        markdown = markdown.replace(f"`{span}", "`").replace(f"` {span}", "`") if span else markdown
    return markdown


@pytest.mark.parametrize("name", COMMENTS)
def test_a_comment_looks_as_it_should(name: str) -> None:
    expect(f"{name}-comment", comment(name))


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_summary_looks_as_it_should(name: str) -> None:
    expect(f"{name}-summary", summary(name))


@every_report
def test_the_first_line_is_the_verdict(name: str) -> None:
    first = comment(name).splitlines()[0]
    assert first.startswith("### ")
    assert first == summary(name).splitlines()[0]
    shown = "".join(page(first).shown)
    # What stands between backticks is shown as code.
    assert " ".join(shown.replace("`", "").split()) == " ".join(view(name).sentence.replace("`", "").split())


MARKS = r"""| \ ` ``` < > & &#124; * _ [x](http://y) ![ ]( @octocat #1 </details> </summary> <!-- --> $x$ :smile:
www.a.b https://a.b ::error:: ##[error] a 1. ~~ abcdef0 |-|"""
PIECES = [*MARKS.split(), "\n", "\n\n", "\r", "\x1b[31m", "\u202e", "\u200b", "\ufeff", "\u2028", " ", "- ", "# "]
ANYTHING = st.text(st.characters(codec=None, categories=None), max_size=60)


@settings(max_examples=8)
@given(st.one_of(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), ANYTHING))
@example("")
@example("\ud800")
@example("<" * 3000)
def test_no_text_gets_out_of_its_place(text: str) -> None:
    told = ci_view(written_by(text))
    # Of an attacker's addresses none is a link; a path of the tested commit is one, and stays in it.
    check(render_comment(told), frozenset({None}))
    check(render_summary(told), frozenset({None}))


@cache
def check_once(markdown: str) -> None:
    """Many a step leaves out what a report does not have, and gives the same page again."""
    check(markdown, frozenset(TARGETS))


@pytest.mark.parametrize("name", COMMENTS)
def test_comment_summary_and_every_step_of_shortening_are_made_of_our_markup_alone(name: str) -> None:
    check_once(comment(name))
    check_once(summary(name))

    def check_step(step: int) -> None:
        smaller = reduced(view(name).with_evidence(), STEPS[step])
        # A limit that the first step keeps: what is rendered is the reduced view itself.
        check_once(render_comment(replace(smaller, left_out=""), limit=10**9))

    for_each(range(len(STEPS)))(check_step)()


@pytest.mark.parametrize("limit", [30_000, 9_000, 1_500])
def test_a_crowd_finds_room_in_any_limit_and_is_told_what_is_missing(limit: int) -> None:
    text = render_comment(view("crowd"), limit=limit)
    assert size(text) <= limit
    assert "Shortened: " in text
    assert "in the summary of the workflow run and in its artifact" in text
    assert text.startswith("### Zelda: worse over all 60 suites together, perhaps worse in 60\n")
    check(text, frozenset(TARGETS))


@pytest.mark.parametrize("limit", [100_000, 10_000])
def test_a_summary_keeps_to_bytes(limit: int) -> None:
    text = render_summary(view("crowd"), limit=limit)
    assert len(text.encode()) <= limit
    assert "worse over all 60 suites together" in text


def test_shortening_begins_with_what_matters_least() -> None:
    full = size(comment("regression"))
    shorter = render_comment(view("regression"), limit=full - 1)
    assert "what is as it was before" not in shorter
    assert "Why the check is red" in shorter
    causes = render_comment(view("regression"), limit=size(render_comment(reduced(view("regression"), STEPS[7]))) + 150)
    assert "<details" not in causes
    assert "“GET /orders/{id} answers 404" in causes
    least = render_comment(view("regression"), limit=0)
    assert "rest-endpoint" not in least
    assert least.startswith("### Zelda: worse in 1 of 2 suites\n")


def test_the_suites_that_matter_most_stay_longest() -> None:
    text = render_comment(view("crowd"), limit=9_000)
    assert "suite-000" in text
    assert "suite-055" not in text
    assert "more suites" in text


def test_length_is_counted_as_github_does() -> None:
    assert size("a\u00e4\U00010348") == 4
    assert size("a\u00e4\U00010348", "utf-8") == 7


def test_forks_are_told_what_to_do() -> None:
    text = render_fork_notice()
    check(text, frozenset({"https://github.com/zelda-ci/zelda-ci/blob/main/docs/action.md#pull-requests-from-forks"}))
    assert "workflow_run" in text
    assert "mode: comment" in text


def test_every_expected_file_is_compared() -> None:
    names = {f"{name}-comment" for name in COMMENTS} | {f"{name}-summary" for name in SUMMARIES}
    assert {file.stem for file in EXPECTED.iterdir()} == names
