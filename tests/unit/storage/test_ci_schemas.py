"""The files that a run in CI leaves for programs: their schemas are valid, kept, and explained."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel

from tests.golden.batches import START
from tests.golden.ci_reports import REPORTS
from tests.unit.storage.test_result_reference import keys
from zelda_ci.domain.ci import Provenance
from zelda_ci.domain.comparison import Acceptance, AcceptedReason
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.storage import codec

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


def checker(name: str) -> Any:
    schema = json.loads((REPOSITORY / "schemas" / name).read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def stored(record: BaseModel) -> Any:
    return json.loads(record.model_dump_json(by_alias=True, exclude_none=True))


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_results_and_comparisons_of_every_kind_are_valid(name: str) -> None:
    report = REPORTS[name]()
    checker(codec.BATCH_FILE).validate(stored(report.batch))
    if report.comparison:
        checker("zelda.comparison.schema.json").validate(stored(report.comparison))


@pytest.mark.parametrize("more", [{}, {"base_sha": "abc", "base_branch": "main", "pull_request": 7, "complete": False}])
def test_a_provenance_is_valid(more: dict[str, Any]) -> None:
    checker(codec.PROVENANCE_FILE).validate(stored(WHERE.model_copy(update=more)))


@pytest.mark.parametrize("change", [{"runId": "x"}, {"baseSha": None}, {"complete": "yes"}, {"schemaVersion": 2}])
def test_another_provenance_is_not(change: dict[str, Any]) -> None:
    assert not checker(codec.PROVENANCE_FILE).is_valid(stored(WHERE) | change)


@pytest.mark.parametrize(
    ("model", "elsewhere"),
    [
        (BatchResult, frozenset({RunResult})),
        # Findings of the gate have the keys of the comparison's schema.
        (Provenance, frozenset({AcceptedReason})),
        (Acceptance, frozenset()),
    ],
)
def test_the_page_names_every_key(model: type[BaseModel], elsewhere: frozenset[type[BaseModel]]) -> None:
    text = (REPOSITORY / "docs/results.md").read_text("utf-8")
    assert [key for key in keys(model, elsewhere) if f"`{key}`" not in text] == []
