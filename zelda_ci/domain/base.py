"""What every stored value has in common."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Record(BaseModel):
    """A value that is stored or crosses the process border: frozen, camelCase outside, snake_case inside.

    Absent means "not computed": write with `exclude_none=True`, so that keys are omitted and never null.
    Unknown keys are ignored on reading, so that a newer Zelda's file can still be listed.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")
