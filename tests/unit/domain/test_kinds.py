"""The table of the kinds, and the page that shows it."""

from pathlib import Path

import pytest

from tests.builders import safe
from zelda_ci.domain.kinds import KINDS, ItemKind, may_steer
from zelda_ci.domain.session import ToolCall

PAGE = (Path(__file__).parents[3] / "docs/steering.md").read_text("utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_line_on_the_page_and_its_files_steer(kind: ItemKind) -> None:
    row = KINDS[kind]
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {row.word} |")]
    _, _, files, _, _, used, _ = line.split("|")
    assert used.strip() == row.used
    assert row.folder in files
    for name in row.files:
        assert name in files
        place = f".claude/{row.folder or 'x'}"
        assert may_steer(f"{place}/{name if not name.startswith('.') else 'x' + name}")


def test_every_kind_has_a_row() -> None:
    assert set(KINDS) == set(ItemKind)


@pytest.mark.parametrize(
    ("name", "given", "label"),
    [
        ("Workflow", {"name": "ship"}, "Skill(ship)"),
        ("Workflow", {"script": "export const meta = {}"}, "Workflow"),
        ("Skill", {"skill": "/ship"}, "Skill(ship)"),
        ("Agent", {"subagent_type": "critic"}, "Agent(critic)"),
    ],
)
def test_a_call_is_named_as_what_it_calls(name: str, given: dict[str, str], label: str) -> None:
    call = ToolCall(id=safe("t"), started_at=0, name=safe(name), input=safe.json(given))
    assert call.label == label
