"""Templates of the HTML report: everything that they print is escaped, and only our own style and script run."""

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from zelda_ci.domain.numbers import duration, format_count, whole
from zelda_ci.report.builders.run import criteria_title, criterion_verdict, run_facts
from zelda_ci.report.builders.transcript import aside
from zelda_ci.report.html.conversation import call_status, merged, seconds, spans, target, time_line
from zelda_ci.report.text import clock, inert, sentence, visible


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
    # Without indentation, which is for those who read templates: a tenth of a large page.
    files = resources.files("zelda_ci.report.html").joinpath("templates").iterdir()
    sources = {it.name: "\n".join(line.strip() for line in it.read_text("utf-8").splitlines()) for it in files}
    made = Environment(
        loader=DictLoader(sources),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        auto_reload=False,
        finalize=_harmless,
    )
    filters = (clock, duration, format_count, merged, run_facts, seconds, sentence, spans, time_line, visible, whole)
    made.filters |= {each.__name__: each for each in (criteria_title, criterion_verdict, *filters)}
    made.globals |= {"aside": aside, "call_status": call_status, "target": target}
    # The policy lets nothing load, and nothing run but what is hashed here.
    for name, file in (("style", "page.css"), ("script", "page.js")):
        digest = base64.b64encode(hashlib.sha256(asset(file).encode()).digest()).decode()
        made.globals |= {name: asset(file), f"{name}_hash": f"sha256-{digest}"}
    return made


def asset(name: str) -> str:
    """The style sheet or the script, as it stands in the page."""
    return resources.files("zelda_ci.report.html").joinpath("assets", name).read_text("utf-8")
