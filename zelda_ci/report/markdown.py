"""Reports as GitHub's Markdown."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from zelda_ci.report.builders.replies import Reply
from zelda_ci.report.model import Cell, CiView, ComparisonView, DriftView, Line, Link, Phrase, Tone
from zelda_ci.report.text import address, code, escape_markdown, html, plain_title, sentence

Filters = Mapping[str, Callable[..., Any]]

_PLAIN_COMMAND = re.compile(r"/zelda[A-Za-z0-9#._… -]*")


def render_comparison(view: ComparisonView) -> str:
    """The comparison as Markdown that ends with a line break."""
    return render("comparison.md.j2", FILTERS, view=view)


def render(template: str, filters: Filters | None = None, **values: Any) -> str:
    """A template of this package; what its filters give back as text is escaped as well."""
    environment = _environment()
    environment.filters |= filters or {}
    return environment.get_template(template).render(**values)


@cache
def _environment() -> Environment:
    # Every value that a template prints is escaped, without being asked: forgetting it would open a door.
    return Environment(
        loader=PackageLoader("zelda_ci.report"),
        finalize=_finished,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - that is for HTML; `finalize` escapes for Markdown
    )


def _finished(value: Any) -> Any:
    """Macros give what has been escaped already, and what is no text is none of a template's business."""
    return escape_markdown(value) if isinstance(value, str) else value


# GitHub takes 65,536; the marker lines come on top.
COMMENT_LIMIT = 60_000

# GitHub takes 256.
TITLE_LIMIT = 200


@dataclass(frozen=True)
class SafeMarkdown:
    """Markdown that is escaped already; being no text, it passes the templates as it is."""

    text: str

    def __str__(self) -> str:
        return self.text


def render_comment(view: CiView, *, limit: int = COMMENT_LIMIT) -> str:
    """The comment, which is the job's summary as well, in at most `limit` UTF-16 units: what GitHub counts."""
    # Everything but the folds is short, however many suites there are.
    shown = len(view.details)
    while size(text := _comment(view, shown)) > limit and shown:
        shown -= 1
    return text


def _comment(view: CiView, shown: int) -> str:
    """With so many of its folds."""
    left_out = [fold.title for fold in view.details[shown:]]
    return render("ci.md.j2", FILTERS, view=view, details=view.details[:shown], left_out=left_out)


def render_drifts(view: DriftView) -> str:
    """The body of the issue about drift, in at most as many UTF-16 units as a comment may have."""
    shown = len(view.sections)
    while size(text := render("drift.md.j2", FILTERS, view=view, shown=shown)) > COMMENT_LIMIT and shown:
        shown //= 2
    return text


def render_title(text: str) -> str:
    """The title of an issue: GitHub shows it as it is, apart from code between backticks."""
    return plain_title(text, TITLE_LIMIT)


def render_fork_notice() -> str:
    """What a pull request of a fork is told when there is no key to run with."""
    return render("fork_notice.md.j2")


def render_not_loaded(sentences: Iterable[str]) -> str:
    """What is refused, which no session is needed for; empty where everything is loaded."""
    lines = "".join(f"- {escape_markdown(sentence(each))}.\n" for each in sentences)
    return f"### Zelda: a settings file or plugin is not loaded\n\n{lines}\n" if lines else ""


def render_nothing_to_run(notes: Iterable[str], label: str) -> str:
    """What a pull request is told that no suite can feel."""
    lines = "\n".join(f"- {escape_markdown(sentence(note))}" for note in notes)
    hint = f"The label `{label}` makes all suites run.\n" if label and label.isprintable() and "`" not in label else ""
    return f"### Zelda: nothing here can change a result\n\nNo session ran.\n\n{lines}\n\n{hint}"


def render_reply(reply: Reply) -> str:
    """What a comment is answered with."""
    return render("reply.md.j2", {**FILTERS, "line": sentence, "copied": _copied}, reply=reply)


def size(text: str) -> int:
    """UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def _shown(cells: Iterable[Cell], between: str = ", ") -> SafeMarkdown:
    """Cells side by side; names that are to be copied as code."""
    return SafeMarkdown(between.join(text for cell in cells if (text := _cell(cell))))


def _bold(cell: Cell) -> SafeMarkdown:
    """A cell of a table, bold where it is bad news."""
    text = _cell(cell)
    return SafeMarkdown(_strong(text) if text and cell.tone is Tone.BAD else text)


def _line(line: Line) -> SafeMarkdown:
    return SafeMarkdown("".join(map(_phrase, line)).strip())


def _phrase(phrase: Phrase) -> str:
    """A piece of a line; blanks at its ends are kept."""
    shown = _cell(phrase)
    if not shown:
        return " " * bool(phrase.text)
    before, after = (" " * edge.isspace() for edge in (phrase.text[0], phrase.text[-1]))
    return f"{before}{_strong(shown) if phrase.bold else shown}{after}"


def _strong(markdown: str) -> str:
    # Stars beside punctuation may be no markup, and stay stars.
    is_plain = markdown[0].isalnum() and markdown[-1].isalnum()
    return f"**{markdown}**" if is_plain else f"<strong>{markdown}</strong>"


def _html(text: str) -> SafeMarkdown:
    return SafeMarkdown(html(text))


def _linked(links: Iterable[Link]) -> SafeMarkdown:
    return SafeMarkdown(", ".join(map(_link, links)))


def _link(link: Link) -> str:
    url = address(link.url or "")
    return f"[{escape_markdown(link.text)}]({url})" if url else escape_markdown(link.text)


def _copied(command: str) -> SafeMarkdown:
    """A command as code, every character of it: whoever copies it must get no other one."""
    return SafeMarkdown(f"`{command}`" if _PLAIN_COMMAND.fullmatch(command) else escape_markdown(sentence(command)))


def _cell(cell: Cell | Phrase) -> str:
    inside = code(cell.text) if cell.whole else escape_markdown(cell.text)
    url = address(cell.url or "") if inside else ""
    return f"[{inside}]({url})" if url else inside


FILTERS: Filters = {"line": _line, "shown": _shown, "bold": _bold, "html": _html, "linked": _linked}
