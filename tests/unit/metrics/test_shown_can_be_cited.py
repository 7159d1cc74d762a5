"""Whatever a judge is shown it can cite; what it was never shown, it cannot."""

import itertools
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import safe, session, suite
from tests.support.cited import place
from tests.support.hostile import HOSTILE
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import ApiUsage, HookRan, Noticed, SessionTranscript, UserSaid
from zelda_ci.domain.workspace import Changes
from zelda_ci.judge.rendering import fence, mark_of, units
from zelda_ci.metrics.citable import plain
from zelda_ci.metrics.evidence import Sources, gather, look_up
from zelda_ci.redact import Redactor

NONCE = "0123456789abcdef0123456789abcdef"
MARK = mark_of(NONCE)

# Of what people and programs write; every kind of thing that once made a true quote be refused.
LINES = st.one_of(
    st.sampled_from(
        [
            "", "}", "return total(cart)", "  1\tfirst of a file", "     2→second of it", "3 | third", "+added",
            "-gone", "diff --git a/x b/x", "--- a/x", "+++ b/x", "@@ -1,2 +1,2 @@", "```", "café \u2713 passed",
            "\u202eevil\u2066", "p\u0430ssword is mixed",
            "[turn 9 call 1: Bash]", "[returned]", "a\tb", "\x1b[32mok\x1b[0m", '"quoted"',
            "line with trailing  ", "\\ No newline at end of file", "…and so on", *HOSTILE,
        ]
    ),
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), max_size=40),
)  # fmt: skip
TEXTS = st.lists(LINES, min_size=1, max_size=6).map("\n".join)


def transcript(output: str, said: str) -> SessionTranscript:
    told = session("Read a.py", "Bash make + Bash test", '"x"')
    entries = []
    for entry in told.entries:
        if entry.type == "turn":
            calls = tuple(
                call.model_copy(update={"output": safe(output), "input": safe.json({"command": said, "timeout": 5})})
                for call in entry.tool_calls
            )
            entry = entry.model_copy(update={"tool_calls": calls, "text": safe(said), "thinking": safe(said)})  # noqa: PLW2901
        entries.append(entry)
    around = (
        HookRan(at=1, name=safe("lint"), event=safe("Stop"), outcome=safe("ok"), output=safe(output)),
        UserSaid(at=1, text=safe(said)),
        Noticed(at=1, kind=safe("note"), text=safe(output)),
    )
    return told.model_copy(update={"entries": (*entries, *around)})


def pairs(text: str) -> list[str]:
    lines = text.split("\n")
    return ["\n".join(two) for two in itertools.pairwise(lines)] if len(lines) > 1 else [text]


def has_words(quote: str) -> bool:
    """Whether there is more than Zelda's own headings in a quote, and more than signs."""
    own = rf"^(?:\[{MARK} .*|</?evidence.*|\[\.\.\. \d+ characters are left out.*)$"
    return bool(re.search(r"[^\W_]", plain(re.sub(own, "", quote, flags=re.MULTILINE))))


@settings(max_examples=25, deadline=None)
@given(output=TEXTS, said=TEXTS)
def test_two_lines_of_a_turn_hold_wherever_they_are_copied_from(output: str, said: str) -> None:
    told = transcript(output, said)
    sources = Sources(transcript=told, mark=MARK)
    shown = units(told, MARK)
    for unit in shown:
        heading = re.match(rf"\[{MARK} (turn \d+)", unit)
        where = heading[1] if heading else "transcript"
        for quote in filter(has_words, pairs(unit)):
            assert look_up(place(where, quote), sources).problem is None, (where, quote)


@settings(max_examples=25, deadline=None)
@given(content=TEXTS, task=TEXTS, checks=TEXTS)
def test_two_lines_of_a_block_hold_across_its_marks(
    tmp_path_factory: pytest.TempPathFactory, content: str, task: str, checks: str
) -> None:
    folder = tmp_path_factory.mktemp("shown")
    for where, quote, sources in shown_blocks(folder, content, task, checks):
        assert look_up(place(where, quote), sources).problem is None, (where, quote)


def shown_blocks(folder: Path, content: str, task: str, checks: str) -> list[tuple[str, str, Sources]]:
    patch = folder / "changes.patch"
    lines = content.split("\n")
    added = "".join(f"+{line}\n" for line in lines)
    heading = "diff --git a/né.txt b/né.txt\n--- a/né.txt\n+++ b/né.txt\n"
    patch.write_text(f"{heading}@@ -1,1 +1,{len(lines)} @@\n-old line\n{added}", "utf-8", "surrogatepass", "\n")
    changes = Changes(files=(safe("né.txt"),), insertions=1, patch=patch, patch_bytes=10)
    context = EvalContext(suite(prompt=task or "x"), None, session('"x"'), ApiUsage(), changes, checks=(safe(checks),))
    evidence = gather(context, Redactor(), nonce=NONCE, context_tokens=200_000)
    places = {"task": "task", "patch": "patch:né.txt", "build-and-tests": "build-and-tests"}
    found = []
    for block in evidence.blocks:
        kind = re.search(r'kind="([a-z-]+)"', block)
        assert kind
        quotes = filter(has_words, pairs(block))
        found += [(places[kind[1]], quote, evidence.sources) for quote in quotes]
    return found


def test_two_lines_of_a_final_file_hold_with_and_without_numbers() -> None:
    text = "def total(cart):\n    return 2\n\n    # done\n"
    numbered = "\n".join(f"{number} | {line}" for number, line in enumerate(text.splitlines(), start=1))
    block = fence("final-file", f"shop/cart.py\n{numbered}", NONCE)
    sources = Sources({"shop/cart.py": text}, mark=MARK)
    for quote in filter(has_words, [*pairs(block), *pairs(text)]):
        assert look_up(place("shop/cart.py", quote), sources).problem is None, quote


def test_what_stands_around_the_middle_of_a_long_result_holds() -> None:
    told = session(
        *(f"Read a{at}.py -> " + "\n".join(f"line {at}.{number} of many" for number in range(300)) for at in (1, 2))
    )
    sources = Sources(transcript=told, mark=MARK)
    for number, unit in enumerate(units(told, MARK, 1000)[1::2], start=1):
        assert "characters are left out here" in unit
        for quote in filter(has_words, pairs(unit)):
            assert look_up(place(f"turn {number} call 1", quote), sources).problem is None, quote
    (mark,) = [line for line in unit.split("\n") if "left out here" in line]
    assert look_up(place("turn 2 call 1", mark), sources).problem


@settings(max_examples=60, deadline=None)
@given(output=TEXTS, seed=st.integers())
def test_what_was_made_up_never_holds(output: str, seed: int) -> None:
    told = transcript(output, "make the tests pass")
    sources = Sources(transcript=told, mark=MARK)
    chance = random.Random(seed)
    invented = " ".join(
        chance.choice(("all", "41 tests", "passed", "in 3.7s", "quux", "def ghost():")) for _ in range(5)
    )
    for where in ("turn 1", "turn 2 call 1", "transcript"):
        assert look_up(place(where, f"{invented} zyx{seed}"), sources).problem
        assert look_up(place(where, f"[{MARK} {invented}]\n{invented} zyx{seed}"), sources).problem
