"""What judges read of build and tests."""

from typing import Any

import pytest

from tests.builders import safe
from tests.unit.compare.runs import judged
from zelda_ci.domain.measures import Metric
from zelda_ci.pipeline.evaluation import checks


@pytest.mark.parametrize(
    "details", [{"passed": "perhaps"}, {"passed": True, "build": "green"}, {"of": "a newer Zelda"}]
)
def test_of_details_of_another_zelda_the_reasoning_is_left(details: dict[str, Any]) -> None:
    stored = {"metric": Metric.FUNCTIONAL_CORRECTNESS, "version": "9", "score": 40, "reasoning": "Tests failed."}
    run = judged("P")[0].replace(evaluations={Metric.FUNCTIONAL_CORRECTNESS: {**stored, "details": details}})
    assert checks(run, safe) == ("Tests failed.",)
