"""Sides that differ in more than the steering files."""

import pytest

from tests.builders import safe
from tests.unit.compare.runs import (
    JUDGE,
    compare_beside,
    correctness,
    efficiency,
    fulfillment,
    gate_of,
    judged,
    tool_usage,
    trials,
)
from zelda_ci.compare.comparison import compare
from zelda_ci.compare.sides import summarize
from zelda_ci.domain.comparison import Verdict
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import Unit, UnitUse
from zelda_ci.domain.measures import Measure
from zelda_ci.domain.run import Fingerprint, RunResult, Versions
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.suite import EfficiencyTargets, ExecutionSettings, JudgeSettings, NetworkSettings
from zelda_ci.domain.workspace import IsolationReport

EVERYTHING = [efficiency(), correctness(), fulfillment("P"), tool_usage()]
WORSE = [efficiency(score=10, cost=1.0), correctness(0.0), fulfillment("F"), tool_usage(10.0)]
JUDGED = {Measure.REQUIREMENT_FULFILLMENT, Measure.TOOL_USAGE}
RESOURCES = {Measure.EFFICIENCY, Measure.COST, Measure.TOKENS, Measure.TURNS, Measure.DURATION}


def inconclusive(found) -> set[Measure]:
    return {delta.measure for delta in found.suites[0].measures if delta.verdict is Verdict.INCONCLUSIVE}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"prompt": "Do that."}, "different suite prompts"),
        ({"model": "model-2"}, "different session models: model-1, model-2"),
        ({"model": f"n-{'m' * 58}"}, f"different session models: model-1, n-{'m' * 58}"),
        ({"model": f"n-{'m' * 59}"}, "different session models"),
        ({"setup_command": "npm ci"}, "different session settings"),
        ({"replayed": True}, "different sources of the model's words (live and replayed)"),
    ],
)
def test_what_shapes_the_session_makes_everything_inconclusive_and_never_gates(config, reason):
    found = compare(trials(EVERYTHING), trials(WORSE, label="b", **config))
    assert found.suites[0].reasons == (reason,)
    assert found.suites[0].verdict is Verdict.INCONCLUSIVE
    assert inconclusive(found) == set(Measure) - {Measure.TESTS}
    assert found.suites[0].criteria[0].verdict is Verdict.INCONCLUSIVE
    assert found.overall == ()
    assert not gate_of(found).reasons
    # The values of both sides are shown without a delta.
    row = next(delta for delta in found.suites[0].measures if delta.measure is Measure.COST)
    assert (row.baseline, row.candidate) == (summarize([0.1]), summarize([1.0]))
    assert (row.change, row.effect) == (None, None)


def test_a_different_limit_of_the_session_is_a_different_session():
    (new,) = trials(WORSE, label="b")
    limited = new.config.model_copy(update={"execution": ExecutionSettings(model="model-1", max_turns=5)})
    found = compare(trials(EVERYTHING), [new.model_copy(update={"config": limited})])
    assert found.suites[0].reasons == ("different session settings",)


@pytest.mark.parametrize(
    ("config", "touched", "reason"),
    [
        (
            {"acceptance_criteria": ("criterion 1", "another")},
            {Measure.REQUIREMENT_FULFILLMENT},
            "different acceptance criteria",
        ),
        ({"answer_criteria": ("another",)}, {Measure.REQUIREMENT_FULFILLMENT}, "different answer criteria"),
        ({"judge": JudgeSettings(votes=3)}, JUDGED, "different numbers of judge votes"),
        ({"test_command": "make test"}, {Measure.FUNCTIONAL_CORRECTNESS}, "different build and test settings"),
        ({"efficiency_targets": EfficiencyTargets(turns=3)}, {Measure.EFFICIENCY}, "different efficiency targets"),
    ],
)
def test_what_shapes_one_evaluation_touches_only_its_measure(config, touched, reason):
    found = compare(trials(EVERYTHING), trials(EVERYTHING, label="b", **config))
    assert inconclusive(found) == touched
    assert {delta.reasons for delta in found.suites[0].measures if delta.measure in touched} == {(reason,)}
    assert found.suites[0].reasons == ()


@pytest.mark.parametrize(
    ("changed", "touched", "reason"),
    [
        (fulfillment("F", version="2"), {Measure.REQUIREMENT_FULFILLMENT}, "evaluator versions: 1, 2"),
        (
            fulfillment("F", judge=JUDGE.model_copy(update={"model": "judge-2"})),
            {Measure.REQUIREMENT_FULFILLMENT},
            "different judge models: judge-1, judge-2",
        ),
        (
            tool_usage(10.0, judge=JUDGE.model_copy(update={"prompt_version": "7"})),
            {Measure.TOOL_USAGE},
            "different judge prompt versions: 1, 7",
        ),
        (efficiency(score=1.0, version="2"), RESOURCES, "efficiency evaluator versions: 1, 2"),
    ],
)
def test_another_evaluator_or_judge_touches_only_what_it_made(changed, touched, reason):
    others = [found for found in EVERYTHING if found.metric != changed.metric]
    found = compare(trials(EVERYTHING), trials([*others, changed], label="b"))
    assert inconclusive(found) == touched
    assert all(
        reason in delta.reasons[0] for delta in found.suites[0].measures if delta.verdict is Verdict.INCONCLUSIVE
    )
    criterion = found.suites[0].criteria[0]
    assert (criterion.verdict is Verdict.INCONCLUSIVE) == (Measure.REQUIREMENT_FULFILLMENT in touched)


def test_the_judge_named_in_the_configuration_counts_where_the_details_name_none():
    old = trials([fulfillment("P", judge=None)], judge_model="judge-1")
    new = trials([fulfillment("F", judge=None)], label="b", judge_model="judge-2")
    assert compare(old, new).suites[0].criteria[0].reasons == ("different judge models: judge-1, judge-2",)


def test_one_side_that_mixes_models_cannot_be_compared_and_both_sides_replayed_can():
    mixed = [*judged("P"), *judged("P", label="z", model="model-2")]
    assert compare(mixed, judged("P", "P", label="b")).suites[0].verdict is Verdict.INCONCLUSIVE
    found = compare(judged("P", replayed=True), judged("F", label="b", replayed=True)).suites[0]
    assert found.candidate
    assert (found.verdict, found.candidate.replayed) == (Verdict.CHANGED, 1)
    assert "replay recorded sessions" in found.notes[0]


def test_new_and_removed_criteria_say_so_though_the_others_become_inconclusive():
    old = trials([fulfillment("PP", ["stays", "goes"])], acceptance_criteria=("stays", "goes"))
    new = trials([fulfillment("FF", ["comes", "stays"])], label="b", acceptance_criteria=("comes", "stays"))
    found = {delta.criterion: delta.verdict for delta in compare(old, new).suites[0].criteria}
    assert found == {"comes": Verdict.NEW, "stays": Verdict.INCONCLUSIVE, "goes": Verdict.REMOVED}


def test_allow_mixed_gives_deltas_and_verdicts_keeps_the_reasons_and_never_gates():
    old, new = trials(*[EVERYTHING] * 10), trials(*[WORSE] * 10, label="b", model="model-2")
    found = compare(old, new, allow_mixed=True)
    row = next(delta for delta in found.suites[0].measures if delta.measure is Measure.REQUIREMENT_FULFILLMENT)
    assert (row.verdict, row.change, row.gates) == (Verdict.REGRESSED, -100, False)
    assert "different session models: model-1, model-2" in row.reasons
    assert (found.mixed, compare(old, new).mixed) == (True, False)
    assert found.suites[0].verdict is Verdict.REGRESSED
    assert not gate_of(found).reasons


def test_allow_mixed_does_not_turn_a_failed_side_into_a_removal():
    broken = judged("P", label="b", status=SessionStatus.FAILED)
    found = compare(judged("P"), broken, allow_mixed=True)
    assert found.suites[0].verdict is Verdict.INCONCLUSIVE
    assert found.suites[0].criteria[0].verdict is Verdict.INCONCLUSIVE


def on(runs: list[RunResult], **fields: object) -> list[RunResult]:
    return [run.replace(**fields) for run in runs]


def image(name: str) -> Fingerprint:
    return Fingerprint(outcome="o", platform=name, tree="t", parts={"system": name})


ON_OTHER_PLATFORMS = {
    "Claude Code 2.1.0 before, 2.2.0 now": {"versions": Versions(zelda="0", agent_sdk="0", cli="2.2.0", python="3.11")},
    "models model-1-old before, model-1-new now": {"models": ("model-1-new",)},
    "system old before, new now": {"fingerprint": image("new")},
}


@pytest.mark.parametrize(("words", "fields"), ON_OTHER_PLATFORMS.items())
def test_stored_trials_of_another_platform_blame_nobody(words, fields):
    old = on(judged(*["P"] * 10), models=("model-1-old",), fingerprint=image("old"))
    new = on(judged(*["F"] * 10, label="b"), models=("model-1-old",), fingerprint=image("old"))
    assert compare(old, new).verdict is Verdict.REGRESSED
    found = compare(old, on(new, **fields))
    sentence = f"the platform changed ({words}): only new trials of the base show what is to blame"
    criterion = found.suites[0].criteria[0]
    assert (found.verdict, criterion.verdict, criterion.change) == (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE, -100)
    assert sentence in criterion.reasons
    assert not [reason for reason in gate_of(found).reasons if reason.kind == "regression"]
    # Neither does it praise, and what is alike stays so.
    assert compare(on(new, **fields), old).verdict is Verdict.INCONCLUSIVE
    assert compare(old, on(judged(*["P"] * 10, label="b"), **fields)).verdict is Verdict.UNCHANGED
    # In spite of it there may be a verdict, which never gates.
    mixed = compare(old, on(new, **fields), allow_mixed=True)
    assert (mixed.mixed, mixed.verdict) == (True, Verdict.REGRESSED)
    assert not [reason for reason in gate_of(mixed).reasons if reason.kind == "regression"]
    # Side by side, whatever answered is the change's own doing.
    assert compare_beside(old, on(new, **fields)).verdict is Verdict.REGRESSED


def test_the_overall_rows_of_another_platform_blame_nobody_either():
    suites = [f"s{number}" for number in range(8)]
    old = [run for name in suites for run in judged("P", "P", suite=name)]
    new = [run for name in suites for run in judged("F", "F", suite=name, label="b")]
    assert compare(old, new).overall[0].gates
    moved = [run.replace(versions=run.versions.replace(cli="3.0.0")) for run in new]
    row = compare(old, moved).overall[0]
    assert (row.verdict, row.gates) == (Verdict.INCONCLUSIVE, False)


def test_a_sub_agent_that_answers_in_some_trials_only_is_no_other_platform():
    old, new = judged(*["P"] * 10), judged(*["F"] * 10, label="b")
    both, one = ("model-1", "small-1"), ("model-1",)
    assert compare(on(old, models=both), on(new, models=one)).verdict is Verdict.REGRESSED
    assert compare(on(old, models=one), on(new, models=both)).verdict is Verdict.REGRESSED


def test_other_plugins_are_told_and_stand_in_no_way():
    def with_kit(*, loaded: bool) -> RunResult:
        unit = Unit(kind=ItemKind.PLUGIN, path=safe("p"), name=safe("kit@skills-dir"))
        return judged("P")[0].replace(steering=(UnitUse(unit=unit, loaded=loaded),))

    suite = compare([with_kit(loaded=True)], [with_kit(loaded=False)]).suites[0]
    assert suite.notes == ("different plugins of the session: kit@skills-dir, none",)
    assert suite.verdict is Verdict.UNCHANGED


def test_other_isolation_and_versions_are_told_and_stand_in_no_way():
    strict = {"isolation": IsolationReport(level="full", network=NetworkSettings(session="none"))}
    found = compare(
        [run.model_copy(update=strict) for run in trials(EVERYTHING)],
        [run.model_copy(update={"isolation": IsolationReport(level="uid")}) for run in trials(EVERYTHING, label="b")],
    ).suites[0]
    assert found.notes == ("different isolation levels: full, uid", "different networks of the session: none, open")
    assert found.reasons == ()
    other = compare(judged("P"), judged("P", label="b", cli="2.2.0")).suites[0]
    assert (other.notes, other.verdict) == (("different Claude Code versions: 2.1.0, 2.2.0",), Verdict.UNCHANGED)


def test_suites_that_cannot_be_compared_leave_the_others_alone():
    passing, failing = ["P"] * 10, ["F"] * 10
    old = judged(*passing, suite="a") + judged(*passing, suite="b")
    new = judged(*failing, suite="a", label="n", prompt="Else.") + judged(*failing, suite="b", label="n")
    found = compare(old, new)
    assert [suite.verdict for suite in found.suites] == [Verdict.INCONCLUSIVE, Verdict.REGRESSED]
    assert [reason.suite for reason in gate_of(found).reasons] == ["b", "b"]
