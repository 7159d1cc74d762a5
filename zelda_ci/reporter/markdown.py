"""Views as GitHub's Markdown."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from zelda_ci.reporter.view.comparison import ComparisonView
from zelda_ci.reporter.view.gfm import gfm

Filters = Mapping[str, Callable[..., Any]]


def render_comparison(view: ComparisonView) -> str:
    """The comparison as Markdown that ends with a line break."""
    return render("comparison.md.j2", view=view)


def render(template: str, filters: Filters | None = None, **values: Any) -> str:
    """A template of this package; what its filters give back as text is escaped as well."""
    made = _environment()
    made.filters |= filters or {}
    return made.get_template(template).render(**values)


@cache
def _environment() -> Environment:
    """Every value that a template prints is escaped, without being asked: forgetting it would open a door."""
    return Environment(
        loader=PackageLoader("zelda_ci.reporter"),
        finalize=_finished,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - that is for HTML; `finalize` escapes for Markdown
    )


def _finished(value: Any) -> Any:
    """Macros give what has been escaped already, and what is no text is none of a template's business."""
    return gfm(value) if isinstance(value, str) else value
