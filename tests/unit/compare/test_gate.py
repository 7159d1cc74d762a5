"""The gate: red with sentences, green without."""

from typing import Any

import pytest

from tests.golden.batches import command
from tests.support.steered import safe
from tests.unit.compare.runs import (
    START,
    batch,
    correctness,
    evaluation,
    fulfillment,
    gate_of,
    judged,
    tool_usage,
    trials,
    unscored,
)
from zelda_ci.compare.comparison import compare
from zelda_ci.compare.gate import failures, gate, missed_minimums, recorded_settings
from zelda_ci.domain.comparison import Uncounted
from zelda_ci.domain.details import CorrectnessDetails
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import Unit, UnitUse
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.suite import GateSettings, ScoreLimits
from zelda_ci.report.builders.comparison import gate_sentence, uncounted_sentences
from zelda_ci.report.builders.phrases import interval_words, points


def reds(found) -> list[str]:
    return [gate_sentence(reason) for reason in found.reasons]


def sentences(runs, **settings) -> list[str]:
    """Why runs are red that are compared with nothing on purpose."""
    return reds(failures(batch(runs), {"alpha": GateSettings(**settings)}))


def test_a_regression_is_red_with_a_sentence_for_each():
    compared = compare(judged(*["PP"] * 10), judged(*["PF"] * 10, label="b"))
    found = gate_of(compared)
    assert found.exit_code == 1
    assert [gate_sentence(reason) for reason in found.reasons] == [
        "alpha: “criterion 2” was met in 10 of 10 sessions on the base and in 0 of 10 here (p = 1.1e-05)",
        "alpha: requirement fulfillment went from 100.0 to 50.0 points of 100",
    ]
    assert {reason.kind for reason in found.reasons} == {"regression"}
    # Whoever does not fail on regressions stays green.
    for lax in ("evaluation",), ():
        assert not gate_of(compared, {"alpha": GateSettings(fail_on=lax)}).reasons


@pytest.mark.parametrize(("old", "new"), [(1, 1), (20, 1), (1, 20)])
def test_a_difference_of_one_trial_is_no_regression_for_the_gate(old, new):
    found = compare(judged(*["PP"] * old), judged(*["PF"] * new, label="b"))
    assert gate_of(found).reasons == ()


def test_one_trial_whose_commands_fail_or_whose_tests_are_gone_is_red():
    found = compare(trials([correctness()]), trials([correctness(50.0)], label="b"))
    assert reds(gate_of(found)) == ["alpha: functional correctness went from 100.0 to 50.0 points of 100"]


def test_improvements_doubts_and_nothing_at_all_are_green():
    assert gate_of(compare(judged("PF"), judged("PP", label="b"))).exit_code == 0
    assert gate_of(compare(judged("P", "P", "P"), judged("F", "F", "F", label="b"))).exit_code == 0
    assert gate(batch([]), {}).exit_code == 0


def test_an_overall_regression_is_about_all_suites():
    old = [found for n in range(12) for found in judged("PPPPP", suite=f"s{n}")]
    new = [found for n in range(12) for found in judged("PPPPF", suite=f"s{n}", label="b")]
    settings = {f"s{n}": GateSettings(fail_on=()) for n in range(11)}
    (reason,) = gate_of(compare(old, new), settings).reasons
    assert reason.suite is None
    assert gate_sentence(reason) == "all suites: requirement fulfillment went from 100.0 to 80.0 points of 100"


def test_each_suite_has_its_own_settings_taken_from_its_newest_run():
    lax = GateSettings(fail_on=())
    runs = [*judged("P"), *judged("P", suite="beta", gate=lax)]
    assert recorded_settings(runs) == {"alpha": GateSettings(), "beta": lax}


@pytest.mark.parametrize(("limit", "expected"), [(49.0, []), (50.0, []), (51.0, ["and at least 51.0 is required"])])
def test_the_mean_score_must_reach_the_required_one(limit, expected):
    runs = judged("PP", "FF")
    found = sentences((runs), min_score=ScoreLimits(requirement_fulfillment=limit))
    assert [sentence.split(", ")[-1] for sentence in found] == expected


def test_a_required_score_that_cannot_be_had_is_red_with_the_reason():
    runs = trials([unscored(Metric.TOOL_USAGE)])
    assert sentences((runs), min_score=ScoreLimits(tool_usage=70)) == [
        "alpha: tool usage has no value, and at least 70.0 is required: the judge did not answer"
    ]


@pytest.mark.parametrize(
    ("trials_", "words"),
    [
        (["PF", "PF", "PP"], "is not met in 2 of 3 sessions"),
        (["PF", "PP"], "is not met in 1 of 2 sessions"),
        (["PF", "PP", "PP"], None),
        (["PF"], "is not met"),
        (["PU"], "is not met"),
    ],
)
def test_without_a_required_score_a_criterion_that_fails_in_half_of_its_trials_is_red(trials_, words):
    assert sentences(judged(*trials_)) == ([f"alpha: “criterion 2” {words}"] if words else [])
    # A required score speaks for its criteria.
    assert sentences((judged(*trials_)), min_score=ScoreLimits(requirement_fulfillment=50)) == []
    assert sentences((judged(*trials_)), fail_on=("regression",)) == []


def test_what_is_undecided_does_not_fail_where_the_suite_ignores_it():
    assert sentences(judged("PU", undecided="ignore")) == []


def test_a_criterion_that_was_not_judged_does_not_fail_and_leaves_the_suite_incomplete_whatever_the_gate_asks_for():
    for settings in (GateSettings(), GateSettings(fail_on=())):
        found = gate(batch(judged("P?", "PP")), {"alpha": settings})
        assert [(reason.kind, gate_sentence(reason)) for reason in found.reasons] == [
            ("incomplete", "alpha: not judged completely in 1 of 2 sessions: not judged: criterion 2")
        ]
        assert found.exit_code == 2
    # It outweighs what failed, and what the base shows.
    assert gate(batch(judged("F?")), {}).exit_code == 2
    assert gate(batch(judged("P?"), judged("P?")), {}).exit_code == 2


FELL_SHORT = "alpha: build, tests or coverage fall short"


@pytest.mark.parametrize("score", [0.0, 100.0])
@pytest.mark.parametrize("least", [None, 0, 100])
def test_a_command_that_fails_is_red_whatever_the_score_and_the_required_one(score, least):
    runs = trials([correctness(score, passed=False)])
    assert FELL_SHORT in sentences((runs), min_score=ScoreLimits(functional_correctness=least))


def test_commands_that_fail_in_half_of_the_trials_are_red():
    good, bad = [correctness()], [correctness(100.0, passed=False)]
    assert sentences(trials(good, bad)) == ["alpha: build, tests or coverage fall short in 1 of 2 sessions"]
    assert sentences(trials(good, good, bad)) == []
    assert sentences((trials(bad)), fail_on=("regression",)) == []


def test_a_command_that_could_not_be_judged_is_incomplete_and_no_failed_evaluation():
    found = gate(batch(trials([unscored(Metric.FUNCTIONAL_CORRECTNESS, failed=True)])), {})
    assert ([reason.kind for reason in found.reasons], found.exit_code) == (["incomplete"], 2)


def test_other_metrics_are_red_only_below_a_required_score_and_broken_runs_not_at_all():
    assert sentences(trials([tool_usage(5.0)])) == []
    assert sentences(trials([], status=SessionStatus.FAILED)) == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (SessionStatus.TIMED_OUT, "timed out"),
        (SessionStatus.MAX_TURNS, "ran out of turns"),
        (SessionStatus.BUDGET_EXCEEDED, "reached its cost limit"),
    ],
)
def test_sessions_that_mostly_end_at_a_limit_are_red(status, words):
    runs = trials([fulfillment("P")], status=status)
    assert sentences(runs) == [f"alpha: the session {words}"]
    assert sentences([*runs, *judged("P", "P", label="b")]) == []


def test_only_scores_below_what_their_suite_asks_for_count_against_a_run_alone():
    strict = GateSettings(min_score=ScoreLimits(requirement_fulfillment=60))
    runs = [*judged("PF", gate=strict), *judged("FF", suite="beta")]
    (reason,) = missed_minimums(runs).reasons
    assert gate_sentence(reason) == "alpha: requirement fulfillment is 50.0, and at least 60.0 is required"
    assert missed_minimums(judged("PP", gate=strict)).exit_code == 0
    lax = GateSettings(fail_on=("regression",), min_score=strict.min_score)
    assert missed_minimums(judged("FF", gate=lax)).exit_code == 0


# --- what fails and does not count ----------------------------------------------------------------------------------


def both(heads, bases, stored=(), **settings) -> tuple[list[str], list[tuple[str, Uncounted]]]:
    """The reasons to be red, and what is no reason, with why."""
    found = gate(batch(heads, bases), {"alpha": GateSettings(**settings)}, stored=stored)
    return reds(found), [(gate_sentence(each.reason), each.because) for each in found.uncounted]


FAILS = "alpha: “criterion 2” is not met in 2 of 2 sessions"


@pytest.mark.parametrize(
    ("bases", "stored", "because"),
    [
        (judged("PF", "PF", "PP"), (), Uncounted.ON_BASE),
        ((), judged("PF", "PP"), Uncounted.ON_BASE),
        (judged("PF", "PP", "PP"), (), Uncounted.NOT_PROVEN),
        ((), judged("PP"), Uncounted.NOT_PROVEN),
        (judged("PP"), judged("PF"), Uncounted.NOT_PROVEN),
        ((), (), Uncounted.NO_BASE),
        (judged("PF", "PF", status=SessionStatus.FAILED), (), Uncounted.NO_BASE),
        (judged("PF", "PF", suite="beta"), (), Uncounted.NO_BASE),
        (trials([fulfillment("PF", ["criterion 1", "another"])]), (), Uncounted.NO_BASE),
    ],
)
def test_a_criterion_that_fails_is_listed_with_what_is_known_of_the_base_and_never_red_by_itself(
    bases, stored, because
):
    assert both(judged("PF", "PF"), bases, stored) == ([], [(FAILS, because)])


def test_what_is_not_proven_says_how_much_worse_it_may_be():
    heads, bases = judged(*["F"] * 6, *["P"] * 4), judged(*["P"] * 8, *["F"] * 2)
    (sentence,) = uncounted_sentences(gate(batch(heads, bases), {}))
    assert sentence == (
        "alpha: “criterion 1” is not met in 6 of 10 sessions: not proven to be worse than on the base "
        "(8 of 10 on the base, 4 of 10 here: between 67 points worse and 2 points better)"
    )
    (alone,) = gate(batch(heads, judged("P")), {}).uncounted
    assert (alone.because, alone.interval) == (Uncounted.NOT_PROVEN, None)


@pytest.mark.parametrize(
    ("interval", "better", "words"),
    [
        ((-51.0, 11.2), "higher", "between 51 points worse and 11 points better"),
        ((-51.0, 11.2), "lower", "between 11 points worse and 51 points better"),
        ((-60.0, -20.0), "higher", "between 20 and 60 points worse"),
        ((-60.0, -20.0), "lower", "between 20 and 60 points better"),
        ((0.0, 40.0), "higher", "between 0 and 40 points better"),
        ((0.0, 40.0), "lower", "between 0 and 40 points worse"),
    ],
)
def test_an_interval_is_worded_by_what_is_better(interval, better, words):
    assert interval_words(interval, points, better) == words


def test_a_criterion_that_must_pass_is_red_whatever_the_base_does():
    heads = judged("FF", "FF", "FP", must_pass=("criterion 2",))
    sentence = "alpha: “criterion 2” is not met in 2 of 3 sessions"
    for bases in (judged("FF", "FF"), judged("PP"), ()):
        reasons, uncounted = both(heads, bases)
        assert (reasons, len(uncounted)) == ([sentence], 1)
    assert both(judged("FP", "FP", "FF", must_pass=("criterion 2",)), ())[0] == []
    # The newest trial says which these are.
    marked, bare = judged("FF", must_pass=("criterion 2",), label="a"), judged("FF", label="b")
    for old, new, is_red in ((marked, bare, False), (bare, marked, True)):
        assert bool(both([run.replace(started_at=START) for run in old] + new, ())[0]) is is_red


def test_what_is_proven_to_be_worse_is_red_although_it_fails_on_the_base_too():
    heads, bases = judged(*["F"] * 20), judged(*["F"] * 10, *["P"] * 10, label="old")
    found = gate(batch(heads, bases), {}, compare(bases, heads))
    assert {reason.kind for reason in found.reasons} == {"regression"}
    assert [each.because for each in found.uncounted] == [Uncounted.ON_BASE]
    # And it is not said to be unproven where the base merely fails less often.
    better = judged(*["P"] * 20, label="old")
    assert gate(batch(heads, better), {}, compare(better, heads)).uncounted == ()


def fell_short(build: int, test: int | None) -> EvalResult:
    details = CorrectnessDetails(
        passed=False,
        build=command("make", build),
        test=None if test is None else command("make test", test),
    )
    return evaluation(Metric.FUNCTIONAL_CORRECTNESS, details, 0.0)


@pytest.mark.parametrize(
    ("head", "base", "is_red"),
    [
        (fell_short(0, 1), fell_short(0, 1), False),
        (fell_short(1, None), fell_short(0, 1), True),
        (fell_short(0, 1), fell_short(1, None), True),
        (fell_short(0, 1), correctness(), True),
        (correctness(50.0), correctness(40.0), False),
    ],
)
def test_a_command_that_fails_is_red_where_it_passes_on_the_base(head, base, is_red):
    heads, bases = trials([head], [head]), trials([base], [base])
    for found in (both(heads, bases), both(heads, (), bases)):
        assert tuple(len(each) for each in found) == ((1, 0) if is_red else (0, 1))
    # A command that the base fails now and then does not pass there: only a comparison tells whether it is worse.
    assert both(heads, [*bases, *trials([head], label="flaky")])[0] == []
    assert len(both(heads, ())[0]) == 1


def test_a_changed_test_command_is_another_command():
    heads, bases = trials([fell_short(0, 1)], test_command="make test"), trials([fell_short(0, 1)], test_command="ci")
    assert both(heads, bases) == ([FELL_SHORT], [])


def test_sessions_at_a_limit_are_red_where_those_beside_them_are_proven_to_end_there_less_often():
    late, good = [
        trials(*[[fulfillment("P")]] * 6, status=status, label=status) for status in ("timedOut", "completed")
    ]
    assert both(late, good) == (["alpha: 6 of 6 sessions timed out"], [])
    assert both(late, (), good)[1][0][1] is Uncounted.NOT_PROVEN
    assert both(late[:2], good[:2])[1][0][1] is Uncounted.NOT_PROVEN
    assert both(late, late)[1][0][1] is Uncounted.ON_BASE
    assert both(late, ())[1][0][1] is Uncounted.NO_BASE


def test_a_required_score_is_red_unless_the_base_does_not_reach_it_either():
    wanted = {"min_score": ScoreLimits(requirement_fulfillment=80)}
    low = "alpha: requirement fulfillment is 50.0, and at least 80.0 is required"
    assert both(judged("PF"), judged("FP"), **wanted) == ([], [(low, Uncounted.ON_BASE)])
    assert both(judged("PF"), judged("PP"), **wanted) == ([low], [])
    assert both(judged("PF"), (), **wanted) == ([low], [])
    # What has no score is red on whatever side it is missing.
    none = trials([unscored(Metric.TOOL_USAGE)])
    assert tuple(len(each) for each in both(none, none, min_score=ScoreLimits(tool_usage=70))) == (1, 0)


def test_a_plugin_that_only_the_base_has_or_nobody_knew_before_is_red() -> None:
    def side(problem: str | None, **given: Any) -> tuple[RunResult, ...]:
        unit = Unit(kind=ItemKind.PLUGIN, path=safe(".claude/settings.json"), name=safe("p@market"))
        use = UnitUse(unit=unit, loaded=not problem, problem=safe(problem) if problem else None)
        made = judged("PP", "PP", **given)
        return tuple(run.replace(steering=(use,)) for run in made)

    lost, whole = side("its marketplace does not list it"), side(None, label="b")
    told = [".claude/settings.json is not loaded, p@market: its marketplace does not list it"]
    assert reds(gate(batch(lost), {}, None, whole)) == told
    # As on the base; put right by the change; and with nothing to compare it with.
    assert not reds(gate(batch(lost), {}, None, side("another reason", label="b")))
    assert not reds(gate(batch(whole), {}, None, lost))
    assert not reds(gate(batch(lost), {}))
    # One trial that has it shows that it can be had.
    assert not reds(gate(batch((*lost, *side(None, label="c"))), {}, None, whole))
