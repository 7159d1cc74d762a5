"""Reports as GitHub's Markdown."""

from collections import UserString
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from zelda_ci.report.model import Cell, CiView, Tone
from zelda_ci.report.text import address, code, escape_markdown, html, sentence

# GitHub takes 65,536; the marker lines come on top.
COMMENT_LIMIT = 60_000


class SafeMarkdown(UserString):
    """Markdown that is escaped already; being no text, it passes the templates as it is."""


def render(template: str, **values: Any) -> str:
    """A template of this package; what its filters give back as text is escaped as well."""
    return environment().get_template(template).render(**values)


@cache
def environment() -> Environment:
    """The templates, in which every value that is printed is escaped, without being asked."""
    made = Environment(
        loader=PackageLoader("zelda_ci.report"),
        # What is no text is none of a template's business.
        finalize=lambda value: escape_markdown(value) if isinstance(value, str) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - that is for HTML; `finalize` escapes for Markdown
    )
    made.filters |= {
        "line": _line,
        "cell": lambda cell: SafeMarkdown(_cell(cell, bold=cell.tone is Tone.BAD)),
        "shown": lambda cells, between=", ": SafeMarkdown(between.join(filter(None, map(_cell, cells)))),
        "html": lambda text: SafeMarkdown(html(text)),
        "link": lambda url, text: SafeMarkdown(_cell(Cell(text, url=url)) if url else ""),
        "code": lambda text: SafeMarkdown(code(text)),
        "sentence": sentence,
    }
    return made


def render_comment(view: CiView, *, limit: int = COMMENT_LIMIT) -> str:
    """The comment, which is the job's summary as well, in at most `limit` UTF-16 units: what GitHub counts."""
    # Everything but the folds is short, however many suites there are.
    shown = len(view.details)
    while size(text := render("ci.md.j2", view=view, shown=shown)) > limit and shown:
        shown -= 1
    return text


def render_drifts(issue: Mapping[str, Any]) -> str:
    """The body of the issue about drift, in at most as many UTF-16 units as a comment may have."""
    shown = len(issue["drifts"])
    while size(text := render("drift.md.j2", **issue, shown=shown)) > COMMENT_LIMIT and shown:
        shown //= 2
    return text


def render_refused(title: str, sentences: Iterable[str]) -> str:
    """What turns the check red without any session; empty where nothing does."""
    lines = "".join(f"- {escape_markdown(each)}.\n" for each in sentences)
    return f"### Zelda: {title}\n\n{lines}\n" if lines else ""


def render_nothing_to_run(notes: Iterable[str], label: str) -> str:
    """What a pull request is told that no suite can feel."""
    lines = "\n".join(f"- {escape_markdown(note)}" for note in notes)
    hint = f"The label `{label}` makes all suites run.\n" if label and label.isprintable() and "`" not in label else ""
    return f"### Zelda: nothing here can change a result\n\nNo session ran.\n\n{lines}\n\n{hint}"


def render_reply(answer: str, *, url: str = "", **values: Any) -> str:
    """What a comment is answered with: a macro of `reply.md.j2` with what it tells of, and the run's address."""
    macro = getattr(environment().get_template("reply.md.j2").module, answer)
    link = _cell(Cell("The run", url=url)) if url else ""
    return f"{macro(**values).strip()}\n" + (f"\n{link}\n" if link else "")


def size(text: str) -> int:
    """UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def _line(pieces: Iterable[Cell]) -> SafeMarkdown:
    """Pieces of a sentence; blanks at their ends are kept."""
    shown = ""
    for piece in pieces:
        before, after = (" " * edge.isspace() for edge in (piece.text[:1], piece.text[-1:]))
        shown += f"{before}{_cell(piece)}{after}" if piece.text.strip() else before
    return SafeMarkdown(shown.strip())


def _cell(cell: Cell, *, bold: bool = False) -> str:
    """Names that are to be copied as code."""
    inside = code(cell.text) if cell.whole else escape_markdown(cell.text)
    url = address(cell.url or "") if inside else ""
    shown = f"[{inside}]({url})" if url else inside
    if not shown or not (bold or cell.bold):
        return shown
    # Stars beside punctuation may be no markup, and stay stars.
    return f"**{shown}**" if shown[0].isalnum() and shown[-1].isalnum() else f"<strong>{shown}</strong>"
