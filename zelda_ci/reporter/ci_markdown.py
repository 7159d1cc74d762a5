"""The comment on a pull request and the summary of a job, as GitHub's Markdown within GitHub's limits."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from zelda_ci.reporter.markdown import Filters, render
from zelda_ci.reporter.view.ci import CiView
from zelda_ci.reporter.view.ci.extent import STEPS, least_size, reduced
from zelda_ci.reporter.view.ci.nouns import Link
from zelda_ci.reporter.view.gfm import address, code, gfm, html
from zelda_ci.reporter.view.nouns import Cell, Tone

COMMENT_LIMIT = 60_000
"""GitHub takes 65,536; the marker lines come on top."""

SUMMARY_LIMIT = 1_000_000
"""GitHub takes 1,048,576 bytes, and none at all of a summary that is longer."""


@dataclass(frozen=True)
class Finished:
    """Markdown that is escaped already; being no text, it passes the templates as it is."""

    text: str

    def __str__(self) -> str:
        """What is printed."""
        return self.text


def render_comment(view: CiView, *, limit: int = COMMENT_LIMIT) -> str:
    """The comment, in at most `limit` UTF-16 units: what GitHub counts."""
    return _within(limit, view, "in the summary of the workflow run and in its artifact")


def render_summary(view: CiView, *, limit: int = SUMMARY_LIMIT) -> str:
    """The summary, in at most `limit` bytes of UTF-8."""
    return _within(limit, view.with_evidence(), "in the artifact of the workflow run", encoding="utf-8")


def render_fork_notice() -> str:
    """What a pull request of a fork is told when there is no key to run with."""
    return render("fork_notice.md.j2")


def size(text: str, encoding: str = "utf-16-le") -> int:
    """UTF-16 units, or bytes of another encoding."""
    length = len(text.encode(encoding))
    return length // 2 if encoding == "utf-16-le" else length


def _within(limit: int, view: CiView, elsewhere: str, encoding: str = "utf-16-le") -> str:
    """The first rendering that fits; each is whole, so that nothing is ever cut inside of markup."""
    text = ""
    for step in STEPS:
        smaller = reduced(view, step)
        if step is not STEPS[0] and replace(smaller, left_out="") == view:
            continue  # nothing of what this step leaves out was there
        if step is not STEPS[-1] and least_size(smaller) > limit:
            continue
        text = render("ci.md.j2", FILTERS, view=smaller, elsewhere=elsewhere)
        if size(text, encoding) <= limit:
            break
    return text


def _shown(cells: Iterable[Cell], between: str = ", ") -> Finished:
    """Cells side by side; names that are to be copied as code."""
    return Finished(between.join(text for cell in cells if (text := _cell(cell))))


def _bold(cell: Cell) -> Finished:
    """A cell of a table, bold where it is bad news."""
    text = _cell(cell)
    return Finished(f"**{text}**" if text and cell.tone is Tone.BAD else text)


def _html(text: str) -> Finished:
    return Finished(html(text))


def _linked(links: Iterable[Link]) -> Finished:
    return Finished(", ".join(map(_link, links)))


def _link(link: Link) -> str:
    url = address(link.url or "")
    return f"[{gfm(link.text)}]({url})" if url else gfm(link.text)


def _cell(cell: Cell) -> str:
    return code(cell.text) if cell.whole else gfm(cell.text)


FILTERS: Filters = {"shown": _shown, "bold": _bold, "html": _html, "linked": _linked}
