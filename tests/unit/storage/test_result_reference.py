"""What docs and schema say of results is what results hold."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from pydantic import BaseModel

from tests.builders import result, session, suite
from tests.unit.storage.test_codec import FULL
from zelda_ci.domain.details import EfficiencyDetails, ToolUsageDetails
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus, SessionTranscript, ToolCall, Turn
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.test_run import CommandResult, CorrectnessDetails
from zelda_ci.storage import codec

REPOSITORY = Path(__file__).parents[3]


def keys(model: type[BaseModel], without: frozenset[type[BaseModel]]) -> Iterator[str]:
    """Every key of a record and of the records inside it, as it is written."""
    for name, field in model.model_fields.items():
        if field.exclude:
            continue
        yield field.alias or name
        for part in _parts(field.annotation):
            if part not in without:
                yield from keys(part, without)


def _parts(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _parts(argument)


@pytest.mark.parametrize(
    ("page", "model", "elsewhere"),
    [
        ("results.md", RunResult, frozenset({ResolvedSuite})),
        ("metrics.md", EfficiencyDetails, frozenset()),
        ("metrics.md", CorrectnessDetails, frozenset({CommandResult})),
        ("metrics.md", ToolUsageDetails, frozenset()),
        ("results.md", Turn, frozenset({ToolCall})),
        ("results.md", ToolCall, frozenset()),
    ],
)
def test_the_page_names_every_key(page: str, model: type[BaseModel], elsewhere: frozenset[type[BaseModel]]) -> None:
    text = (REPOSITORY / "docs" / page).read_text("utf-8")
    assert [key for key in keys(model, elsewhere) if f"`{key}`" not in text] == []


def test_the_page_names_every_key_of_a_transcript() -> None:
    text = (REPOSITORY / "docs/results.md").read_text("utf-8")
    written = orjson_tree(session("Read a.py", '"Done."'))
    assert [
        key for key in [*written, *written["started"]] if f"`{key}`" not in text and key not in {"type", "at"}
    ] == []


def orjson_tree(transcript: SessionTranscript) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(b"".join(codec.encode_transcript(transcript)))
    return tree


@pytest.mark.parametrize("values", [SessionStatus, Metric])
def test_the_page_names_every_status_and_metric(values: type[SessionStatus] | type[Metric]) -> None:
    text = (REPOSITORY / "docs/results.md").read_text("utf-8")
    assert [value for value in values if f"`{value}`" not in text] == []


def test_the_schema_in_the_repository_is_current() -> None:
    written = json.loads((REPOSITORY / "schemas" / codec.FILE).read_text("utf-8"))
    assert written == codec.result_schema()


@pytest.mark.parametrize("stored", [result(), FULL, result(config=suite(execution={"maxCostUsd": 1}))])
def test_results_are_valid_by_the_schema(stored: RunResult) -> None:
    checker = jsonschema.Draft202012Validator(codec.result_schema())
    checker.validate(json.loads(codec.encode_result(stored)))


@pytest.mark.parametrize(
    "change", [{"status": "finished"}, {"trial": 0}, {"config": None}, {"versions": {}}, {"failure": None}]
)
def test_other_files_are_not_valid_by_the_schema(change: dict[str, Any]) -> None:
    checker = jsonschema.Draft202012Validator(codec.result_schema())
    assert not checker.is_valid({**json.loads(codec.encode_result(FULL)), **change})


def test_the_schema_describes_the_details_of_efficiency() -> None:
    assert "toolCalls" in codec.result_schema()["$defs"]["EfficiencyDetails"]["properties"]
