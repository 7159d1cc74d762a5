"""Templates of the HTML report: everything that they print is escaped, and only our own style and script run."""

import base64
import gzip
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension

from zelda_ci.report.model import Cell
from zelda_ci.report.page_model import EntryView, SessionPage

# Of finished HTML; the page unpacks a piece at a time, so that a long session is seen before all of it is there.
PIECE_LENGTH = 300_000

# Of a session whose transcript is not shown.
NOTHING: Final[tuple[EntryView, ...]] = ()

# What is cited of a session and was not found, once everything has been written.
Anchors = Callable[[], tuple[str, ...]]


class Unindented(Extension):
    """Leaves out the indentation of templates, which is for those who read them: a tenth of a large page."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """The source of a template without it."""
        return "\n".join(line.strip() for line in source.splitlines())


@cache
def environment() -> Environment:
    """The templates of this package, escaping whatever they are given."""
    made = Environment(
        loader=PackageLoader("zelda_ci.report.html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        extensions=[Unindented],
    )
    made.filters["listed"] = listed
    return made


def render(template: str, **values: object) -> str:
    """A whole template."""
    return environment().get_template(template).render(**values)


def listed(cells: Iterable[Cell]) -> str:
    """Cells as text, where colour is of no use."""
    return ", ".join(cell.text for cell in cells)


def asset(name: str) -> str:
    """The style sheet or the script, as it stands in the page."""
    return resources.files("zelda_ci.report.html").joinpath("assets", name).read_text("utf-8")


def head(title: str) -> str:
    """Up to the first page. The policy lets nothing load, and nothing run but what is hashed here."""
    style, script = asset("page.css"), asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return render("head.html.j2", title=title, policy=policy, style=style)


def foot() -> str:
    """What closes the page, with the script."""
    return render("foot.html.j2", script=asset("page.js"))


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def plain_session(page: SessionPage, entries: Iterable[EntryView], anchors: Anchors) -> Iterator[str]:
    """What stands below a session's heading, part by part, for readers with and without scripts."""
    rest = _macros("session_rest.html.j2")
    yield rest.before(page, entries is not NOTHING)
    yield from map(_macros("entry.html.j2").whole, entries)
    # Whoever follows a citation whose place is not shown arrives at the end of what is.
    yield rest.after(page, anchors())


def packed_session(page: SessionPage, entries: Iterable[EntryView], anchors: Anchors) -> Iterator[str]:
    """An outline for readers without scripts, and the same as `plain_session` in packed pieces for the others."""
    rest, entry_macros = _macros("session_rest.html.j2"), _macros("entry.html.j2")
    pieces, gathered = [], Gathered([rest.before(page, has_conversation=True)])
    yield rest.outline_begin(page)
    for entry in entries:
        yield entry_macros.outline(entry)
        gathered.add(entry_macros.whole(entry))
        if gathered.length > PIECE_LENGTH:
            pieces.append(gathered.packed())
    left = anchors()
    gathered.add(rest.after(page, left))
    in_patch = tuple(span.anchor for file in page.patch for span in file.spans if span.anchor)
    yield rest.outline_end(page, (*in_patch, *left))
    yield from map(_block, (*pieces, gathered.packed()))


def packed_part(anchor: str, note: str, part: str) -> Iterator[str]:
    """A part of a page that is only shown where scripts run, and what the others read in its place."""
    yield render("packed.html.j2", anchor=anchor, note=note)
    yield _block(Gathered([part]).packed())


def _block(piece: str) -> str:
    """Data, which no browser runs: of which page it is a part is where it stands."""
    return f'<script type="application/gzip">{piece}</script>\n'


@dataclass
class Gathered:
    """Finished HTML that becomes one piece."""

    parts: list[str]

    @property
    def length(self) -> int:
        return sum(map(len, self.parts))

    def add(self, part: str) -> None:
        self.parts.append(part)

    def packed(self) -> str:
        """Compressed, in letters that mean nothing to HTML, and always the same; then the next piece begins."""
        data = gzip.compress("".join(self.parts).encode("utf-8", "backslashreplace"), mtime=0)
        self.parts = []
        return base64.b64encode(data).decode()


def _macros(template: str) -> Any:
    """The macros of a template, which give back what is escaped already."""
    return environment().get_template(template).module
