"""What docs and schema say of results is what results hold."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from tests.builders import result, suite
from tests.golden.ci_reports import REPORTS
from tests.support.schemas import checker
from tests.unit.storage.test_codec import FULL
from zelda_ci.domain.base import Record
from zelda_ci.domain.check import ContextReport
from zelda_ci.domain.comparison import Acceptance, AcceptedReason, Provenance
from zelda_ci.domain.details import CommandResult, CorrectnessDetails, EfficiencyDetails, ToolUsageDetails
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.session import SessionStatus, ToolCall, Turn
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.storage import codec

REPOSITORY = Path(__file__).parents[3]
ORIGIN = Provenance(
    created_at=result().started_at,
    repository="o/r",
    repository_id=1,
    sha="0" * 40,
    head_sha="0" * 40,
    event="push",
    run_id=1,
    batch_id="b",
)


def stored(record: Record) -> Any:
    return json.loads(codec.encode(record))


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
        ("results.md", EfficiencyDetails, frozenset()),
        ("results.md", CorrectnessDetails, frozenset({CommandResult})),
        ("results.md", ToolUsageDetails, frozenset()),
        ("results.md", Turn, frozenset({ToolCall})),
        ("results.md", ToolCall, frozenset()),
        ("results.md", BatchResult, frozenset({RunResult})),
        # Findings of the gate have the keys of the comparison's schema.
        ("results.md", Provenance, frozenset({AcceptedReason, ContextReport})),
        ("results.md", Acceptance, frozenset()),
    ],
)
def test_the_page_names_every_key(page: str, model: type[BaseModel], elsewhere: frozenset[type[BaseModel]]) -> None:
    text = (REPOSITORY / "docs" / page).read_text("utf-8")
    assert [key for key in keys(model, elsewhere) if f"`{key}`" not in text] == []


@pytest.mark.parametrize("values", [SessionStatus, Metric])
def test_the_page_names_every_status_and_metric(values: type[SessionStatus] | type[Metric]) -> None:
    text = (REPOSITORY / "docs/results.md").read_text("utf-8")
    assert [value for value in values if f"`{value}`" not in text] == []


def test_results_are_valid_by_the_schema_of_the_repository_and_other_files_are_not() -> None:
    schema = checker("zelda.result.schema.json")
    for record in (result(), FULL, result(config=suite(execution={"maxCostUsd": 1}))):
        schema.validate(stored(record))
    others: list[dict[str, Any]] = [{"status": "finished"}, {"trial": 0}, {"config": None}, {"versions": {}}]
    for change in others:
        assert not schema.is_valid(stored(FULL) | change)


@pytest.mark.parametrize("name", ["regression", "mixed", "failed", "hostile"])
def test_what_a_run_in_ci_leaves_for_programs_is_valid(name: str) -> None:
    report = REPORTS[name]()
    checker("zelda.results.schema.json").validate(stored(report.batch))
    assert report.comparison
    checker("zelda.comparison.schema.json").validate(stored(report.comparison))


def test_a_provenance_is_valid_and_another_is_not() -> None:
    schema, more = checker("zelda.ci.schema.json"), {"base_sha": "abc", "base_branch": "main", "complete": False}
    for change in ({}, more):
        schema.validate(stored(ORIGIN.model_copy(update=change)))
    others: list[dict[str, Any]] = [{"runId": "x"}, {"baseSha": None}, {"complete": "yes"}, {"schemaVersion": 2}]
    for other in others:
        assert not schema.is_valid(stored(ORIGIN) | other)
