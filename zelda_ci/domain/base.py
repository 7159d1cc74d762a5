"""What every stored value has in common, and what a key of the settings carries besides its type and limits."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import partial
from typing import Annotated, Any, Literal, LiteralString, Self, cast, get_args, get_origin

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from zelda_ci.redact import Redactor

SCHEMA_VERSION: Literal[1] = 1


class Record(BaseModel):
    """A value that is stored or crosses the process border: frozen, camelCase outside, snake_case inside.

    Absent means "not computed": write with `exclude_none=True`, so that keys are omitted and never null.
    Unknown keys are ignored on reading, so that a newer Zelda's file can still be listed.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, allow_inf_nan=False)

    def replace(self, **values: object) -> Self:
        """A copy with other values in some fields, which are validated like those of a new record."""
        kept = {name: getattr(self, name) for name in self.model_fields_set}
        return self.model_validate({**kept, **values}, extra="forbid", by_name=True, by_alias=False)

    def redacted(self, redact: Redactor) -> Self:
        """A copy with every string in it masked, apart from words of our own."""
        return cast("Self", _masked(self, redact))


class Document(Record):
    """A record that is a file of its own, or all that a command prints."""

    schema_version: Literal[1] = SCHEMA_VERSION


def _masked(value: Any, redact: Redactor, annotation: Any = None) -> Any:
    kinds = (annotation, *get_args(annotation))
    if any(get_origin(kind) is Literal and value in get_args(kind) for kind in kinds):
        return value  # a word of our own
    match value:
        case Record():
            fields = type(value).model_fields.items()
            safe = {name: _masked(getattr(value, name), redact, field.annotation) for name, field in fields}
            # Not validated: a masked value need not fit the pattern of its field.
            return type(value).model_construct(value.model_fields_set, **safe)
        case str() if not isinstance(value, Enum):
            return redact(value)
        case tuple():
            return tuple(_masked(item, redact) for item in value)
        case dict():
            masked: dict[Any, Any] = {}
            for key, item in value.items():
                name = _masked(key, redact)
                # Two masked keys look alike, and neither may push out the other's value.
                masked[f"{name}#{len(masked)}" if name in masked else name] = _masked(item, redact)
            return masked
        case _:
            return value


class Setting(Record):
    """A group of settings: a key without a value counts as not given.

    An unknown key is an error in the files of users, and not in results, which another version may have written.
    """

    @model_validator(mode="before")
    @classmethod
    def _empty_is_unset(cls, values: Any) -> Any:
        if not isinstance(values, dict) or None not in values.values():
            return values
        keys = {field.alias for field in cls.model_fields.values()}
        return {key: value for key, value in values.items() if value is not None or key not in keys}


def checked(message: LiteralString, is_good: Callable[[Any], object]) -> AfterValidator:
    """Check of a value beyond its type, with the message of its error."""

    def check(value: Any) -> Any:
        if not is_good(value):
            raise PydanticCustomError("setting", message)
        return value

    return AfterValidator(check)


# Shown and compared in any time zone, where the first and the last days have no name.
Moment = Annotated[AwareDatetime, checked("must be between the years 2 and 9998", lambda at: 1 < at.year < 9999)]


SourceKind = Literal["option", "input", "variable"]


@dataclass(frozen=True)
class KeySources:
    """Option, input and variable that give a key above the files, for all suites of a command."""

    option: str | None = None
    input: str | None = None
    variable: str | None = None
    commands: tuple[str, ...] = ("run", "check", "why")
    help: str | None = None
    """Help of option and input, where the description of the key does not fit."""
    none: str | None = None
    """The word for an empty list."""


class Decider(StrEnum):
    """Whose value counts on a pull request, which anybody may have written."""

    BASE = "base"
    """Value of the commit that it is merged into: what gives rights, or says where credentials and results go."""
    LOWER = "lower"
    """The lower of the two: a pull request may spend less, not more."""
    JUDGING = "judging"
    """The base's until the merge: how results are judged. A suite that the base lacks brings its own."""
    HEAD = "head"
    """Its own: what is tested, about which those decide who review the suites."""


@dataclass(frozen=True)
class KeyDecision:
    """Decision on whose value of a key, or of a group's keys, counts on a pull request."""

    by: Decider
    effect: str = ""
    """Effect that another value of the pull request would have had, to be read after "It"."""


HEAD = KeyDecision(Decider.HEAD)
# A key about which nobody has decided is the base's.
UNDECIDED = KeyDecision(Decider.BASE, "would have changed a setting whose decision is missing")
base, lower, judging = (partial(KeyDecision, by) for by in (Decider.BASE, Decider.LOWER, Decider.JUDGING))
