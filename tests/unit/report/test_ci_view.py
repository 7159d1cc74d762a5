"""What CI is told: the first line, the order of suites, what never took effect, whether there is something to say."""

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import safe
from tests.golden.batches import efficiency
from tests.golden.ci_reports import FOUND, HOSTILE, LINKS, REPORTS, before, report, trial
from tests.support.cited import citation
from tests.unit.compare.runs import evaluation
from zelda_ci.domain.comparison import (
    BaselineOrigin,
    BaselineState,
    CommandsFailed,
    GateResult,
    NotLoaded,
    Uncounted,
    UncountedReason,
)
from zelda_ci.domain.details import ToolUsageDetails
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestEntry, SteeringChange
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import Failure, RunResult
from zelda_ci.domain.session import ModelUsage, SessionStatus
from zelda_ci.domain.suite import GateSettings
from zelda_ci.domain.trials import Side
from zelda_ci.domain.workspace import ChangeSummary
from zelda_ci.report.builders.comparison import comparison_view
from zelda_ci.report.ci_report import CiReport, PullRequestChanges
from zelda_ci.report.comment.view import annotations, ci_view, log_lines
from zelda_ci.report.junit import render_junit
from zelda_ci.report.markdown import render_comment
from zelda_ci.report.model import Row, plain

GREEN = GateResult()
BROKEN: dict[str, Any] = {
    "status": SessionStatus.FAILED,
    "failure": Failure(code="CLI_KILLED", message=safe("It was killed.")),
}


def rows(told: CiReport) -> list[str]:
    """The first column of the table of what moved."""
    return [line.cells[0].text for line in ci_view(told).table.lines]


def lead(told: CiReport) -> str:
    return " ".join(plain(line) for line in ci_view(told).lead)


def about_run(told: CiReport) -> tuple[Row, ...]:
    (fold,) = (fold for fold in ci_view(told).details if fold.title.startswith("About this run"))
    return fold.rows


def basis(told: CiReport) -> str:
    return " ".join(plain(line) for line in ci_view(told).basis)


def same(**fields: Any) -> CiReport:
    """Nothing changed."""
    return report(before(), before(minute=90), **fields)


def test_what_fails_as_before_is_green_and_no_change() -> None:
    old, new = ([trial(name, "P", minute=minute) for name in ("add-logging", "discount-codes")] for minute in (1, 90))
    view = ci_view(report(old, new))
    assert (view.headline, view.lead, view.causes) == ("no change found in 2 suites", (), ())
    assert ci_view(same()).headline == "no change found in 4 suites, 1 fails on the base, too"
    assert rows(same()) == ["receipt-tax, fails on the base, too", "3 suites as before"]
    assert lead(same()) == "The check is green: what does not pass fails on the base, too."


def test_worse_and_green_is_explained() -> None:
    found = REPORTS["regression"]()
    asks = [
        run.replace(config=run.config.replace(gate=GateSettings(fail_on=("evaluation",)))) for run in found.batch.runs
    ]
    quiet = replace(found, gate=GREEN, batch=found.batch.replace(runs=tuple(asks)))
    assert "The check is green: gate.failOn does not ask for regressions." in lead(quiet)
    assert "the sides differ in more than the files that steer" in lead(replace(found, gate=GREEN))
    perhaps = lead(replace(REPORTS["changed"](), gate=GREEN))
    assert "The check is green: nothing is proven to be worse, and one session" in perhaps


@pytest.mark.parametrize(("files", "linked"), [(("src/routes/orders.py",), False), (("src/app.py",), True)])
def test_a_citation_leads_to_a_file_only_if_no_session_has_changed_it(files: tuple[str, ...], *, linked: bool) -> None:
    found = REPORTS["changed"]()
    changes = ChangeSummary(files=tuple(map(safe, files)))
    runs = tuple(run.replace(changes=changes) for run in found.batch.runs)
    text = render_comment(ci_view(replace(found, batch=found.batch.replace(runs=runs))))
    place = f"[src/routes/orders.py:18-21]({LINKS.files}/src/routes/orders.py#L18-L21)"
    assert (place in text) is linked


@pytest.mark.parametrize("where", ["../../evil:1", "/etc/passwd:1", "a//b:1", "turn 7"])
def test_a_citation_never_leads_out_of_the_commit(where: str) -> None:
    found = REPORTS["changed"]()
    assert found.comparison
    (suite,) = (each for each in found.comparison.suites if each.suite == "rest-endpoint")
    told = suite.criteria[0].candidate_judgement
    assert told
    cited = told.replace(evidence=(citation(where),))
    criteria = (suite.criteria[0].replace(candidate_judgement=cited), *suite.criteria[1:])
    others = tuple(each for each in found.comparison.suites if each is not suite)
    comparison = found.comparison.replace(suites=(suite.replace(criteria=criteria), *others))
    runs = tuple(run.replace(changes=ChangeSummary()) for run in found.batch.runs)
    view = ci_view(replace(found, comparison=comparison, batch=found.batch.replace(runs=runs)))
    (place,) = (phrase for phrase in view.causes[0][1] if phrase.text == where)
    assert place.url is None


def test_cost_turns_and_time_alone_are_no_lack_of_evidence() -> None:
    dearer = [trial("add-logging", "P", cost=0.9, turns=25, seconds=400, minute=90)]
    view = ci_view(report([trial("add-logging", "P")], dearer))
    assert view.headline == "no change found in 1 suite"
    assert view.table.lines[0].cells[-1].text == "$0.18 \u2192 $0.90"


def test_below_the_table_stands_what_it_rests_on_and_the_money_of_both_sides() -> None:
    told = same()
    assert basis(told) == (
        "Compared with main@abc1234 (3 commits behind, 2 days old). 1 session per suite here, 1 on the base: cost, "
        "turns and time differ between any two. This run cost $0.80 with the judge."
    )
    bases = tuple(run.model_copy(update={"side": Side.BASE, "run_id": f"b-{run.run_id}"}) for run in told.batch.runs)
    of_both = told.batch.replace(base_runs=bases, budget_usd=8.0)
    alone, both = told.batch.cost_usd, of_both.cost_usd
    assert both == pytest.approx(2 * alone)
    view = ci_view(replace(told, batch=of_both))
    assert plain(view.basis[0]).endswith(f" This run cost ${both:.2f} of $8.00 with the judge.")
    (cost,) = (row for row in about_run(replace(told, batch=of_both)) if row.label == "Cost of this run")
    assert cost.cells[1].text == f"judge ${0.021 * 8:.4f}"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (BaselineState.NONE_YET, ", nothing to compare with yet"),
        (BaselineState.EXPIRED, ", not compared"),
        (BaselineState.NOT_PERMITTED, ", not compared"),
        (BaselineState.INVALID, ", not compared"),
        (BaselineState.UNREACHABLE, ", not compared"),
        (BaselineState.OFF, ""),
        (BaselineState.FOUND, ", not compared"),
    ],
)
def test_the_first_line_says_why_nothing_was_compared(state: BaselineState, words: str) -> None:
    origin = BaselineOrigin(state=state, sentence="the reason in full")
    told = report((), [trial("add-logging", "P")], baseline=origin)
    assert ci_view(told).headline == f"1 of 1 suite passes{words}"
    assert lead(told) == ("" if state is BaselineState.OFF else "The reason in full.")


def test_a_suite_of_one_side_is_called_new_or_removed_and_after_a_cancellation_not_run() -> None:
    old, new = [trial("rest-endpoint", "PPP")], [trial("add-logging", "P", minute=90)]
    assert rows(report(old, new)) == ["add-logging, new", "rest-endpoint, removed"]
    assert ci_view(report(old, new)).headline == "1 of 1 suite passes, all new, 1 removed"
    assert rows(report(old, new, interrupted=True)) == ["rest-endpoint, not run", "add-logging, ran"]


def test_annotations_have_the_order_and_the_words_of_the_comment() -> None:
    found = [*annotations(REPORTS["failed"](), prefix="services/shop")]
    assert [(it.level, it.file, it.title) for it in found] == [
        ("error", "services/shop/zelda/test-receipt-tax.yaml", "Zelda: receipt-tax, worse"),
        ("error", "services/shop/zelda/test-rest-endpoint.yaml", "Zelda: rest-endpoint, could not be tested"),
        ("error", "services/shop/zelda/test-discount-codes.yaml", "Zelda: discount-codes, could not be tested"),
        ("warning", "services/shop/zelda/test-add-logging.yaml", "Zelda: add-logging, perhaps worse"),
        ("warning", "services/shop/zelda/test-add-logging.yaml", "Zelda: add-logging, perhaps worse"),
    ]
    assert found[3].message.startswith("“Every handler logs the request id” was met on main and is not met here.")


def test_an_annotation_points_at_the_line_that_may_have_done_it() -> None:
    worse, better = annotations(REPORTS["regression"](), prefix="services/shop")
    assert (worse.file, worse.line) == (".claude/skills/rest-conventions/SKILL.md", 3)
    assert (better.level, better.file) == ("notice", "services/shop/zelda/test-receipt-tax.yaml")
    assert better.message.startswith("Better: “A test covers a receipt with two tax rates”")


@pytest.mark.parametrize("file", ["/etc/passwd", "a/../../x"])
def test_an_annotation_never_points_out_of_the_repository(file: str) -> None:
    run = trial("add-logging", "F")
    run = run.model_copy(update={"config": run.config.model_copy(update={"file": file})})
    assert {(one.file, one.line) for one in annotations(report((), [run]))} == {("", None)}


@pytest.mark.parametrize("number", [1e-300, 1e300])
def test_numbers_without_measure_break_nothing(number: float) -> None:
    usage = {"m": ModelUsage(cost_usd=number)}
    numbers: dict[str, Any] = {"wall_seconds": number, "cost_usd": number, "api_seconds": number, "models": usage}
    run = trial("add-logging", "P", phase_seconds={"session": number})
    run = run.model_copy(update={"evaluations": {Metric.EFFICIENCY: efficiency(number, **numbers)}})
    told = report([run], [run])
    text = render_comment(ci_view(told))
    assert len(text) < 5_000
    assert render_junit(told)


def test_what_fails_on_the_base_too_is_listed_and_counted_as_no_reason_to_be_red() -> None:
    why = CommandsFailed(suite="add-logging", trials=3, of=3)
    told = same(gate=GateResult(uncounted=(UncountedReason(reason=why, because=Uncounted.ON_BASE),)))
    view = ci_view(told)
    assert not view.failed
    assert view.headline == "no change found in 4 suites, 1 fails on the base, too"
    assert "The check is green: what does not pass fails on the base, too." in lead(told)
    (entry,) = (entry for entry in view.details if "no reason to be red" in entry.title)
    assert "add-logging: build, tests or coverage fall short in 3 of 3 sessions" in entry.rows[0].cells[0].text
    (line,) = (line for line in log_lines(told) if "not counted" in line)
    assert line.endswith("fall short in 3 of 3 sessions: fails on the base, too")
    assert not [one for one in annotations(told) if one.level == "error"]
    assert told.comparison
    shown = comparison_view(told.comparison, told.gate, baseline="a", candidate="b").gate.rows
    assert [row.label for row in shown] == ["Passed", "Not counted"]


@pytest.mark.parametrize(
    ("name", "fields", "told"),
    [
        ("same", {}, (False, False)),
        ("same", {"interrupted": True}, (True, True)),
        ("same", {"gate": GateResult(reasons=(CommandsFailed(suite="x", trials=1, of=1),))}, (False, True)),
        ("regression", {}, (True, True)),
        ("changed", {"gate": GREEN}, (True, False)),
        ("improvement", {"gate": GREEN}, (True, False)),
    ],
)
def test_whether_there_is_something_to_say(name: str, fields: dict[str, Any], told: tuple[bool, bool]) -> None:
    made = same(**({"gate": GREEN} | fields)) if name == "same" else replace(REPORTS[name](), **fields)
    view = ci_view(made)
    assert (view.changed, view.failed) == told


def test_what_was_not_compared_is_something_to_say_unless_nobody_asked_for_it() -> None:
    runs = [trial("add-logging", "P")]
    assert ci_view(report((), runs)).changed
    assert not ci_view(report((), runs, baseline=FOUND.model_copy(update={"state": BaselineState.OFF}))).changed
    broken = ci_view(report(runs, [trial("add-logging", "P", minute=9, **BROKEN)]))
    assert (broken.changed, broken.failed) == (True, True)
    nothing = ci_view(report((), ()))
    assert (nothing.headline, nothing.failed, nothing.table.lines) == ("nothing was run", True, ())


def test_of_many_suites_the_first_are_told_and_the_rest_is_counted() -> None:
    view = ci_view(REPORTS["crowd"]())
    assert view.headline == "worse over all 60 suites together, perhaps worse in 60"
    assert "over all suites together requirement fulfillment went from 100.0 to 33.3" in plain(view.lead[0])
    assert [plain(box[0]).partition(":")[0] for box in view.causes] == ["suite-000", "suite-001", "suite-002"]
    assert view.more_causes == "and 117 more causes in 57 further suites"
    assert len(view.table.lines) == 13
    assert view.table.lines[-1].cells[0].text == "and 48 more suites: 48 perhaps worse"


def test_each_row_leads_to_its_suite_in_the_page_where_there_is_one_and_what_is_folded_to_its_beginning() -> None:
    page = "https://acme.example/r.html"
    many, alone = REPORTS["failed"](), REPORTS["improvement"]()
    view = ci_view(replace(many, links=replace(many.links, report=page)))
    assert [line.cells[0].url for line in view.table.lines] == [
        f"{page}#suite-{name}" for name in ("receipt-tax", "rest-endpoint", "discount-codes", "add-logging")
    ]
    text = render_comment(view)
    assert f"[Report]({page}#suite-receipt-tax)" in text
    assert f"[report]({page})" in text
    folded = replace(same(), links=replace(many.links, report=page))
    assert ci_view(folded).table.lines[-1].cells[0].url == page
    assert not any(line.cells[0].url for line in ci_view(alone).table.lines)


def test_what_is_cancelled_or_accepted_is_no_error_and_annotations_are_one_line_of_plain_text() -> None:
    assert not [*annotations(REPORTS["cancelled"]())]
    assert {one.level for one in annotations(REPORTS["accepted"]())} == {"warning", "notice"}
    for one in annotations(REPORTS["hostile"](), prefix=HOSTILE):
        assert (one.message + one.title + one.file).isprintable()


SETTINGS = ".claude/settings.json"
SUBMODULE = "The checkout lacks 1 submodule, so sessions find empty folders: .claude/skills. Give actions/checkout it."


def entry(kind: ItemKind, name: str, file: str, reason: str) -> ManifestEntry:
    return ManifestEntry(kind=kind, name=safe(name), file=safe(file), reason=safe(reason))


SERVER = entry(ItemKind.MCP_SERVER, "kit", ".mcp.json", "it could not be started or reached")
SKILL = entry(ItemKind.SKILL, "tax", ".claude/skills/tax", "its folder holds no SKILL.md")
HOOK = entry(ItemKind.HOOK, "Stop", SETTINGS, "Claude Code does not load it")


def having(runs: list[RunResult], *missing: ManifestEntry) -> list[RunResult]:
    """The runs, whose sessions had everything but this."""
    found = evaluation(Metric.TOOL_USAGE, ToolUsageDetails(not_loaded=missing), 90.0)
    return [run.replace(evaluations={**run.evaluations, Metric.TOOL_USAGE: found}) for run in runs]


def told(head: list[RunResult], base: list[RunResult], *paths: str, **fields: Any) -> CiReport:
    changes = PullRequestChanges(steering=tuple(SteeringChange(path=path) for path in paths))
    return report(base, head, changes=changes, **fields)


def calm(*missing: ManifestEntry, minute: int = 90) -> list[RunResult]:
    return having([trial("add-logging", "P", minute=minute)], *missing)


@pytest.mark.parametrize(
    ("here", "there", "changed", "brief", "sentence"),
    [
        ([SERVER], [], [".mcp.json"], "the MCP server kit is not loaded", "(.mcp.json) is not loaded: it could not be"),
        ([SKILL], [], [".claude/skills/tax"], "the skill tax is not loaded", "its folder holds no SKILL.md."),
        ([SKILL], [], [".gitmodules", ".claude/skills/tax/SKILL.md"], "the skill tax is not loaded", "no SKILL.md."),
        ([SERVER, SKILL], [SKILL], [".mcp.json", ".claude/skills/tax"], "the MCP server kit is not loaded", "kit"),
        ([SERVER], [SERVER], [".mcp.json"], "", ""),
        ([SERVER], [], ["CLAUDE.md"], "", ""),
        ([], [SERVER], [".mcp.json"], "", ""),
    ],
)
def test_a_change_that_no_session_had_is_the_headline_and_not_no_change_found(
    here: list[ManifestEntry], there: list[ManifestEntry], changed: list[str], brief: str, sentence: str
) -> None:
    found = told(calm(*here), calm(*there, minute=1), *changed)
    headline = ci_view(found).headline
    assert headline == (f"{brief}, 1 suite without it" if brief else "no change found in 1 suite")
    assert sentence in lead(found)


def test_what_one_session_had_took_effect() -> None:
    both = [*calm(SERVER), *having([trial("add-logging", "P", 2, minute=95)])]
    assert ci_view(told(both, calm(minute=1), ".mcp.json")).headline == "no change found in 1 suite"


def test_a_submodule_that_is_not_checked_out_is_named() -> None:
    found = told(calm(), calm(minute=1), ".claude/skills")
    noted = found.batch.replace(notes=(safe(SUBMODULE),))
    view = ci_view(CiReport(noted, GateResult(), found.baseline, comparison=found.comparison, changes=found.changes))
    assert view.headline == ".claude/skills is not checked out, 1 suite without it"


def test_only_a_check_is_called_red() -> None:
    found = REPORTS["regression"]()
    assert lead(found) == "The check is red for this."
    assert lead(replace(found, tested=None)) == ""


def test_a_refused_settings_file_is_red_and_speaks_for_what_is_in_it() -> None:
    refused = NotLoaded(file=SETTINGS, effect="not loaded: model: Expected string")
    found = told(calm(HOOK), calm(minute=1), SETTINGS)
    red = told(calm(HOOK), calm(minute=1), SETTINGS, gate=GateResult(reasons=(*found.gate.reasons, refused)))
    view = ci_view(red)
    assert (view.headline, view.failed) == (f"{SETTINGS} is not loaded, 1 suite without it", True)
    assert lead(red) == (
        f"{SETTINGS} is not loaded: model: Expected string. "
        "The check is red because a settings file or plugin is not loaded."
    )
    assert '<failure type="notLoaded"' in render_junit(red)
    (remark,) = annotations(red)
    assert (remark.level, remark.file) == ("error", SETTINGS)


@pytest.mark.parametrize(("others", "blamed"), [((), True), (("shop/cart.py",), False)])
def test_tests_that_fail_before_any_session_are_never_blamed_on_a_line_that_steers(
    others: tuple[str, ...],
    blamed: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    old = [trial("add-logging", "P", n, minute=n) for n in range(1, 6)]
    new = [trial("add-logging", "P", n, minute=90 + n, failed=3) for n in range(1, 6)]
    changes = PullRequestChanges(steering=(SteeringChange(path="CLAUDE.md", line=12),), others=others)
    found = report(old, new, changes=changes)
    early = found.batch.replace(failing_before={"add-logging": safe("3 of 14 tests failed.")})
    found = report(old, new, changes=changes, batch=early)
    boxes = " ".join(plain(line) for box in ci_view(found).causes for line in box)
    places = {remark.file for remark in annotations(found)}
    assert ("CLAUDE.md (from line 12)" in boxes, "CLAUDE.md" in places) == (blamed, blamed)
    assert ("fails on this commit before any session: 3 of 14 tests failed. What breaks it" in boxes) != blamed
    assert ("shop/cart.py" in boxes, "shop/cart.py" in places) == (not blamed, not blamed)


def test_a_new_suite_that_fails_is_said_to_fail() -> None:
    new = trial("search", "F", minute=95, criteria=("It finds by name",))
    found = report(before(), [*before(minute=90), new])
    assert "1 new suite fails" in ci_view(found).headline
    table = [line.cells[0].text for line in ci_view(found).table.lines]
    assert "search, new, fails" in table


def test_compared_with_is_said_only_where_trials_of_the_base_stand_behind_it() -> None:
    assert basis(report(before(), before(minute=90))).startswith("Compared with main@")
    found = report([trial("receipt-tax", "PP")], before(minute=90)[:1])
    alone = found.comparison and found.comparison.replace(
        suites=tuple(it.replace(baseline=None) for it in found.comparison.suites if it.candidate)
    )
    words = basis(report([trial("receipt-tax", "PP")], before(minute=90)[:1], comparison=alone, gate=GateResult()))
    assert words.startswith("1 session per suite here, all as expected; main was not needed")
