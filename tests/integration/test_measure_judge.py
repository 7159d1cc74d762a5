"""The script that measures a judge: the real program, in front of a scripted API that answers from the labels."""

import pytest

from tests.support.cited import citation
from tests.support.judge_cases import all_cases, build
from tests.support.judge_measure import is_on_false_evidence
from tests.support.labelled_judge import NOWHERE
from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict
from zelda_ci.redact import Redactor

CASES = {case.name: case for case in all_cases()}
safe = Redactor()


# A case, the number of a criterion, and what a judge says of it.
SAID: list[tuple[str, int, str, list[tuple[str, str]], bool]] = [
    ("tests-never-ran", 0, "PASS", [("shop/price.py:5", "quantize(Decimal(1), ROUND_HALF_UP)")], False),
    ("tests-never-ran", 0, "PASS", [("shop/price.py:5", NOWHERE)], True),
    ("tests-never-ran", 0, "PASS", [], True),
    ("tests-never-ran", 1, "PASS", [("turn 3", "all 7 tests pass in 0.31s")], True),
    ("tests-never-ran", 1, "FAIL", [], False),
    ("tests-never-ran", 1, "undecided", [("turn 3", NOWHERE)], False),
    ("no-print-left", 0, "PASS", [("absent: print( in src/**", "")], False),
    ("no-print-left", 0, "PASS", [("absent: print( in scr/**", "")], True),
]


def test_what_counts_on_false_evidence(tmp_path_factory: pytest.TempPathFactory) -> None:
    built = {name: build(CASES[name], tmp_path_factory.mktemp("case")) for name in {one[0] for one in SAID}}
    for name, number, verdict, evidence, is_false in SAID:
        judged = CriterionJudgement(
            criterion=safe("It."),
            verdict=CriterionVerdict(verdict),
            reasoning=safe("So."),
            evidence=tuple(citation(*each) for each in evidence),
        )
        found = is_on_false_evidence(built[name], CASES[name].criteria[number], judged)
        assert found is is_false, (name, number, verdict, evidence)
