"""Citations as judges give them: typed, so that no place is read out of words."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

# Places that are named like the blocks that show them.
CHECKS = "build-and-tests"
TASK = "task"

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
Kind = Literal["file", "patch", "removed", "transcript", "said", "image", "checks", "task", "absent"]


def _number(value: Any) -> Any:
    """Models also write numbers as text: "3.", "Criterion 3"."""
    found = re.findall(r"\d{1,9}", value) if isinstance(value, str) else []
    return 0 if value is None else int(found[0]) if len(found) == 1 else value


def _listed(value: Any) -> Any:
    return [] if value is None else value if isinstance(value, list | tuple) else [value]


Number = Annotated[int, BeforeValidator(_number)]
Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


class CitedPlace(BaseModel):
    """A place that decides, and what is quoted from it."""

    model_config = ConfigDict(frozen=True)

    kind: Kind
    path: Text = ""
    first_line: Number = 0
    last_line: Number = 0
    turn: Number = 0
    call: Number = 0
    image: Number = 0
    pattern: Text = ""
    is_regex: bool = False
    paths: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    quote: Text = ""

    @model_serializer(mode="wrap")
    def _brief(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in whole(self).items() if value}

    @property
    def where(self) -> str:
        """The place in words, as results store it."""
        turn = f"turn {self.turn}{f' call {self.call}' if self.call else ''}" if self.turn else "transcript"
        match self.kind:
            case "file":
                last = f"-{self.last_line}" if self.last_line and self.last_line != self.first_line else ""
                return f"{self.path}:{self.first_line}{last}" if self.first_line else self.path
            case "patch" | "removed":
                return f"{self.kind}:{self.path}" if self.path else self.kind
            case "said":
                return f"said:{turn}"
            case "image":
                return f"{turn} image {self.image or 1}"
            case "absent":
                pattern = f"/{self.pattern}/" if self.is_regex else self.pattern or "any file"
                return f"absent: {pattern} in {', '.join(self.paths)}"
            case _:
                return {"transcript": turn, "checks": CHECKS, "task": TASK}[self.kind]

    @property
    def missing(self) -> str | None:
        """What a citation of this kind needs and this one lacks."""
        return next((name for name in NEEDS[self.kind] if not getattr(self, name)), None)


Places = Annotated[list[CitedPlace], BeforeValidator(_listed), Field(description="The places that decide.")]
