"""What just turns the check red, and what just does not."""

from tests.unit.compare.runs import fulfillment, gate_of, judged, trials
from tests.unit.compare.test_acceptance import acceptance, red
from zelda_ci.compare.comparison import compare
from zelda_ci.compare.gate import accept


def test_rows_over_all_suites_never_gate_between_mixed_sides() -> None:
    suites = [f"s{number}" for number in range(8)]
    old = [run for name in suites for run in judged("P", "P", suite=name)]
    new = [run for name in suites for run in judged("F", "F", suite=name, label="b", model="model-2")]
    row = compare(old, new, allow_mixed=True).overall[0]
    assert (row.change, row.gates) == (-100, False)


def test_a_new_criterion_that_is_always_met_lowers_no_score() -> None:
    names = ["criterion 1", "criterion 2", "criterion 3"]
    old = trials(*([fulfillment("PP", names[:2])] for _ in range(10)))
    new = trials(*([fulfillment("PFP", names)] for _ in range(10)), label="b")
    comparison = compare(old, new)
    found = gate_of(comparison)
    assert any("requirement fulfillment" in line for line in red(found))
    assert red(accept(found, [acceptance("criterion 2")], comparison, new)) == []
