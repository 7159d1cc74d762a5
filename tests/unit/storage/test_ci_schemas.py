"""The files that a run in CI leaves for programs: their schemas are valid, kept, and explained."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.golden.batches import START
from tests.golden.ci_reports import REPORTS
from tests.support.schemas import checker
from zelda_ci.domain.ci import Provenance

REPOSITORY = Path(__file__).parents[3]
WHERE = Provenance(
    repository="acme/shop",
    repository_id=42,
    sha="9f3b2c1",
    head_sha="77aa0bc",
    event="pull_request",
    run_id=4711,
    batch_id="batch",
    created_at=START,
)


def stored(record: BaseModel) -> Any:
    return json.loads(record.model_dump_json(by_alias=True, exclude_none=True))


@pytest.mark.parametrize("name", ["regression", "mixed", "failed", "hostile"])
def test_results_and_comparisons_are_valid(name: str) -> None:
    report = REPORTS[name]()
    checker("zelda.results.schema.json").validate(stored(report.batch))
    assert report.comparison
    checker("zelda.comparison.schema.json").validate(stored(report.comparison))


def test_a_provenance_is_valid_and_another_is_not() -> None:
    provenance, more = checker("zelda.ci.schema.json"), {"base_sha": "abc", "base_branch": "main", "complete": False}
    for change in ({}, more):
        provenance.validate(stored(WHERE.model_copy(update=change)))
    others: list[dict[str, Any]] = [{"runId": "x"}, {"baseSha": None}, {"complete": "yes"}, {"schemaVersion": 2}]
    for other in others:
        assert not provenance.is_valid(stored(WHERE) | other)
