"""What CI is told: the first line, the order of suites, whether there is something to say, annotations."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import safe
from tests.golden.batches import START, efficiency
from tests.golden.ci_reports import FOUND, HOSTILE, REPORTS, batch, before, report, trial
from zelda_ci.domain.ci import BaselineOrigin, BaselineState, CiReport
from zelda_ci.domain.comparison import CommandsFailed, GateResult, MeasureDelta, Regression, TrialStatistics, Verdict
from zelda_ci.domain.measures import Measure, Metric
from zelda_ci.domain.run import Failure
from zelda_ci.domain.session import ModelUsage, SessionStatus
from zelda_ci.domain.trials import Side
from zelda_ci.domain.workspace import CheckoutReport, IgnoredFiles, IsolationReport, SettingFinding, TreeChange
from zelda_ci.report.builders.annotations import annotations, log_lines
from zelda_ci.report.builders.arms import headline
from zelda_ci.report.builders.ci import ci_view
from zelda_ci.report.builders.ci_table import suite_table, trial_table
from zelda_ci.report.builders.comparison import comparison_view
from zelda_ci.report.junit import render_junit
from zelda_ci.report.markdown import render_comment, render_summary

GREEN = GateResult()
BEHIND = "baseline main@abc1234, 3 commits behind, 2 days old"
CUT = "cancelled before everything had run"
NOISE = "1 trial against 1, differences may be noise"
ON = "Claude Code 2.1.186, claude-sonnet-5-5"
BROKEN: dict[str, Any] = {
    "status": SessionStatus.FAILED,
    "failure": Failure(code="CLI_KILLED", message=safe("It was killed.")),
}


def rows(told: CiReport) -> dict[str, str]:
    """Suite → status."""
    return {line.cells[0].text: line.cells[1].text for line in ci_view(told).table.lines}


def same(**fields: Any) -> CiReport:
    """Nothing changed."""
    return report(before(), before(minute=90), **fields)


@pytest.mark.parametrize(
    ("name", "findings", "trials", "rest"),
    [
        (
            "regression",
            "3 regressions, 2 improvements in 2 suites, 1 evaluation failed",
            f"{BEHIND}; 5 trials against 5",
            f"{ON}; $2.00 with the judge",
        ),
        (
            "changed",
            "no regressions, 5 changed, not proven in 4 suites, 1 evaluation failed",
            f"{BEHIND}; {NOISE}",
            f"{ON}; $0.80 with the judge",
        ),
        (
            "improvement",
            "no regressions, 2 improvements in 1 suite",
            "baseline main@abc1234; 5 trials against 5",
            f"{ON}; $1.00 with the judge",
        ),
        (
            "no-baseline",
            "1 of 2 suites passed, 2 evaluations failed",
            "no baseline yet",
            f"{ON}; $0.40 with the judge",
        ),
        (
            "mixed",
            "no regressions, 12 inconclusive in 3 suites, 2 evaluations failed",
            f"{BEHIND}; 1 to 3 trials against 1 to 3",
            "Claude Code 2.1.186, claude-opus-5, claude-sonnet-5-5; $1.00 with the judge",
        ),
        (
            "cancelled",
            f"{CUT}; no regressions, 11 inconclusive in 2 suites; 1 run interrupted",
            f"{BEHIND}; {NOISE}",
            f"{ON}; $0.38 with the judge",
        ),
    ],
)
def test_the_first_line_says_it_all(name: str, findings: str, trials: str, rest: str) -> None:
    """The verdict, what was compared, trials of both sides, the platform and the money."""
    assert ci_view(REPORTS[name]()).sentence == f"{findings}; {trials}; {rest}"


def test_the_first_line_tells_the_money_of_both_sides_and_of_how_much() -> None:
    told = same()
    bases = tuple(run.model_copy(update={"side": Side.BASE, "run_id": f"b-{run.run_id}"}) for run in told.batch.runs)
    of_both = told.batch.replace(base_runs=bases, budget_usd=8.0)
    alone, both = told.batch.cost_usd, of_both.cost_usd
    assert both == pytest.approx(2 * alone)
    view = ci_view(replace(told, batch=of_both))
    assert view.sentence.endswith(f"; ${both:.2f} of $8.00 with the judge")
    (about,) = (entry for entry in view.details if entry.title.startswith("About this run"))
    (cost,) = (row for row in about.sections[0].rows if row.label == "Cost of this run")
    assert cost.cells[1].text == f"judge ${0.021 * 8:.4f}"


def test_the_first_line_says_that_a_replay_costs_nothing_and_how_many_models_answered() -> None:
    runs = [trial("add-logging", "P", n, models=(f"model-{n}",), replayed=True) for n in range(1, 6)]
    sentence = ci_view(report((), runs)).sentence
    assert sentence.endswith("; Claude Code 2.1.186, model-1, model-2, 3 more models; replayed, nothing was spent")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (BaselineState.NONE_YET, "no baseline yet"),
        (BaselineState.EXPIRED, "the baseline has expired"),
        (BaselineState.NOT_PERMITTED, "no permission to read the baseline"),
        (BaselineState.INVALID, "the baseline cannot be used"),
        (BaselineState.UNREACHABLE, "the baseline could not be fetched"),
        (BaselineState.OFF, "not compared"),
        (BaselineState.FOUND, "not compared"),
    ],
)
def test_the_first_line_says_why_nothing_was_compared(state: BaselineState, words: str) -> None:
    origin = BaselineOrigin(state=state, sentence="the reason in full")
    view = ci_view(report((), [trial("add-logging", "P")], baseline=origin))
    assert view.sentence == f"1 of 1 suite passed; {words}; {ON}; $0.20 with the judge"
    told = [remark.text for remark in view.remarks]
    assert told == ([] if state is BaselineState.OFF else ["The reason in full."])


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (FOUND.model_copy(update={"behind": 1, "created_at": None}), "baseline main@abc1234, 1 commit behind"),
        (FOUND.model_copy(update={"behind": 0, "created_at": None}), "baseline main@abc1234"),
        (FOUND.model_copy(update={"behind": None, "created_at": START - timedelta(hours=5)}), "baseline main@abc1234"),
        (
            FOUND.model_copy(update={"behind": None, "created_at": START - timedelta(hours=40)}),
            "main@abc1234, 40 hours",
        ),
        (FOUND.model_copy(update={"branch": None, "behind": None, "created_at": None}), "baseline abc1234; "),
        (BaselineOrigin(state=BaselineState.FOUND, sentence="a file"), "baseline as given; "),
    ],
)
def test_the_first_line_names_the_baseline(origin: BaselineOrigin, words: str) -> None:
    assert words in ci_view(same(baseline=origin)).sentence


def test_nothing_run_is_no_success() -> None:
    view = ci_view(report((), ()))
    assert view.sentence == "nothing was run; no baseline yet"
    assert view.failed
    assert view.table.lines == ()
    assert render_comment(view).startswith("### Zelda: nothing was run")


def test_suites_that_matter_most_come_first() -> None:
    assert rows(REPORTS["failed"]()) == {
        "receipt-tax": "regressed, failed",
        "rest-endpoint": "error",
        "discount-codes": "error",
        "add-logging": "changed, not proven, failed",
        "Mean of all": "",
    }
    assert list(rows(REPORTS["failed"]())) == [
        "receipt-tax",
        "rest-endpoint",
        "discount-codes",
        "add-logging",
        "Mean of all",
    ]


def test_a_suite_of_one_side_is_called_new_or_removed_and_after_a_cancellation_not_run() -> None:
    old, new = [trial("rest-endpoint", "PPP")], [trial("add-logging", "P", minute=90)]
    assert rows(report(old, new)) == {"add-logging": "new", "rest-endpoint": "removed"}
    assert rows(report(old, new, interrupted=True)) == {"add-logging": "new", "rest-endpoint": "not run"}


def test_several_trials_are_counted() -> None:
    runs = [trial("receipt-tax", "PP", 1), trial("receipt-tax", "PF", 2), trial("receipt-tax", "PP", 3)]
    assert rows(report((), runs)) == {"receipt-tax": "2 of 3 passed"}
    assert [line.cells[1].text for line in trial_table(tuple(runs)).lines] == ["passed", "failed", "passed"]


def test_without_a_baseline_there_are_values_and_no_changes() -> None:
    line = ci_view(REPORTS["no-baseline"]()).table.lines[1]
    assert [cell.text for cell in line.cells] == [
        *("rest-endpoint", "passed", "100.0", "90.0", "100.0", "100.0", "$0.18", "157k", "9", "1m 23s")
    ]


def test_regressions_are_marked_and_changes_have_arrows() -> None:
    line = ci_view(REPORTS["regression"]()).table.lines[0]
    shown = [(cell.text, cell.tone.value) for cell in line.cells]
    assert shown[2] == ("66.7 (\u25bc33.3)", "bad")
    assert shown[4] == ("100.0", "neutral")
    line = ci_view(REPORTS["changed"]()).table.lines[0]
    shown = [(cell.text, cell.tone.value) for cell in line.cells]
    assert shown[1] == ("changed, not proven, failed", "warn")
    assert shown[2] == ("66.7 (\u25bc33.3)", "neutral")
    assert shown[6] == ("$0.24 (\u25b233%)", "neutral")
    assert shown[7] == ("158k (\u25b21%)", "neutral")
    assert shown[8] == ("12 (\u25b23)", "neutral")


def test_an_unscored_metric_is_no_zero() -> None:
    run = trial("add-logging", "?")
    assert suite_table(batch((run,)), None).lines[0].cells[2].text == "n/a"


@pytest.mark.parametrize(
    ("told", "changed", "failed"),
    [
        (same(), False, False),
        (REPORTS["regression"](), True, True),
        (REPORTS["changed"](), True, True),
        (REPORTS["changed"](), True, False),
        (REPORTS["improvement"](), True, False),
        (REPORTS["no-baseline"](), True, True),
        (same(interrupted=True), True, True),
        (report((), [trial("add-logging", "P")]), True, False),
        (
            report((), [trial("add-logging", "P")], baseline=FOUND.model_copy(update={"state": BaselineState.OFF})),
            False,
            False,
        ),
        (report([trial("add-logging", "P")], [trial("add-logging", "P", minute=9, **BROKEN)]), True, True),
        (report(before()[:1], before(minute=90)[:2], gate=GREEN), True, False),
        (same(gate=GateResult(reasons=(CommandsFailed(suite="x", trials=1, of=1),))), False, True),
    ],
)
def test_whether_there_is_something_to_say(told: CiReport, changed: bool, failed: bool) -> None:  # noqa: FBT001
    told = replace(told, gate=GREEN) if not failed else told
    view = ci_view(told)
    assert (view.changed, view.failed) == (changed, failed)


def test_a_tool_that_is_newly_missed_is_a_change() -> None:
    new = trial("add-logging", "P", minute=90, missed=["Skill(x)"])
    same_score = new.evaluations[Metric.TOOL_USAGE].model_copy(update={"score": 90.0})
    new = new.model_copy(update={"evaluations": new.evaluations | {Metric.TOOL_USAGE: same_score}})
    view = ci_view(report([trial("add-logging", "P")], [new], gate=GREEN))
    assert view.changed
    assert "Skill(x): It describes how routes are written here" in render_comment(view)


def test_details_of_changed_criteria_have_both_sides_with_their_evidence() -> None:
    text = render_comment(ci_view(REPORTS["regression"]()))
    assert "**regressed, 5 of 5 \u2192 0 of 5**: GET /orders/{id} answers 404" in text
    assert "Before PASS: It does what is asked. (src/routes/orders.py" in text
    assert "Now FAIL: The handler answers 500" in text


def test_annotations_are_ordered_and_at_their_files() -> None:
    found = annotations(REPORTS["failed"](), prefix="services/shop")
    assert [(one.level, one.file) for one in found if one.level != "error"] == [
        ("warning", "services/shop/zelda/test-rest-endpoint.yaml"),
        ("warning", "services/shop/zelda/test-discount-codes.yaml"),
        ("warning", "services/shop/zelda/test-add-logging.yaml"),
        ("warning", "services/shop/zelda/test-discount-codes.yaml"),
        ("warning", "services/shop/zelda/test-rest-endpoint.yaml"),
    ]
    errors = [one for one in found if one.level == "error"]
    assert len(errors) == 5
    assert list(found[:5]) == errors
    assert errors[0].title == "Zelda: regression in receipt-tax"
    (seen,) = (one for one in found if "not proven" in one.title)
    assert seen.title == "Zelda: changed, not proven in add-logging"
    assert seen.message.endswith(
        "2 values changed: one trial on a side proves no change: set `trials: adaptive`, or more trials"
    )


def test_an_annotation_finds_the_line_of_its_criterion() -> None:
    told = REPORTS["regression"]()
    suite = "prompt: x\nacceptanceCriteria:\n  - GET /orders/{id} answers 404 with a problem\n    document when\n"
    found = annotations(told, texts={"zelda/test-rest-endpoint.yaml": suite})
    assert [one.line for one in found if one.level == "error"] == [3, 1, 1, 3]
    assert {one.line for one in annotations(told)} == {1}


@pytest.mark.parametrize("file", ["/etc/passwd", "../../x", "a/../../x"])
def test_an_annotation_never_points_out_of_the_repository(file: str) -> None:
    run = trial("add-logging", "F")
    run = run.model_copy(update={"config": run.config.model_copy(update={"file": file})})
    assert {(one.file, one.line) for one in annotations(report((), [run]))} == {(None, None)}


def test_an_annotation_about_all_suites_belongs_to_none() -> None:
    old, new = (TrialStatistics(trials=1, mean=mean, minimum=mean, maximum=mean) for mean in (1.0, 2.0))
    delta = MeasureDelta(measure=Measure.COST, verdict=Verdict.REGRESSED, better="lower", baseline=old, candidate=new)
    told = same(gate=GateResult(reasons=(Regression(suite=None, delta=delta),)))
    (only,) = annotations(told)
    assert (only.level, only.file, only.line, only.message) == (
        "error",
        None,
        None,
        "all suites: cost went from 1.0 to 2.0",
    )


def test_annotations_are_one_line_of_plain_text() -> None:
    for one in annotations(REPORTS["hostile"](), prefix=HOSTILE):
        assert one.message.isprintable()
        assert one.title.isprintable()
        assert (one.file or "").isprintable()


@pytest.mark.parametrize("number", [float("inf"), float("nan"), 1e308, -1e308, -1.0])
def test_numbers_that_nobody_can_mean_break_nothing(number: float) -> None:
    usage = {"m": ModelUsage(cost_usd=number)}
    numbers: dict[str, Any] = {"wall_seconds": number, "cost_usd": number, "api_seconds": number, "models": usage}
    run = trial("add-logging", "P", phase_seconds={"session": number})
    run = run.model_copy(update={"evaluations": {Metric.EFFICIENCY: efficiency(number, **numbers)}})
    told = report([run], [run])
    text = render_comment(ci_view(told))
    assert len(text) < 5_000
    assert render_summary(ci_view(told))
    assert render_junit(told)


def test_more_runs_than_any_page_has_room_for_are_only_said_to_be_there() -> None:
    view = ci_view(report((), [trial("add-logging", "P", number) for number in range(1, 503)]))
    titles = [entry.title for entry in view.evidence]
    assert titles[0] == "add-logging: 502 trials"
    assert len([title for title in titles if title.startswith("PASS ")]) == 500
    assert titles[-1] == "More than 500 of them: all are in the artifact"


def test_isolation_is_told_where_results_have_it() -> None:
    found = IsolationReport(
        level="landlock",
        findings=(SettingFinding(file=safe(".claude/settings.json"), setting=safe("env.X"), effect="It was ignored."),),
        protected=(safe("tests/test_a.py"),),
        ignored=IgnoredFiles(kept=(safe("node_modules/"),)),
        tripwire=CheckoutReport(entries=9, seconds=0.1, changes=(TreeChange(path=safe("a"), kind="added"),), more=2),
    )
    plain = trial("add-logging", "P")
    told = report((), [plain.model_copy(update={"isolation": found}), plain])
    about = ci_view(told).details[-1].sections[0].rows
    row = next(row for row in about if row.label == "Isolation")
    assert [cell.text for cell in row.cells] == ["landlock (1 run)"]
    assert [cell.text for cell in row.lines] == [
        ".claude/settings.json: It was ignored.",
        "the session changed protected files, and build and tests saw them as committed: tests/test_a.py",
        "build and tests saw files that git ignores as the session left them: node_modules/",
        "the checkout was not the same after a run as before: 3 differences",
    ]
    assert "Isolation" not in {row.label for row in ci_view(report((), [plain])).details[-1].sections[0].rows}


def test_the_verdict_of_two_arms_tells_what_is_not_proven_and_the_money_of_the_budget() -> None:
    told = REPORTS["changed"]()
    assert told.comparison
    cell = headline(told.batch.replace(budget_usd=8.0), told.comparison)
    assert (cell.text, cell.tone.value) == (
        "changed, not proven in 2 of 4 suites · 4 sessions · $0.80 of $8.00",
        "warn",
    )
    assert headline(told.batch, told.comparison).text.endswith(" · $0.80")


def test_what_fails_on_the_base_too_is_listed_and_counted_as_no_reason_to_be_red() -> None:
    why = CommandsFailed(suite="add-logging", trials=3, of=3)
    told = same(gate=GateResult(on_base=(why,)))
    view = ci_view(told)
    assert not view.failed
    assert view.sentence.startswith("no regressions in 4 suites, 1 failed on the base, too; ")
    (entry,) = (entry for entry in view.details if "on the base, too" in entry.title)
    assert (
        "add-logging: build, tests or coverage fell short in 3 of 3 trials" in entry.sections[0].rows[0].cells[0].text
    )
    (line,) = (line for line in log_lines(told) if "not counted" in line)
    assert line.endswith("fell short in 3 of 3 trials; it fails on the base, too")
    assert not [one for one in annotations(told) if one.level == "error"]
    assert told.comparison
    shown = comparison_view(told.comparison, told.gate, baseline="a", candidate="b").gate.rows
    assert [row.label for row in shown] == ["Passed", "Not counted"]
