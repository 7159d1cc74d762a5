"""What users wrote, as it may be stored: a prompt or a command can hold a secret as well."""

from enum import Enum
from typing import Any, TypeVar

from zelda_ci.domain.base import Record
from zelda_ci.redact import Redactor

_Stored = TypeVar("_Stored", bound=Record)


def snapshot(record: _Stored, redact: Redactor) -> _Stored:
    """The record with every string in it masked."""
    masked = {name: _masked(getattr(record, name), redact) for name in type(record).model_fields}
    return record.model_copy(update=masked)


def _masked(value: Any, redact: Redactor) -> Any:
    match value:
        case Record():
            return snapshot(value, redact)
        case str() if not isinstance(value, Enum):
            return redact(value)
        case tuple():
            return tuple(_masked(item, redact) for item in value)
        case dict():
            return {_masked(key, redact): _masked(item, redact) for key, item in value.items()}
        case _:
            return value
