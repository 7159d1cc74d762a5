"""Counting calls."""

from typing import Any

import pytest

from tests.builders import records, safe, session, transcript
from zelda_ci.domain.details import ToolUse
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.domain.session import ToolCall, UserSaid
from zelda_ci.metrics.tool_usage import count_uses


def offered(*names: str, loaded: bool = True, kind: ItemKind = ItemKind.SKILL) -> ToolsManifest:
    items = (ManifestItem(kind=kind, name=safe(name), file=safe(name), loaded=loaded) for name in names)
    return ToolsManifest(items=tuple(items))


def counted(*steps: str, manifest: ToolsManifest | None = None) -> dict[str, tuple[int, int, int]]:
    uses = count_uses(session(*steps), manifest, safe)
    return {use.tool: (use.calls, use.errors, use.denied) for use in uses}


def test_calls_are_counted_with_their_errors_and_denials() -> None:
    steps = ("Bash a + Bash b -> error", "Bash c -> denied", "Read x", "mcp__greeter__greet Ann -> error")
    assert counted(*steps) == {"Bash": (3, 1, 1), "Read": (1, 0, 0), "mcp__greeter__greet": (1, 1, 0)}
    # A call that never returned is one, too, and the most used come first.
    uses = count_uses(session("Read a", "Bash a", "Bash b -> nothing"), None, safe)
    assert uses == (ToolUse(tool=safe("Bash"), calls=2), ToolUse(tool=safe("Read"), calls=1))


def test_skills_and_sub_agents_go_by_their_own_names_in_every_thread() -> None:
    steps = ("Skill changelog", "Skill /changelog", "Agent reviewer", "Task reviewer", "> Grep x", "Skill", "Agent")
    assert counted(*steps) == {
        "Skill(changelog)": (2, 0, 0),
        "Agent(reviewer)": (2, 0, 0),
        "Grep": (1, 0, 0),
        "Skill": (1, 0, 0),
        "Agent(general-purpose)": (1, 0, 0),
    }


@pytest.mark.parametrize("given", [{}, {"skill": None}, {"skill": ["a"]}, {"skill": ""}, {"__unparsedToolInput": {}}])
def test_input_of_any_shape_is_counted(given: dict[str, Any]) -> None:
    assert ToolCall(id=safe("1"), name=safe("Skill"), input=safe.json(given), started_at=0).label == "Skill"
    endless = safe.json({"skill": "x" * 10_000})
    assert len(ToolCall(id=safe("1"), name=safe("Skill"), input=endless, started_at=0).label) < 120


def slashed(prompt: str, *said: str, manifest: ToolsManifest) -> dict[str, int]:
    happened = [*records("Read a"), *(UserSaid(at=9, text=safe(text)) for text in said)]
    heard = transcript(happened).model_copy(update={"prompt": safe(prompt)})
    return {use.tool: use.calls for use in count_uses(heard, manifest, safe) if use.tool != "Read"}


def test_a_skill_or_command_that_was_written_with_a_slash_counts() -> None:
    assert slashed("/deploy now", manifest=offered("deploy", kind=ItemKind.COMMAND)) == {"Skill(deploy)": 1}
    named = "<command-name>/deploy</command-name>"
    assert slashed("Do it.", named, manifest=offered("deploy")) == {"Skill(deploy)": 1}
