"""Whatever a session did and a project offers, no question outgrows the context of its judge."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import safe, session
from tests.unit.metrics.test_tool_usage import by_part, item, judged, saying, seen
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ToolsManifest


@given(
    st.integers(min_value=25_000, max_value=60_000),
    st.lists(st.integers(min_value=0, max_value=40_000), max_size=8),
    st.integers(min_value=0, max_value=30),
    st.sampled_from(["x", "a\u202e", "é", "p\u0430 ", '"\\\n']),
)
@settings(max_examples=6, deadline=None)
def test_no_question_is_larger_than_the_judges_context(tokens: int, sizes: list[int], count: int, letter: str) -> None:
    rules = [item(ItemKind.RULE, f"r{number}.md", text=safe(letter * 2000)) for number in range(count)]
    skills = [item(ItemKind.SKILL, f"s{number}", description=safe(letter * 300)) for number in range(count)]
    judge = by_part(lambda _: [seen(1, "NO_EVIDENCE", letter * 20_000)] * 10, saying({}))
    judge.context_tokens = tokens
    heard = session(*(f"Bash step -> {letter * size}." for size in sizes), "Read a")
    judged(judge, heard, ToolsManifest(items=(item(ItemKind.MEMORY, "CLAUDE.md"), *rules, *skills)))
    assert judge.asked
    assert max(question.tokens for question in judge.asked) <= tokens
