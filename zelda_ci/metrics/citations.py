"""Citations as judges give them: typed, so that no place is read out of words."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, field_validator

from zelda_ci.domain.details import Citation

# What a citation of each kind needs beside a quote.
NEEDS: dict[str, tuple[str, ...]] = {
    "file": ("path", "quote"),
    "patch": ("quote",),
    "removed": ("path", "quote"),
    "transcript": ("quote",),
    "said": ("turn", "quote"),
    "image": ("turn", "call"),
    "checks": ("quote",),
    "task": ("quote",),
    "absent": ("paths",),
}


def _number(value: Any) -> Any:
    """Models also write numbers as text: "3.", "Criterion 3"."""
    found = re.findall(r"\d{1,9}", value) if isinstance(value, str) else []
    return 0 if value is None else int(found[0]) if len(found) == 1 else value


def _text(value: Any) -> Any:
    return "" if value is None else value


def _listed(value: Any) -> Any:
    return [] if value is None else value if isinstance(value, list | tuple) else [value]


Number = Annotated[int, BeforeValidator(_number)]
Text = Annotated[str, BeforeValidator(_text)]


class CitedPlace(Citation):
    """A place that decides, and what is quoted from it."""

    # Judges answer with names as they are written here.
    model_config = ConfigDict(alias_generator=str, populate_by_name=True)

    _numbers = field_validator("first_line", "last_line", "turn", "call", "image", mode="before")(_number)
    _texts = field_validator("path", "pattern", "quote", mode="before")(_text)
    _lists = field_validator("paths", mode="before")(_listed)

    @property
    def missing(self) -> str | None:
        """What a citation of this kind needs and this one lacks."""
        return next((name for name in NEEDS[self.kind] if not getattr(self, name)), None)


Places = Annotated[list[CitedPlace], BeforeValidator(_listed), Field(description="The places that decide.")]
