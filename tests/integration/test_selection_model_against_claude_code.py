"""The model of Claude Code that `test_selection_misses_nothing` plays claims every text that the real CLI loads.

Each text of the sample project gets a word of its own, and the words in the real CLI's requests say which texts reached
the model. What the model does not claim could change unnoticed: it may claim too much, never too little.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.integration.test_manifest_against_claude_code import lead
from tests.integration.test_selection_misses_nothing import (
    AGENTS,
    HABITS,
    SKILLS,
    Habit,
    Tree,
    felt_texts,
    sample,
    touched_by,
)
from tests.support.scripted_api import Message, text, tool_call

WORD = re.compile(r"WORD-[HB]-\S+?-END")
# What a session runs, or reads because it works on it, steers nothing.
NO_TEXT = (".json", ".py", ".ts", ".sh", "README.md")
BY_NAME = {habit.name: habit for habit in HABITS}
TALK = BY_NAME["talk"]


def word(place: str, file: str) -> str:
    """Of a file's head or body; paths hold characters that JSON escapes, so it has none of them."""
    return f"WORD-{place}-{re.sub('[^a-zA-Z0-9]', '_', file)}-END"


def marked() -> Tree:
    """The sample, in which every text has a word: in the description, and in the body."""
    tree = {file: content for file, content in sample().items() if file != ".mcp.json"}
    for file, content in tree.items():
        if not file.endswith(NO_TEXT):
            described = re.sub(r"^(description: .*)$", rf"\1 {word('H', file)}", content, flags=re.MULTILINE)
            tree[file] = f"{described}\n{word('B', file)}\n"
    return tree


def words_in(texts: str) -> set[str]:
    return set(WORD.findall(texts))


def replies(habit: Habit) -> Iterator[Message]:
    """A session that calls and touches all that sessions of a suite do."""
    for skill in habit.skills:
        yield tool_call("Skill", {"skill": skill})
    for agent in habit.agents:
        yield tool_call(
            "Agent", {"prompt": "p", "description": "d", "run_in_background": False, "subagent_type": agent}
        )
    for file in habit.reads:
        yield tool_call("Read", {"file_path": f"$WORKSPACE/{file}"})
    for command in habit.commands:
        yield tool_call("Bash", {"command": command})


@dataclass(frozen=True)
class Told:
    """The words that reached the model in the first request, before anything was done, and in all of them."""

    first: frozenset[str]
    ever: frozenset[str]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    """By suite; those whose sessions do what another's do as well need none."""
    found = {}
    for name in ("ship", "check", "tell", "move"):
        habit = BY_NAME[name]
        said = [text("I have looked.")] * len(habit.agents)
        session = lead(tmp_path_factory.mktemp(name), marked(), *replies(habit), agents=said)
        found[name] = Told(frozenset(words_in(session.asked[0])), frozenset(words_in(json.dumps(session.asked))))
    return found


def claimed(habit: Habit) -> set[str]:
    """By the model, of a session that does all that this suite's do."""
    called = frozenset((*habit.skills, *habit.agents))
    return words_in("\n".join(felt_texts(marked(), habit, called, touched_by(habit))))


def test_every_text_that_reached_the_model_is_claimed(told: dict[str, Told]) -> None:
    assert {name: each.ever - claimed(BY_NAME[name]) for name, each in told.items()} == dict.fromkeys(told, frozenset())


def test_before_anything_is_done_the_very_texts_that_are_claimed_are_there(told: dict[str, Told]) -> None:
    """CLAUDE.md with its imports, the rule without paths, and the descriptions of skills, commands and sub-agents."""
    assert {name: each.first for name, each in told.items()} == dict.fromkeys(told, claimed(TALK))
    assert len(claimed(TALK)) == 1 + 2 + 1 + len(SKILLS) + 1 + len(AGENTS)
