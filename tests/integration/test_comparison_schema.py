"""The documented schema of a comparison is current and describes what is written."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema

from tests.unit.compare.runs import efficiency, fulfillment, judged, tool_usage, trials
from zelda_ci.compare.comparison import compare

REPOSITORY = Path(__file__).parents[2]
SCHEMA = REPOSITORY / "schemas/zelda.comparison.schema.json"


def run_script(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    script = [sys.executable, str(REPOSITORY / "scripts/comparison_schema"), *map(str, arguments)]
    return subprocess.run(script, capture_output=True, text=True, check=False)


def errors(comparison) -> list[Any]:
    stored = json.loads(comparison.model_dump_json(by_alias=True, exclude_none=True))
    return list(jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).iter_errors(stored))


def test_the_schema_is_current_and_the_script_notices_and_mends_what_is_stale(tmp_path):
    done = run_script("--check")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    (tmp_path / "schemas").mkdir()
    assert run_script("--check", tmp_path).returncode == 1
    assert run_script(tmp_path).returncode == 0
    assert (tmp_path / "schemas" / SCHEMA.name).read_text() == SCHEMA.read_text()


def test_comparisons_of_every_kind_are_valid():
    old = [*trials(*[[fulfillment("PF"), efficiency(), tool_usage(used={"Read": 1})]] * 5), *judged("P", suite="gone")]
    new = [*trials(*[[fulfillment("FP"), efficiency(cost=1.0)]] * 5, label="b"), *judged("P", suite="young")]
    assert errors(compare(old, new)) == []
    assert errors(compare(old, judged("F", label="c", model="model-2"), allow_mixed=True)) == []
    assert errors(compare([], [])) == []


def test_the_schema_refuses_what_is_not_a_comparison():
    found = compare(judged("P"), judged("F", label="b")).model_copy(update={"verdict": "worse"})
    schema = json.loads(SCHEMA.read_text())
    stored = json.loads(found.model_dump_json(by_alias=True, exclude_none=True, warnings=False))
    assert not jsonschema.Draft202012Validator(schema).is_valid(stored)
    assert not jsonschema.Draft202012Validator(schema).is_valid({})
