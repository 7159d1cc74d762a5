"""What every stored value has in common."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel


class Record(BaseModel):
    """A value that is stored or crosses the process border: frozen, camelCase outside, snake_case inside.

    Absent means "not computed": write with `exclude_none=True`, so that keys are omitted and never null.
    Unknown keys are ignored on reading, so that a newer Zelda's file can still be listed.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")

    def replace(self, **values: object) -> Self:
        """A copy with other values in some fields, validated like those of a new record.

        Raises:
            ValueError: A field does not exist, or a value is not one of its type and range.
        """
        kept = {name: getattr(self, name) for name in self.model_fields_set}
        return self.model_validate({**kept, **values}, extra="forbid", by_name=True, by_alias=False)


class Setting(Record):
    """A group of settings: a key without a value counts as not given.

    An unknown key is an error in the files of users, and not in results, which another version may have written.
    """

    @model_validator(mode="before")
    @classmethod
    def _empty_is_unset(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        keys = {field.alias for field in cls.model_fields.values()}
        return {key: value for key, value in values.items() if value is not None or key not in keys}
