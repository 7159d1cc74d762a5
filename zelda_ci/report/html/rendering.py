"""Templates of the HTML report: everything that they print is escaped, and only our own style and script run."""

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup

from zelda_ci.report.text import inert, sentence


class Unindented(Extension):
    """Leaves out the indentation of templates, which is for those who read them: a tenth of a large page."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """The source of a template without it."""
        return "\n".join(line.strip() for line in source.splitlines())


def _harmless(value: Any) -> Any:
    """What a template prints: a text in which nothing acts, a number, or what a macro has made."""
    if isinstance(value, str):
        return value if isinstance(value, Markup) else inert(value)
    if isinstance(value, int | float):
        return value
    raise TypeError(f"A template prints a {type(value).__name__}.")


@cache
def environment() -> Environment:
    """The templates of this package, escaping whatever they are given."""
    made = Environment(
        loader=PackageLoader("zelda_ci.report.html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        auto_reload=False,
        finalize=_harmless,
        extensions=[Unindented],
    )
    made.filters["sentence"] = sentence
    return made


def render(template: str, **values: object) -> str:
    """A whole template."""
    return environment().get_template(template).render(**values)


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


def entry(view: object) -> str:
    """A step of a conversation."""
    return str(environment().get_template("entry.html.j2").module.whole(view))  # type: ignore[attr-defined]
