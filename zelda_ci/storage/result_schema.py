"""JSON Schemas of results, alone and together, and of what lies beside them, for programs that read them."""

from typing import Any, Literal

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from zelda_ci.domain.base import Record
from zelda_ci.domain.ci import Provenance
from zelda_ci.domain.correctness import CorrectnessDetails
from zelda_ci.domain.evaluation import EfficiencyDetails
from zelda_ci.domain.history import History
from zelda_ci.domain.judgement import FulfillmentDetails, ToolUsageDetails
from zelda_ci.domain.run import BatchResult, RunResult

FILE = "zelda.result.schema.json"
LIST_FILE = "zelda.list.schema.json"
BATCH_FILE = "zelda.results.schema.json"
PROVENANCE_FILE = "zelda.ci.schema.json"


class _AsWritten(GenerateJsonSchema):
    """A key is absent, never null, where its value is not known; unknown keys are allowed."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        described = super().default_schema(schema)
        return {key: value for key, value in described.items() if key != "default" or value is not None}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        described = super().model_schema(schema)
        return {key: value for key, value in described.items() if key != "additionalProperties"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def result_schema() -> dict[str, Any]:
    """The schema as it is published; the `…Details` describe the `details` of the metrics."""
    return _with_details(RunResult)


def batch_schema() -> dict[str, Any]:
    """The schema of zelda-results.json: all runs of one invocation."""
    return _with_details(BatchResult)


def provenance_schema() -> dict[str, Any]:
    """The schema of zelda-ci.json: where an artifact's results come from."""
    described = Provenance.model_json_schema(by_alias=True, schema_generator=_AsWritten)
    return {"$schema": GenerateJsonSchema.schema_dialect, **described}


def list_schema() -> dict[str, Any]:
    """The schema of what `zelda list --json` prints."""
    described = History.model_json_schema(by_alias=True, schema_generator=_AsWritten)
    return {"$schema": GenerateJsonSchema.schema_dialect, **described}


def _with_details(root: type[Record]) -> dict[str, Any]:
    details = (EfficiencyDetails, CorrectnessDetails, FulfillmentDetails, ToolUsageDetails)
    wanted: list[tuple[type[Record], Literal["validation"]]] = [(model, "validation") for model in (root, *details)]
    _, definitions = models_json_schema(wanted, by_alias=True, schema_generator=_AsWritten)
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        **definitions["$defs"].pop(root.__name__),
        "$defs": definitions["$defs"],
    }
