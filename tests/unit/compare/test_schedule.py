"""Which trials are wanted next, and why a suite has enough."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.unit.compare.runs import judged
from zelda_ci.compare.schedule import SuiteTrials, Wanted, next_trials
from zelda_ci.compare.sides import RunMetrics, sides
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.trials import DoneReason, Plan, Side, TrialPlan

PLAN = TrialPlan()


def made(*verdicts: str, label: str = "head", **config: object) -> tuple[RunMetrics, ...]:
    """One trial per argument, numbered from 1."""
    runs = judged(*verdicts, label=label, **config)
    return tuple(RunMetrics(run.replace(trial=number)) for number, run in enumerate(runs, start=1))


def wanted(trials: SuiteTrials, plan: Plan = PLAN) -> list[tuple[Side, int]]:
    return [(trial.side, trial.number) for trial in next_trials([replace(trials, plan=plan)]).wanted]


def step(trials: SuiteTrials, plan: Plan = PLAN) -> DoneReason | list[tuple[Side, int]]:
    return next_trials([replace(trials, plan=plan)]).done.get(trials.suite) or wanted(trials, plan)


def test_each_suite_has_its_first_trials_of_the_head_in_turn():
    found = next_trials([SuiteTrials("a"), SuiteTrials("b")])
    assert found.wanted == tuple(Wanted(suite, Side.HEAD, number) for number in (1, 2, 3) for suite in "ab")
    assert found.done == {}


def test_a_suite_that_fails_goes_on_side_by_side_to_the_next_look():
    more = wanted(SuiteTrials("alpha", head=made("PP", "PF", "PP")))
    head, base = ([number for side, number in more if side is arm] for arm in (Side.HEAD, Side.BASE))
    assert (head, base) == ([4, 5, 6], [1, 2, 3, 4, 5, 6])
    assert [side for side, _ in more[:4]] == [Side.HEAD, Side.BASE] * 2


def test_a_criterion_that_always_wavered_is_expected_to_fail_now_and_then():
    stored = made(*["PF", "PP"] * 10, label="old")
    known = SuiteTrials("alpha", stored=stored)
    assert step(replace(known, head=made("PP", "PF", "PF"))) is DoneReason.AS_EXPECTED
    assert wanted(replace(known, head=made("FP", "PF", "FF")))


def test_a_regression_that_a_look_has_shown_stands_whatever_later_trials_show():
    head, base = made(*"F" * 6, *"P" * 10), made(*"P" * 6, *"F" * 10, label="base")
    assert step(SuiteTrials("alpha", head=head, base=base)) is DoneReason.REGRESSED


def test_stored_trials_prove_nothing_however_many_there_are():
    stored, head = made(*["P"] * 200, label="old"), made("F", "F", "F")
    more = step(SuiteTrials("alpha", head=head, stored=stored))
    assert more == step(SuiteTrials("alpha", head=head))
    assert isinstance(more, list)
    assert {side for side, _ in more} == {Side.HEAD, Side.BASE}
    # Once the base has run, they say nothing any more: it fails today as well.
    base = made(*["F"] * 6, label="base")
    assert step(SuiteTrials("alpha", head=made(*["F"] * 6), base=base, stored=stored)) is DoneReason.AS_EXPECTED
    head, base = made(*["F"] * 6), made(*["P"] * 6, label="base")
    assert isinstance(step(SuiteTrials("alpha", head=head[:3], base=base[:3])), list)
    assert step(SuiteTrials("alpha", head=head, base=base)) is DoneReason.REGRESSED


def test_a_drop_that_the_base_shows_today_as_well_is_nobodys_fault():
    stored = made(*["P"] * 20, label="old")
    verdicts = ["F", "P", "F", "F", "P", "F"]
    trials = SuiteTrials("alpha", head=made(*verdicts), base=made(*verdicts, label="base"), stored=stored)
    assert isinstance(step(replace(trials, base=(), head=trials.head[:3])), list)
    assert step(trials) is DoneReason.AS_EXPECTED


def test_the_plan_ends_without_proof():
    head, base = made(*["F", "P"] * 8), made(*["P"] * 13, *["F"] * 3, label="base")
    assert step(SuiteTrials("alpha", head=head, base=base), TrialPlan(first=1, looks=(16,))) is DoneReason.PLAN_ENDED


def test_a_suite_that_the_base_lacks_has_its_first_trials_and_no_others():
    assert step(SuiteTrials("alpha", head=made("F", "F", "F"), has_base=False)) is DoneReason.NO_BASE
    for has_base in (True, False):
        assert step(SuiteTrials("alpha", head=made("P", "P", "P"), has_base=has_base)) is DoneReason.AS_EXPECTED


def test_the_last_look_is_made_only_where_the_suite_alone_would_be_called_by_now():
    """Among a hundred suites, each with a hundredth of the error; alone, at ALPHA, two of ten are nothing."""
    others = [SuiteTrials(f"s{number}") for number in range(99)]

    def after(failed: int, *looks: int) -> DoneReason | int:
        head, base = made(*["F"] * failed, *["P"] * (10 - failed)), made(*["P"] * 10, label="base")
        found = next_trials([SuiteTrials("alpha", head, base, plan=TrialPlan(looks=looks)), *others], {"alpha"})
        return found.done.get("alpha") or len(found.wanted)

    # Of as many trials, three failures are unusual and no call, and five are one for a suite alone.
    assert [after(failed, 6, 10, 16) for failed in (3, 5)] == [DoneReason.NOT_PROVEN, 12]
    # A look that is not the last one is made in any case, and so is the only one.
    assert [after(3, *looks) for looks in ((6, 10, 16, 24), (16,))] == [12, 12]


def test_sides_that_differ_in_more_than_the_steering_files_are_not_run_on():
    other = made(*["P"] * 6, label="base", prompt="Do something else.")
    assert step(SuiteTrials("alpha", head=made(*["F"] * 6), base=other)) is DoneReason.NOT_COMPARABLE


def test_failed_trials_are_replaced_until_there_are_too_many():
    broken = made(*["P"] * 3, status=SessionStatus.FAILED)
    assert step(SuiteTrials("alpha", head=broken)) == [(Side.HEAD, 4), (Side.HEAD, 5), (Side.HEAD, 6)]
    assert step(SuiteTrials("alpha", head=made(*["P"] * 4, status=SessionStatus.FAILED))) is DoneReason.FAILED


def test_trials_under_way_keep_their_numbers():
    first, second, third = made("P", "P", "P")
    assert step(SuiteTrials("alpha", head=(second,))) == [(Side.HEAD, 1), (Side.HEAD, 3)]
    assert step(SuiteTrials("alpha", head=(third, first))) == [(Side.HEAD, 2)]


def test_trials_of_two_machines_with_one_id_are_two_and_one_that_is_given_twice_is_one():
    one, two = judged("P", label="a") + judged("P", label="a")
    elsewhere = two.replace(batch_id="of another machine")
    assert step(SuiteTrials("alpha", head=tuple(map(RunMetrics, (one, one))))) == [(Side.HEAD, 2), (Side.HEAD, 3)]
    assert step(SuiteTrials("alpha", head=tuple(map(RunMetrics, (one, elsewhere))))) == [(Side.HEAD, 2)]
    assert sides([one, one, elsewhere])["alpha"].trials.valid == 2


def test_a_number_is_the_fixed_design_and_stored_trials_stand_for_none_of_the_base():
    plan = 2
    assert step(SuiteTrials("alpha"), plan) == [
        (Side.HEAD, 1), (Side.BASE, 1), (Side.HEAD, 2), (Side.BASE, 2),
    ]  # fmt: skip
    stored = made("P", "P", label="old")
    known = SuiteTrials("alpha", stored=stored, head=made("P", "P"))
    assert step(known, plan) == [(Side.BASE, 1), (Side.BASE, 2)]
    assert step(replace(known, base=made("P", "P", label="base")), plan) is DoneReason.PLAN_ENDED


def test_a_suite_may_have_a_plan_of_its_own():
    found = next_trials([SuiteTrials("a", plan=TrialPlan(first=1)), SuiteTrials("b")])
    assert [trial.suite for trial in found.wanted] == ["a", "b", "b", "b"]


@given(
    has_base=st.booleans(),
    first=st.integers(1, 20),
    looks=st.sets(st.integers(1, 60), min_size=1),
)
def test_the_looks_of_a_suite_never_spend_more_than_its_share(has_base, first, looks):
    counts = tuple(sorted(looks))[:10]
    assume(first < counts[-1])
    plan = TrialPlan(first=first, looks=counts)
    found = SuiteTrials("alpha", plan=plan, has_base=has_base).looks
    assert [look.head for look in found] == list(plan.counts)
    assert sum(look.weight for look in found) <= 1 + 1e-9
    for look in found:
        assert not look.weight or look.base == look.head
    assert all(later.base >= earlier.base for earlier, later in pairwise(found))
