"""Templates of the HTML report: everything that they print is escaped, and only our own style and script run."""

import base64
import gzip
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from zelda_ci.report.model import Cell
from zelda_ci.report.page_model import EntryView

# Of finished HTML; the page unpacks a piece at a time, so that a long session is seen before all of it is there.
PIECE_LENGTH = 300_000


@cache
def environment() -> Environment:
    """The templates of this package, escaping whatever they are given."""
    made = Environment(
        loader=PackageLoader("zelda_ci.report.html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
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
    return render("head.html.j2", title=title, policy=policy, style=Markup(style))  # noqa: S704 - our own file


def foot() -> str:
    """What closes the page, with the script."""
    return render("foot.html.j2", script=Markup(asset("page.js")))  # noqa: S704 - our own file


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def plain_conversation(entries: Iterable[EntryView]) -> Iterator[str]:
    """Entry by entry, for readers with and without scripts."""
    macros = environment().get_template("entry.html.j2").module
    for entry in entries:
        yield str(macros.whole(entry))  # type: ignore[attr-defined] - a macro of the template


def packed_conversation(entries: Iterable[EntryView], anchor: str) -> Iterator[str]:
    """An outline for readers without scripts, and the whole in packed pieces for the others."""
    macros = environment().get_template("entry.html.j2").module
    pieces: list[str] = []
    gathered: list[str] = []
    yield f'<ol class="outline" id="{anchor}-outline">'
    for entry in entries:
        yield str(macros.outline(entry))  # type: ignore[attr-defined] - as above
        gathered.append(str(macros.whole(entry)))  # type: ignore[attr-defined] - as above
        if sum(map(len, gathered)) > PIECE_LENGTH:
            pieces.append(_packed(gathered))
            gathered = []
    yield "</ol>\n"
    for piece in (*pieces, *([_packed(gathered)] if gathered else [])):
        yield f'<script type="application/gzip" data-of="{anchor}">{piece}</script>\n'


def _packed(parts: Iterable[str]) -> str:
    """Compressed, in letters that mean nothing to HTML; the same text is packed the same each time."""
    data = gzip.compress("".join(parts).encode("utf-8", "backslashreplace"), mtime=0)
    return base64.b64encode(data).decode()
