"""The published schema of a comparison describes what is written."""

import json
from typing import Any

from tests.support.schemas import checker
from tests.unit.compare.runs import efficiency, fulfillment, judged, tool_usage, trials
from zelda_ci.compare.comparison import compare
from zelda_ci.domain.comparison import Comparison

SCHEMA = checker("zelda.comparison.schema.json")


def errors(comparison: Comparison) -> list[Any]:
    return list(SCHEMA.iter_errors(json.loads(comparison.model_dump_json(by_alias=True, exclude_none=True))))


def test_comparisons_of_every_kind_are_valid():
    old = [*trials(*[[fulfillment("PF"), efficiency(), tool_usage(used={"Read": 1})]] * 5), *judged("P", suite="gone")]
    new = [*trials(*[[fulfillment("FP"), efficiency(cost=1.0)]] * 5, label="b"), *judged("P", suite="young")]
    assert errors(compare(old, new)) == []
    assert errors(compare(old, judged("F", label="c", model="model-2"), allow_mixed=True)) == []
    assert errors(compare([], [])) == []


def test_the_schema_refuses_what_is_not_a_comparison():
    found = compare(judged("P"), judged("F", label="b")).model_copy(update={"verdict": "worse"})
    stored = json.loads(found.model_dump_json(by_alias=True, exclude_none=True, warnings=False))
    assert not SCHEMA.is_valid(stored)
    assert not SCHEMA.is_valid({})
