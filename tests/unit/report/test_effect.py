"""What the comment says of changes that never took effect, of tests that fail before any session, of new suites."""

from typing import Any

import pytest

from tests.builders import safe
from tests.golden.ci_reports import before, report, trial
from tests.unit.compare.runs import evaluation
from tests.unit.report.test_ci_view import basis, lead
from zelda_ci.compare.gate import joined
from zelda_ci.domain.comparison import GateResult, NotLoaded
from zelda_ci.domain.details import ToolUsageDetails
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestEntry
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.steering import SteeringChange
from zelda_ci.report.comment.annotations import annotations
from zelda_ci.report.comment.view import ci_view
from zelda_ci.report.junit import render_junit
from zelda_ci.report.model import plain
from zelda_ci.report.told import CiReport, PullRequestChanges

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


def test_a_refused_settings_file_is_red_and_speaks_for_what_is_in_it() -> None:
    refused = NotLoaded(file=SETTINGS, effect="not loaded: model: Expected string; 1 hook has no effect")
    found = told(calm(HOOK), calm(minute=1), SETTINGS)
    red = told(calm(HOOK), calm(minute=1), SETTINGS, gate=joined(found.gate, GateResult(reasons=(refused,))))
    view = ci_view(red)
    assert (view.headline, view.failed) == (f"{SETTINGS} is not loaded, 1 suite without it", True)
    assert lead(red) == (
        f"{SETTINGS} is not loaded: model: Expected string; 1 hook has no effect. "
        "The check is red although nothing is proven to be worse: a settings file or plugin is not loaded."
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
    assert ("CLAUDE.md, line 12" in boxes, "CLAUDE.md" in places) == (blamed, blamed)
    assert ("fails on this commit before any session: 3 of 14 tests failed. What breaks it" in boxes) != blamed
    assert ("shop/cart.py" in boxes, "shop/cart.py" in places) == (not blamed, not blamed)


def test_a_new_suite_that_fails_is_said_to_fail() -> None:
    new = trial("search", "F", minute=95, criteria=("It finds by name",))
    found = report(before(), [*before(minute=90), new])
    assert "1 new suite fails" in ci_view(found).headline
    assert "search is new and fails" in lead(found)
    assert "as before" not in lead(found).partition("search is new")[0]
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
