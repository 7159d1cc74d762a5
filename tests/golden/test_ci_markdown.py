"""Comments and summaries against expected files, which people have looked at in a browser.

After a wanted change: `UPDATE_GOLDEN=1 pytest tests/golden`, then read the difference in `tests/golden/expected_ci/`,
and look at it with `scripts/images NAME OUTPUT.png`.
"""

import re
import unicodedata
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.golden.ci_reports import LINKS, REPORTS, report, trial, written_by
from tests.golden.test_reports import expect_file
from tests.support.github_html import ACTS, MARKDOWN, page, widths
from zelda_ci.judge.characters import ACTING
from zelda_ci.report.comment.view import ci_view
from zelda_ci.report.markdown import COMMENT_LIMIT, render, render_comment, size
from zelda_ci.report.model import CiView, plain

EXPECTED = Path(__file__).parent / "expected_ci"

OURS = {"h3", "p", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "ul", "ol", "li"}
OURS |= {"strong", "code", "pre", "sub", "a", "blockquote", "br"}
TARGETS = {LINKS.run, LINKS.artifact, LINKS.transcripts, LINKS.commit}
# Files of the tested commit, and what somebody has said.
FILES = (f"{LINKS.files}/", "https://github.com/acme/shop/pull/7#issuecomment-")
COMMENTS = sorted({*REPORTS} - {"crowd"})

every_report = pytest.mark.parametrize("name", sorted(REPORTS))


@cache
def view(name: str) -> CiView:
    return ci_view(REPORTS[name]())


@cache
def comment(name: str) -> str:
    return render_comment(view(name))


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
    expect_file(EXPECTED / f"{name}-comment.md", comment(name))


MARKS = r"""| \ ` ``` < > & &#124; * _ [x](http://y) ![ ]( @octocat #1 </details> </summary> <!-- --> $x$ :smile:
www.a.b https://a.b ::error:: ##[error] a 1. ~~ abcdef0 |-|"""
PIECES = [*MARKS.split(), "\n", "\n\n", "\r", "\x1b[31m", "\u202e", "\u200b", "\ufeff", "\u2028", " ", "- ", "# "]
ANYTHING = st.text(st.characters(codec=None, categories=None), max_size=60)


@settings(max_examples=8)
@given(st.one_of(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), ANYTHING))
@example("")
@example("\ud800")
@example(":smile")
@example("<" * 3000)
def test_no_text_gets_out_of_its_place(text: str) -> None:
    told = ci_view(written_by(text))
    # Of an attacker's addresses none is a link; a path of the tested commit is one, and stays in it.
    check(render_comment(told), frozenset({None}))
    assert size(render_comment(told, limit=0)) < COMMENT_LIMIT


@every_report
def test_a_comment_is_made_of_our_markup_alone(name: str) -> None:
    check(comment(name), frozenset(TARGETS))
    check(render_comment(view(name), limit=0), frozenset(TARGETS))


def test_folds_are_left_out_whole_the_least_important_first_and_are_named() -> None:
    told = view("crowd")
    sizes: list[int] = []
    for shown in range(len(told.details) + 1):
        limit = size(render_comment(told, limit=sizes[-1])) if sizes else size(comment("crowd"))
        text = render_comment(told, limit=limit)
        assert [f"<summary>{fold.title}" in text for fold in told.details] == [
            place < len(told.details) - shown for place in range(len(told.details))
        ]
        assert all(fold.title in text for fold in told.details)
        assert text.startswith("### Zelda: worse over all 60 suites together, perhaps worse in 60\n")
        check(text, frozenset(TARGETS))
        sizes.append(size(text) - 1)
    assert sizes[-1] < 6_000


def test_the_lead_has_at_most_three_sentences_however_many_suites_change_their_criteria() -> None:
    names = [f"suite-{number:03}" for number in range(500)]
    told = ci_view(
        report(
            [trial(name, "PP", criteria=("It works", "It is tested")) for name in names],
            [trial(name, "FP", criteria=("It works", "It is documented"), minute=90) for name in names],
        )
    )
    (lead,) = told.lead
    assert plain(lead).count(". ") <= 2
    assert len(plain(lead)) < 600
    assert size(render_comment(told)) <= COMMENT_LIMIT


def test_length_is_counted_as_github_does() -> None:
    assert size("a\u00e4\U00010348") == 4


def test_forks_are_told_what_to_do() -> None:
    text = render("fork_notice.md.j2")
    check(text, frozenset({"https://github.com/zelda-ci/zelda-ci/blob/main/docs/action.md#pull-requests-from-forks"}))
    assert "workflow_run" in text
    assert "mode: comment" in text
    assert "Dependabot secret" in text


def test_every_expected_file_is_compared() -> None:
    names = {f"{name}-comment" for name in COMMENTS}
    assert {file.stem for file in EXPECTED.iterdir()} == names
