"""Which suites a change can concern."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import START, result, safe, suite
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import SteeringChange, Unit, UnitUse
from zelda_ci.domain.run import Fingerprint, RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.selection.choice import NOTHING, SuiteEvidence, choose, line_changes, reasons, steering_changes
from zelda_ci.selection.effects import ChangeSet, FileChange, FileText, ProjectFiles

PROJECT = ProjectFiles(folder="", config="zelda.config.yaml", test_dir="zelda")
DEPLOY, CRITIC = ".claude/skills/deploy/SKILL.md", ".claude/agents/critic.md"


def trial(number: int = 1, *, touched: tuple[str, ...] | None = ("lib/a.py",), **fields: Any) -> RunResult:
    """A stored trial that had a skill and a sub-agent; `used`, `missed` are paths."""
    used, missed = fields.pop("used", ()), fields.pop("missed", ())
    kinds = {DEPLOY: ItemKind.SKILL, CRITIC: ItemKind.AGENT}
    uses = tuple(
        UnitUse(
            unit=Unit(kind=kind, path=safe(path), name=safe("x")), loaded=True, used=path in used, missed=path in missed
        )
        for path, kind in kinds.items()
    )
    given = {"steering": uses, "touched": None if touched is None else tuple(map(safe, touched)), **fields}
    return result(f"example-2026-02-13T14-30-0{number}", started_at=START + timedelta(seconds=number), **given)


def evidence(*trials: RunResult, name: str = "example", **settings: Any) -> SuiteEvidence:
    stored = trials or tuple(trial(number) for number in range(3))
    return SuiteEvidence(suite(name, **settings), frozenset({f"zelda/test-{name}.yaml"}), stored)


SAME = FileText()


def changed(path: str, before: FileText | None = SAME, after: FileText | None = SAME) -> ChangeSet:
    return ChangeSet((FileChange(path, before, after),))


def runs(changes: ChangeSet, *suites: SuiteEvidence) -> list[str]:
    return [it.suite for it in choose(changes, suites or (evidence(),), PROJECT) if it.runs]


def rule(*globs: str) -> FileText:
    return FileText(globs=globs)


@pytest.mark.parametrize(
    "path",
    [
        "CLAUDE.md", "AGENTS.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "claude.md", ".mcp.json", "lib/.mcp.json",
        ".claude/settings.json", ".claude/hooks/check.sh", ".claude/output-styles/a.md", ".claude/rules/money.md",
        ".claude/skills/deploy", ".claude/unknown.md", ".claude/agents/notes.txt",
        ".claude-plugin/plugin.json", "skills/other/SKILL.md", "zelda.config.yaml", "zelda/fixtures/a.json",
    ],
)  # fmt: skip
def test_what_every_suite_may_feel_runs_every_suite(path: str) -> None:
    assert runs(changed(path)) == ["example"]


@pytest.mark.parametrize("path", ["CLAUDE.md", ".claude/settings.json", "zelda.config.yaml", "tools/drawn.py", "sub"])
def test_what_a_suite_names_in_a_command_is_no_less_what_it_is_to_the_others(path: str) -> None:
    """Otherwise a pull request could name CLAUDE.md in the command of one suite and have no other run."""
    kind = FileText(kind="submodule") if path == "sub" else SAME
    changes = ChangeSet((FileChange(path, kind, kind),), {"tools": "run by .mcp.json"})
    names = SuiteEvidence(suite("other"), frozenset({"zelda/test-other.yaml", path}))
    assert runs(changes, evidence(), names) == ["example", "other"]


def test_what_a_suite_names_is_its_own_and_what_lies_beside_suites_stays_everybodys() -> None:
    names = frozenset({"zelda/test-other.yaml", "prompts/own.md", "fixtures", "zelda", "zelda/check.sh"})
    other = SuiteEvidence(suite("other"), names)
    for path in ("zelda/test-other.yaml", "prompts/own.md", "fixtures/deep/a.txt", "zelda/check.sh"):
        assert runs(changed(path), evidence(), other) == ["other"], path
    assert runs(changed("zelda/test-other.yaml", None), evidence(), other) == ["other"]
    assert runs(changed("fixtures.txt"), evidence(), other) == []
    assert runs(changed("zelda/shared.sh"), evidence(), other) == ["example", "other"]


@pytest.mark.parametrize(
    "path", ["README.md", "lib/a.py", "docs/CLAUDE-notes.md", "zelda/test-gone.yaml", "zeldas/a.py"]
)
def test_what_steers_nothing_runs_nothing(path: str) -> None:
    gone = None if path.endswith(".yaml") else FileText()
    choices = choose(changed(path, FileText(), gone), [evidence()], PROJECT)
    assert [(choice.runs, choice.reason) for choice in choices] == [(False, NOTHING)]


@pytest.mark.parametrize(
    "trials",
    [
        [trial(1, used={DEPLOY}), trial(2), trial(3)],
        [trial(1), trial(2, missed={DEPLOY}), trial(3)],
        [trial(1), trial(2)],
        [trial(1), trial(2), trial(3, status=SessionStatus.TIMED_OUT)],
        [trial(1), trial(2), trial(3, steering=None)],
        [trial(1), trial(2), trial(3, steering=())],
        [trial(1), trial(2), trial(3, config=suite(prompt="Do more."))],
        [trial(1), trial(2), trial(3, config=suite(judgeModel="claude-opus-5-5"))],
        [trial(1), trial(2), trial(3, config=suite(metrics={"toolUsage": False}))],
    ],
)
def test_the_text_of_a_skill_concerns_who_called_or_missed_it_and_who_is_not_known(trials: list[RunResult]) -> None:
    assert runs(changed(DEPLOY), evidence(*trials)) == ["example"]
    for own in ("steps.md", "run.py"):
        assert runs(changed(f".claude/skills/deploy/{own}"), evidence(*trials)) == ["example"]


def test_others_are_left_out_and_the_sentence_says_why() -> None:
    other = evidence(*[trial(n, used={DEPLOY}) for n in range(3)], name="other")
    choices = choose(changed(DEPLOY), [evidence(), other, evidence(name="third")], PROJECT)
    assert [it.runs for it in choices] == [False, True, False]
    assert reasons(choices, runs=False) == (
        "Not run: example, third: none of 3 trials called the skill deploy or missed it",
    )
    assert choices[1].reason == f"{DEPLOY} changed, and a trial called the skill deploy or missed it"


def test_links_submodules_what_is_drawn_in_and_configured_paths_concern_all_or_who_names_them() -> None:
    own = evidence(name="own", gate={"paths": ["src/api/**", "*.lock"]})
    felt = {"docs/style.md": "imported by CLAUDE.md", "tools": "beside a program that .mcp.json runs"}
    link, submodule, other = (FileText(kind=kind) for kind in ("link", "submodule", "other"))
    for change, wanted in (
        (FileChange("lib/x", link, None), ["example", "own"]),
        (FileChange("vendor/x", submodule, submodule), ["example", "own"]),
        (FileChange("lib/logo.png", other, other), []),
        (FileChange("docs/style.md", SAME, SAME), ["example", "own"]),
        (FileChange("tools/deep/server.py", SAME, SAME), ["example", "own"]),
        (FileChange("toolset/a.py", SAME, SAME), []),
        (FileChange("src/api/x.py", SAME, SAME), ["own"]),
        (FileChange("uv.lock", SAME, SAME), ["own"]),
        (FileChange("src/b.py", SAME, SAME), []),
    ):
        assert runs(ChangeSet((change,), felt), evidence(), own) == wanted, change.path


def test_a_new_gone_or_unreadable_skill_and_another_head_concern_all() -> None:
    for before, after in (
        (None, FileText()),
        (FileText(), None),
        (FileText("a"), FileText("b")),
        (FileText(kind="other"), FileText()),
        (FileText(), FileText(kind="link")),
    ):
        assert runs(changed(DEPLOY, before, after)) == ["example"]
        assert runs(changed(CRITIC, before, after)) == ["example"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (changed("api/CLAUDE.md"), False),
        (changed("lib/CLAUDE.md"), True),
        (changed("lib/CLAUDE.md", None), True),
        (changed("api/CLAUDE.md", None), False),
        (changed("api/CLAUDE.md", FileText(), None), True),
        (changed("lib/.claude/skills/x/SKILL.md", FileText("a"), FileText("b")), True),
        (changed("api/.claude/skills/x/SKILL.md", FileText("a"), FileText("b")), False),
        (changed(".claude/rules/a.md", rule("*.py"), rule("*.py")), True),
        (changed(".claude/rules/a.md", rule("*.ts"), rule("*.py")), True),
        (changed(".claude/rules/a.md", rule("*.py"), rule("*.ts")), True),
        (changed(".claude/rules/a.md", rule("*.ts"), rule("*.rs")), False),
        (changed(".claude/rules/a.md", None, rule("*.ts")), False),
        (changed(".claude/rules/a.md", rule("*.ts"), FileText()), True),
        (changed(".claude/rules/a.md", rule("*.ts"), None), True),
    ],
)
def test_what_waits_for_files_concerns_who_touched_them(change: ChangeSet, *, expected: bool) -> None:
    assert bool(runs(change)) is expected
    assert runs(change, evidence(*[trial(n, touched=None) for n in range(3)])) == ["example"]
    assert runs(change, evidence(trial(1), trial(2))) == ["example"]


def test_in_a_project_further_down_what_lies_above_is_always_there_and_beside_it_waits() -> None:
    project = ProjectFiles("apps/web", "apps/web/zelda.config.yaml", "apps/web/zelda")
    suites = [evidence(*[trial(n, touched=("apps/web/a.ts",)) for n in range(3)], gate={"paths": ["src/**"]})]

    felt = ["CLAUDE.md", "apps/CLAUDE.md", "apps/web/.claude/settings.json", "apps/web/src/a.ts"]
    beside = ["apps/mobile/CLAUDE.md", "apps/mobile/.claude/skills/x/SKILL.md", "apps/mobile/zelda.config.yaml"]
    asked = (*felt, *beside, "src/a.ts")
    assert [path for path in asked if choose(changed(path), suites, project)[0].runs] == felt


def test_it_fails_open() -> None:
    assert runs(ChangeSet(problem="what changed could not be read")) == ["example"]
    assert runs(changed(DEPLOY), SuiteEvidence(suite(), frozenset())) == ["example"]


TODAY = {"agentSdk": "0.2", "system": "debian", "evaluators": "e"}


def told(number: int, models: tuple[str, ...] = ("m",), **parts: Any) -> RunResult:
    own = Fingerprint(
        outcome="o", platform="p", tree="t", parts={**TODAY, "cli": "2", "isolationLevel": "full", **parts}
    )
    return trial(number, fingerprint=own, models=models, finished_at=START + timedelta(seconds=number))


@pytest.mark.parametrize("part", list(TODAY))
def test_trials_of_another_claude_code_system_or_judge_tell_nothing_of_today(part: str) -> None:
    """What a suite calls may have changed with them."""
    known = evidence(*[told(n) for n in range(3)])
    assert runs(changed(DEPLOY), replace(known, today=TODAY)) == []
    other = replace(known, today={**TODAY, part: "new"})
    (choice,) = choose(changed(DEPLOY), [other], PROJECT)
    assert choice.runs
    assert "only 0 of the 3 stored trials" in choice.reason
    assert "3 more broke off, or are of other settings, judges, models or Claude Code" in choice.reason
    new: dict[str, Any] = {part: "new"}
    mixed = evidence(*[told(n, **(new if n < 2 else {})) for n in range(4)])
    assert runs(changed(DEPLOY), replace(mixed, today=TODAY)) == ["example"]
    # A change that nobody can feel runs nothing all the same.
    assert runs(changed("README.md"), other) == []


def test_trials_that_other_models_answered_than_the_newest_tell_nothing() -> None:
    def suite_of(*models: tuple[str, ...]) -> SuiteEvidence:
        return evidence(*[told(number, each) for number, each in enumerate(models)])

    assert runs(changed(DEPLOY), suite_of(("old",), ("old",), ("m",))) == ["example"]
    assert runs(changed(DEPLOY), suite_of(("h", "old"), ("h", "old"), ("h", "m"))) == ["example"]
    # A further model helps now and then.
    assert runs(changed(DEPLOY), suite_of(("h", "m"), ("m",), ("h", "m"))) == []
    assert runs(changed(DEPLOY), suite_of(("old",), ("m",), ("m",), ("m",))) == []


def test_the_files_that_steer_are_told_with_their_line_and_the_suites_that_may_feel_them() -> None:
    caller = evidence(*[trial(n, used={DEPLOY}) for n in range(3)], name="caller")
    unknown = evidence(trial(1), name="unknown")
    files = (
        FileChange("CLAUDE.md", SAME, SAME, line=12),
        FileChange(DEPLOY, SAME, SAME, line=3),
        FileChange(".claude/rules/a.md", SAME, None, line=1),
        FileChange(".claude/rules/b.md", rule("x.md"), rule("x.md"), line=4),
        FileChange("lib/a.py", SAME, SAME, line=7),
        FileChange("docs/a.md", SAME, SAME),
        FileChange("zelda/test-caller.yaml", SAME, SAME),
    )
    found = steering_changes(ChangeSet(files, felt={"docs/a.md": "imported"}), [caller, unknown, evidence()], PROJECT)
    assert found == (
        SteeringChange(path="CLAUDE.md", line=12),
        SteeringChange(path=DEPLOY, line=3, suites=("caller", "unknown")),
        SteeringChange(path=".claude/rules/a.md", is_gone=True),
        SteeringChange(path=".claude/rules/b.md", line=4, suites=("unknown",)),
        SteeringChange(path="docs/a.md"),
    )
    assert [it.concerns("example") for it in found] == [True, False, True, False, True]


def test_files_that_steer_differ_at_the_first_line_that_does() -> None:
    rows: dict[str, tuple[list[str] | None, list[str] | None, tuple[int | None, bool] | None]] = {
        "same": (["a"], ["a"], None),
        "gone": (["a"], None, (None, True)),
        "new": (None, [], (1, False)),
        "edited": (["a", "b", "c"], ["a", "x", "c"], (2, False)),
        "longer": (["a"], ["a", "b"], (2, False)),
        "shorter": (["a", "b"], ["a"], (1, False)),
        "blob": (["x"], ["y"], (1, False)),
    }
    before = {name: row[0] for name, row in rows.items() if row[0] is not None}
    after = {name: row[1] for name, row in rows.items() if row[1] is not None}
    found = {it.path: (it.line, it.is_gone) for it in line_changes(before, after)}
    assert found == {name: row[2] for name, row in rows.items() if row[2]}
