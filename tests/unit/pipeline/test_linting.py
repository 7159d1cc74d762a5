"""What lint finds in suites, by what the project has and what stored trials showed. Each case has its counterpart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.builders import result, safe
from zelda_ci.config.project import load
from zelda_ci.domain.check import LintFinding
from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict, EfficiencyDetails, FulfillmentDetails
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem, Unit, UnitUse
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.run import Fingerprint, RunResult
from zelda_ci.domain.session import Usage
from zelda_ci.domain.workspace import ChangeSummary
from zelda_ci.pipeline.linting import Linter
from zelda_ci.survey.folder import Survey

SKILL = ".claude/skills/changelog/SKILL.md"
RULE = ".claude/rules/api.md"
STEERING = {
    SKILL: "---\nname: changelog\n---\nWrite it.\n",
    RULE: "# API\n\nEvery endpoint answers errors with a JSON body that has a code.\n",
    "docs/a.md": "Hello.\n",
}


def item(kind: ItemKind, name: str, file: str = ".claude/settings.json", **texts: str) -> ManifestItem:
    more: dict[str, Any] = {key: safe(value) for key, value in texts.items()}
    return ManifestItem(kind=kind, name=safe(name), file=safe(file), **more)


ITEMS = (
    item(ItemKind.SKILL, "changelog", SKILL),
    item(ItemKind.SKILL, "broken", SKILL, problem="it has no head"),
    item(ItemKind.SKILL, "docs:pdf", SKILL),
    item(ItemKind.SKILL, "ship", SKILL, shown="hidden"),
    item(ItemKind.AGENT, "reviewer", ".claude/agents/reviewer.md"),
    item(ItemKind.MCP_SERVER, "my.github", ".mcp.json"),
    item(ItemKind.RULE, RULE, RULE),
    item(ItemKind.HOOK, "PreToolUse:Bash|Write", description="command: ./guard.sh"),
    item(ItemKind.HOOK, "PreToolUse:mcp__my_github__.*", description="command: ./guard.sh"),
    item(ItemKind.HOOK, "SessionStart", description="command: ./start.sh"),
)


def linted(
    tmp_path: Path,
    suite: str,
    *,
    runs: Sequence[RunResult] = (),
    items: Sequence[ManifestItem] = ITEMS,
    whole: bool = False,
) -> list[LintFinding]:
    """The findings on one suite in a project that has some of everything."""
    for name, text in {**STEERING, "zelda/test-example.yaml": suite}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = Survey(tmp_path, tmp_path, "", None, tuple(STEERING), (), tuple(items), ())
    suites = [loaded.resolved for loaded in load(tmp_path).suites]
    return list(Linter(found, runs).report(suites, whole=whole).findings)


def words(findings: Sequence[LintFinding]) -> list[tuple[int, str]]:
    return [(each.line, each.rule) for each in findings]


def of_check(tmp_path: Path, check: str, *, items: Sequence[ManifestItem] = ITEMS) -> list[LintFinding]:
    """The findings on a check beside one that asks for something."""
    return linted(tmp_path, f"prompt: Do.\nchecks:\n  - {check}\n  - called: Bash\n", items=items)


POSSIBLE = [
    "called: Skill(changelog)", "called: Skill(pdf)", "called: Skill(docs:pdf)", "called: Skill(change*)",
    "called: Skill(/changelog)", "called: Skill(simplify)", "called: Skill", "called: Agent(Explore)",
    "called: Task(reviewer)", "called: mcp__my_github__search", "called: mcp__my_github", "called: mcp__*__search",
    "called: Read(docs/a.md)", "called: Read(a.md)", "called: Read(docs)", "called: Read(new/*.md)",
    "called: Read(//etc/hosts)", "called: Read(./docs/a.md)", "called: Read(dist/made.js)",
    "order: [Write(new.md), Read(new.md)]", "called: Skill(changelog:*)", "called: Skill(docs:*)",
    "called: TaskUpdate", "called: Bas*", "notCalled: Skill(ship)", "routed: skill ship",
    "routed: [skill changelog, agent reviewer, none]", "called: Edit(new.md)", "notCalled: Read(.env)",
    "notRead: [secrets/**]", "changedOnly: [new/**]", "hookRan: PreToolUse", "hookRan: PreToolUse(guard)",
    "hookRan: PreToolUse(Bash)", "hookRan: SessionStart(start)", 'hookBlocked: "Bash(git push*)"',
    "hookBlocked: mcp__my_github", "hookBlocked: Edit(src/**)", "hookFailed: none", 'notCalled: "Bash(git push*)"',
]  # fmt: skip


@pytest.mark.parametrize("check", POSSIBLE)
def test_a_check_that_may_match_is_no_finding(tmp_path: Path, check: str) -> None:
    assert of_check(tmp_path, check) == []


IMPOSSIBLE = [
    ("called: Skill(changelogs)", "skill changelogs", ["Skill(changelog)"]),
    ("notCalled: Skill(broken)", "skill broken", []),
    ("called: Skill(ship)", "the model may not make one", []),
    ("called: Agent(reviewers)", "sub-agent reviewers", ["Agent(reviewer)"]),
    ("called: mcp__github__search", "MCP server of mcp__github__search", []),
    ("routed: [skill changelogs, none]", "skill changelogs", []),
    ("notCalled: Skil(changelog)", "Claude Code has no tool Skil", ["Skill(changelog)"]),
    ("order: [Edit, Skill(x)]", "skill x", []), ("hookRan: PostToolUse", "hook PostToolUse", []),
]  # fmt: skip


@pytest.mark.parametrize(("check", "lacking", "instead"), IMPOSSIBLE)
def test_a_check_that_can_never_match_says_what_is_lacking(
    tmp_path: Path, check: str, lacking: str, instead: list[str]
) -> None:
    (found,) = [each for each in of_check(tmp_path, check) if each.rule == "cannotMatch"]
    assert (found.file, found.line, [*found.instead]) == ("zelda/test-example.yaml", 3, instead)
    assert lacking in found.reason


def test_a_hook_can_block_only_where_one_waits_for_calls(tmp_path: Path) -> None:
    assert words(of_check(tmp_path, "hookBlocked: Read(.env)", items=ITEMS[-1:])) == [(3, "cannotMatch")]


def test_both_sides_of_before_are_looked_at(tmp_path: Path) -> None:
    check = "before: {first: Skill(x), then: Skill(y)}"
    found = of_check(tmp_path, check)
    assert words(found) == [(3, "cannotMatch"), (3, "cannotMatch"), (3, "passesIdle")]
    assert found[2].instead == ('- called: "Skill(y)"',)


def test_a_prompt_that_expects_what_is_not_there_is_named_at_its_line(tmp_path: Path) -> None:
    prompts = (
        "- {prompt: a, expect: [none, skill changelogs]}\n- {prompt: a, expect: [skill docs:pdf, agent Explore]}\n"
    )
    found = linted(tmp_path, f"kind: routing\nprompts:\n{prompts}- {{prompt: b, expect: agent changelog}}\n")
    assert words(found) == [(3, "cannotMatch"), (5, "cannotMatch")]


@pytest.mark.parametrize(
    ("checks", "instead"),
    [
        ('- before: {first: Read, then: "Bash(git commit*)"}', ['- called: "Bash(git commit*)"']),
        ("- {called: Skill(changelog), times: ..3}", ['- {called: "Skill(changelog)", times: 1..3}']),
        ("- {called: Skill(changelog), times: 0..2}", ['- {called: "Skill(changelog)", times: 1..2}']),
    ],
)
def test_a_check_that_an_idle_session_passes_gets_what_it_lacks(
    tmp_path: Path, checks: str, instead: list[str]
) -> None:
    (found,) = linted(tmp_path, f"prompt: Do.\nchecks:\n  {checks}\n  - called: Edit\n")
    assert (found.line, found.rule, [*found.instead]) == (3, "passesIdle", instead)


ASKING = [
    '- before: {first: Read, then: "Bash(git commit*)"}\n  - called: "Bash(git commit*)"',
    "- before: {first: Read, then: Edit}\n  - order: [Read, Edit]", "- {called: Skill(changelog), times: 1..3}",
    "- notCalled: Edit\n  - changed: [a.md]", "- notCalled: Edit\n  - command: ./check.sh",
    "- notCalled: Edit\n  - says: done", "- notCalled: Edit\ntestCommand: make test",
    "- notCalled: Edit\nacceptanceCriteria: [X is there.]",
    # What must not be there may be there before.
    "- notCalled: Edit\nacceptanceCriteria: [No test fails.]",
    "- notCalled: Edit\nacceptanceCriteria: [No file in src/ uses `moment`.]",
    "- notCalled: Edit\nacceptanceCriteria: [No entry is added twice.]",
    "- notCalled: Edit\nacceptanceCriteria: [No arquivo a.md há uma seção nova.]",
]  # fmt: skip


@pytest.mark.parametrize("checks", ASKING)
def test_what_an_idle_session_may_fail_is_no_finding(tmp_path: Path, checks: str) -> None:
    assert linted(tmp_path, f"prompt: Do.\nchecks:\n  {checks}\n") == []


@pytest.mark.parametrize(
    "suite",
    [
        "checks:\n  - notCalled: Edit\n  - notSays: never\n  - notRead: [.env]\n  - hookFailed: none\n",
        'checks:\n  - changedOnly: ["src/**"]\n',
        "mustPass: [Nothing is deleted.]\nchecks:\n  - notCalled: Edit\n",
        "acceptanceCriteria: [No test outside of src/ is changed., Claude never runs a migration.]\n",
        "acceptanceCriteria: [The session makes no changes., No commits are made., Nothing must be deleted.]\n",
    ],
)
def test_a_suite_that_only_forbids_is_passed_by_an_idle_session(tmp_path: Path, suite: str) -> None:
    (found,) = linted(tmp_path, f"prompt: Do.\n{suite}")
    assert (found.line, found.rule, found.subject, found.instead) == (1, "passesIdle", "example", ())


def test_a_suite_that_asks_nothing_is_told(tmp_path: Path) -> None:
    assert words(linted(tmp_path, "prompt: Do.\n")) == [(1, "asksNothing")]
    off = "prompt: Do.\nacceptanceCriteria: [X is there.]\nmetrics: {requirementFulfillment: false}\n"
    assert words(linted(tmp_path, off)) == [(1, "asksNothing")]
    assert linted(tmp_path, "prompt: Do.\ntestCommand: make\n") == []


def test_a_finding_is_on_the_line_of_its_own_item_and_each_item_of_a_line_has_its_own(tmp_path: Path) -> None:
    found = linted(tmp_path, "prompt: Do.\nacceptanceCriteria: ['It runs\n\n `make a`.', It runs `make b`.]\n")
    assert [each.instead for each in found] == [('- called: "Bash(make a *)"',), ('- called: "Bash(make b *)"',)]


def test_words_of_criteria_have_their_own_line_also_in_a_matrix(tmp_path: Path) -> None:
    suite = (
        "prompt: Do {{x}}.\nmustPass:\n  - It uses the changelog skill.\nacceptanceCriteria:\n"
        "  - Every endpoint answers errors with a JSON body.\n  - X {{x}} is there and Y is gone now.\n"
        "answerCriteria: [It says why., It says what.]\nmatrix: {variables: {x: [one, two]}}\n"
    )
    check, quoted, both = linted(tmp_path, suite)
    assert words([check, quoted, both]) == [(3, "couldBeCheck"), (5, "quotesRule"), (6, "twoInOne")]
    assert check.instead == ("- called: Skill(changelog)", "  mustPass: true")
    assert f"{RULE}:3" in quoted.reason
    assert both.instead == ("- X {{x}} is there.", "- Y is gone now.")


def test_a_check_that_is_offered_in_a_matrix_is_right_for_each_of_its_suites(tmp_path: Path) -> None:
    suite = (
        "prompt: Do {{x}}.\nmatrix: {variables: {x: [README, CHANGELOG]}}\nacceptanceCriteria:\n"
        "  - docs/{{x}}.md is updated.\nchecks:\n  - {called: 'Edit({{x}}.md)', times: ..2}\n"
        "  - before: {first: Read, then: 'Write({{x}}.md)'}\n"
    )
    found = linted(tmp_path, suite)
    assert words(found) == [(6, "passesIdle"), (7, "passesIdle")]
    assert [*found[0].instead, *found[1].instead] == [
        '- {called: "Edit({{x}}.md)", times: 1..2}',
        '- called: "Write({{x}}.md)"',
    ]


# --- stored trials ------------------------------------------------------------------------------------------------

PASS, FAIL, OPEN = CriterionVerdict.PASS, CriterionVerdict.FAIL, CriterionVerdict.UNDECIDED
CRITERION = "X is there."


def trial(
    number: int,
    verdict: CriterionVerdict,
    *,
    state: str = "a",
    calls: int = 1,
    files: tuple[str, ...] = (),
    criterion: str = CRITERION,
    **more: Any,
) -> RunResult:
    judged = CriterionJudgement(criterion=safe(criterion), verdict=verdict, reasoning=safe("So."))
    counts: dict[str, Any] = dict.fromkeys(("subagent_turns", "tool_errors", "denied_calls", "api_retries"), 0)
    times: dict[str, Any] = dict.fromkeys(("turns", "wall_seconds", "api_seconds", "cost_usd"), 1)
    made: dict[str, Any] = {"tool_calls": {"Read": calls} if calls else {}, "cost_known": True}
    efficiency = EfficiencyDetails(usage=Usage(), models={}, parts={}, **counts, **times, **made)
    details = {Metric.REQUIREMENT_FULFILLMENT: FulfillmentDetails(criteria=(judged,)), Metric.EFFICIENCY: efficiency}
    return result(
        f"example-2026-02-13T14-30-{number:02}",
        evaluations={
            key: EvalResult(metric=key, version="1", score=1.0, reasoning=safe("So."), details=it)
            for key, it in details.items()
        },
        fingerprint=Fingerprint(outcome=state, platform="p", tree="t"),
        changes=ChangeSummary(files=tuple(map(safe, files))),
        **more,
    )


def of_trials(
    tmp_path: Path, *trials: RunResult, key: str = "acceptanceCriteria", text: str = CRITERION
) -> list[LintFinding]:
    return linted(tmp_path, f"prompt: Do.\n{key}:\n  - {text}\n", runs=trials)


def test_a_criterion_that_both_passes_and_fails_on_the_same_files_wavers(tmp_path: Path) -> None:
    (found,) = of_trials(tmp_path, *(trial(n, PASS) for n in range(9)), trial(9, FAIL))
    assert (found.line, found.rule) == (3, "wavers")
    assert "Of 10 trials on the same files, 1 went another way" in found.reason


def test_a_rare_failure_other_files_and_open_verdicts_are_no_wavering(tmp_path: Path) -> None:
    assert of_trials(tmp_path, *(trial(n, PASS) for n in range(10)), trial(10, FAIL)) == []
    assert of_trials(tmp_path, trial(1, PASS), trial(2, PASS), trial(3, FAIL, state="b")) == []
    assert of_trials(tmp_path, trial(1, PASS), trial(2, OPEN)) == []


def test_a_criterion_that_no_trial_decided_is_told(tmp_path: Path) -> None:
    (found,) = of_trials(tmp_path, trial(1, OPEN), trial(2, CriterionVerdict.NOT_JUDGED))
    assert (found.rule, "(1 left it open)" in found.reason) == ("neverJudged", True)
    assert of_trials(tmp_path, trial(1, CriterionVerdict.NOT_JUDGED)) == []
    assert of_trials(tmp_path, trial(1, OPEN).replace(suite="another")) == []


def test_a_criterion_that_a_session_passed_idle_is_told_unless_it_is_about_the_answer(tmp_path: Path) -> None:
    idle = trial(1, PASS, calls=0)
    assert of_trials(tmp_path, trial(1, PASS, calls=0, criterion="No X is used."), text="No X is used.") == []
    (found,) = of_trials(tmp_path, idle)
    assert (found.rule, idle.run_id in found.reason) == ("passesIdle", True)
    assert of_trials(tmp_path, idle, key="answerCriteria") == []
    assert of_trials(tmp_path, trial(1, PASS, calls=0, files=("a",)), trial(2, PASS)) == []


def test_what_steers_and_no_trial_touched_is_told_once_all_suites_are_looked_at(tmp_path: Path) -> None:
    units: list[tuple[ItemKind, str, str, dict[str, Any]]] = [
        (ItemKind.SKILL, "changelog", SKILL, {"loaded": True}),
        (ItemKind.SKILL, "gone", "gone/SKILL.md", {}),
    ]
    units += [
        (ItemKind.RULE, RULE, RULE, {}),
        (ItemKind.AGENT, "reviewer", ".claude/agents/reviewer.md", {"used": True}),
    ]
    units += [(ItemKind.HOOK, "SessionStart", ".claude/settings.json", {"loaded": True, "used": True})]
    units += [(ItemKind.HOOK, "PreToolUse:Bash", ".claude/settings.json", {"loaded": True})]
    steering = tuple(
        UnitUse(unit=Unit(kind=kind, name=safe(name), path=safe(file)), **how) for kind, name, file, how in units
    )
    run, suite = trial(1, PASS, steering=steering), f"prompt: Do.\nacceptanceCriteria: [{CRITERION}]\n"
    found = linted(tmp_path, suite, runs=[run], whole=True)
    assert [(each.file, each.rule, each.instead) for each in found] == [
        (RULE, "untouched", ("zelda new api --rule api",)),
        (".claude/settings.json", "untouched", ()),
        (SKILL, "untouched", ("zelda new changelog --skill changelog",)),
    ]
    assert linted(tmp_path, suite, runs=[run], whole=False) == []
    taken = linted(tmp_path, f"name: changelog\n{suite}", runs=[run.replace(suite="changelog")], whole=True)
    assert taken[-1].instead == ("zelda new changelog-2 --skill changelog",)
    new = run.replace(suite="another")
    instead = {each.instead for each in linted(tmp_path, suite.replace("Do", "Use api"), runs=[new], whole=True)}
    assert instead == {("zelda run example",), (), ("zelda new changelog --skill changelog",)}


def test_a_prompt_for_nothing_in_a_routing_suite_is_right(tmp_path: Path) -> None:
    assert linted(tmp_path, "kind: routing\nprompts:\n  - {prompt: Thank you., expect: none}\n") == []
