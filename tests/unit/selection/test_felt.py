"""What a session felt of the files that steer it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.builders import records, result, safe, transcript
from tests.support.steered import head, scanned
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import UnitUse
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import HookRan, Started
from zelda_ci.execution.manifest.loading import resolve_loaded
from zelda_ci.selection.felt import MAX_TOUCHED, with_felt

FILES = {
    "CLAUDE.md": "Be kind. @docs/style.md\n",
    "docs/style.md": "Short lines.\n",
    "api/CLAUDE.md": "Return JSON.\n",
    ".claude/rules/money.md": head("Use Decimal.\n", paths="['*.money.py']"),
    ".claude/skills/deploy/SKILL.md": head(description="Deploys."),
    ".claude/skills/deploy/steps.md": "1. Go.\n",
    ".claude/skills/release/SKILL.md": head(description="Releases."),
    ".claude/commands/fix.md": head(description="Fixes."),
    ".claude/agents/critic.md": head(name="critic", description="Reads."),
    ".claude/workflows/w.js": "export const meta = {name: 'ship', description: 'Ships.'}\n",
    ".claude/settings.json": '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}',
    ".mcp.json": '{"mcpServers": {"db": {"command": "db"}}}',
}
NAMES = {
    "skills": ("deploy", "release"),
    "slash_commands": ("fix", "ship"),
    "agents": ("critic",),
    "tools": ("mcp__db__ask",),
}


def felt(
    tmp_path: Path, *steps: str, judged: Mapping[str, Any] | None = None, changed: tuple[str, ...] = (), ran: str = ""
) -> RunResult:
    manifest = scanned(tmp_path, FILES).replace(workspace=safe("/tree"))
    happened = [
        record.replace(**{key: tuple(map(safe, names)) for key, names in NAMES.items()})
        if isinstance(record, Started)
        else record
        for record in records(*steps)
    ]
    if ran:
        happened.insert(1, HookRan(at=1, name=safe(ran), event=safe(ran), outcome=safe("success"), output=safe("")))
    log = transcript(happened)
    usage = {"metric": "toolUsage", "version": "1", "reasoning": safe(""), "details": judged or {}}
    run = result(evaluations={"toolUsage": usage}, changes={"files": changed})
    return with_felt(run, resolve_loaded(manifest, log, safe), log, safe)


def uses(outcome: RunResult) -> dict[str, UnitUse]:
    return {use.unit.name: use for use in outcome.steering or ()}


def used(outcome: RunResult) -> set[str]:
    return {name for name, use in uses(outcome).items() if use.used}


def test_a_hook_that_ran_is_used_and_with_too_many_files_nobody_says_what_was_not_touched(tmp_path: Path) -> None:
    many = tuple(f"gen/{number}.py" for number in range(MAX_TOUCHED + 1))
    outcome = felt(tmp_path, '"Done."', ran="Stop", changed=many)
    assert (used(outcome), outcome.touched) == ({"Stop"}, None)


def test_what_is_always_there_is_loaded_and_nothing_is_used(tmp_path: Path) -> None:
    outcome = felt(tmp_path, '"Done."')
    loaded = {name for name, use in uses(outcome).items() if use.loaded}
    assert loaded == {
        "CLAUDE.md", "docs/style.md", "deploy", "release", "fix", "critic", "ship", "db", "Stop",
    }  # fmt: skip
    assert not used(outcome)
    assert outcome.touched == ()
    assert {use.unit.kind for use in outcome.steering or ()} == {*ItemKind} - {ItemKind.PLUGIN, ItemKind.MOD}


@pytest.mark.parametrize(
    ("step", "names"),
    [
        ("Skill deploy", {"deploy"}),
        ("Agent critic", {"critic"}),
        ("mcp__db__ask x", {"db"}),
        ("Read /tree/.claude/skills/deploy/steps.md", {"deploy"}),
        ("Bash cat .claude/skills/*/SKILL.md", {"deploy", "release"}),
        ("Bash grep -rn Go . -> ./.claude/skills/deploy/steps.md:1:1. Go.", {"deploy"}),
        ("Bash git show -> +++ b/.claude/agents/critic.md", {"critic"}),
        ("Bash find . -> ./.claude/agents/critic.md", set()),
        ("Bash make deploy", set()),
    ],
)
def test_what_is_called_or_read_is_used(tmp_path: Path, step: str, names: set[str]) -> None:
    assert used(felt(tmp_path, step)) == names


def test_the_judge_says_what_was_missed_and_broken(tmp_path: Path) -> None:
    remark = {"reasoning": "so"}
    judged = {
        "missed": [{"tool": "Skill(deploy)", **remark}, {"tool": "mcp__db__ask", **remark}],
        "misused": [{"tool": "Agent(critic)", **remark}],
        "rules": [
            {"rule": "CLAUDE.md", "verdict": "broken", **remark},
            {"rule": "docs/style.md", "verdict": "followed", **remark},
        ],
    }
    outcome = uses(felt(tmp_path, "Agent critic", judged=judged))
    assert {name for name, use in outcome.items() if use.missed} == {"deploy", "db"}
    assert {name for name, use in outcome.items() if use.broken} == {"critic", "CLAUDE.md"}
    assert {name for name, use in outcome.items() if use.used} == {"critic", "CLAUDE.md", "docs/style.md"}
