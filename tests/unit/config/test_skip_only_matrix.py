"""Suites that are not run for now, that run alone, and that one file makes several of."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.config.folder import loaded, make, problems
from zelda_ci.config.project import active, select, settle
from zelda_ci.errors import ConfigError

PLAIN = "prompt: x\n"
MATRIX = """\
prompt: Say {{word}} twice.
acceptanceCriteria: ["It says {{word}}.", It is polite.]
checks: [{called: "Bash(echo {{word}})", times: 2}]
matrix:
  model: [claude-sonnet-5-5, claude-haiku-4-5]
  effort: [low]
  variables:
    word: [hello, good evening]
"""


def names(project: Any) -> list[str]:
    return [suite.resolved.name for suite in project.suites]


def test_skipped_suites_are_named_and_only_is_refused_in_ci(tmp_path: Path) -> None:
    found = loaded(tmp_path, test_a="skip: Waits.\n" + PLAIN, test_b=PLAIN, test_c="only: true\n" + PLAIN)
    local = active(found)
    assert names(local) == ["c"]
    assert local.notices == (
        "a is skipped: Waits. (zelda/test-a.yaml)",
        "only c runs, as `only` says; 1 of 2 suites are left out",
    )
    with pytest.raises(ConfigError, match=r"zelda/test-c.yaml: only is for your own machine"):
        active(found, is_ci=True)
    with pytest.raises(ConfigError, match="Every suite is skipped"):
        active(loaded(tmp_path / "all", test_a="skip: Waits.\n" + PLAIN))


def test_a_suite_that_rests_is_there_and_its_message_says_why_it_does_not_run(tmp_path: Path) -> None:
    local = active(loaded(tmp_path, test_a="skip: Waits.\n" + PLAIN, test_b=PLAIN, test_c="only: true\n" + PLAIN))
    skipped, beside = "a is skipped: Waits. (zelda/test-a.yaml).", "b is left out: c says `only`."
    for asked, said in (["a"], skipped), (["zelda/test-a.yaml", "a*"], skipped), (["b"], beside):
        with pytest.raises(ConfigError) as problem:
            select(local, asked)
        assert problem.value.message == said


@pytest.mark.parametrize(("base", "head", "counts"), [("", "skip: x\n", None), ("skip: Later.\n", "", "Later.")])
def test_on_a_pull_request_the_base_says_what_is_skipped(
    base: str, head: str, counts: str | None, tmp_path: Path
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    loaded(before, test_a=base + PLAIN)
    found = loaded(after, test_a=head + PLAIN, test_new="skip: Hides it.\n" + PLAIN)
    settled = settle(found, after, before, before, "abc1234")
    assert [suite.skip for suite in settled.project.suites] == [counts, None]
    assert [(change.key, change.suite) for change in settled.changes if change.suite == "a"] == [("skip", "a")]


def test_each_combination_of_a_matrix_is_a_suite_with_its_own_name(tmp_path: Path) -> None:
    found = loaded(tmp_path, test_greeting=MATRIX, test_other=PLAIN)
    assert names(found) == [
        "greeting.hello.claude-sonnet-5-5.low",
        "greeting.hello.claude-haiku-4-5.low",
        "greeting.good-evening.claude-sonnet-5-5.low",
        "greeting.good-evening.claude-haiku-4-5.low",
        "other",
    ]
    suite = found.suites[3].resolved
    assert (suite.prompt, suite.acceptance_criteria[0]) == ("Say good evening twice.", "It says good evening.")
    assert (suite.execution.model, suite.execution.effort) == ("claude-haiku-4-5", "low")
    assert str(found.suites[3].provenance["execution.model"]) == "zelda/test-greeting.yaml:4"
    assert (suite.checks[0].called, suite.checks[0].times) == ("Bash(echo good evening)", 2)
    assert len(select(found, ["greeting"])) == 4
    assert len(select(found, ["greeting.*haiku*"])) == 2


@pytest.mark.parametrize(
    ("matrix", "why"),
    [
        ("{variables: {word: [a], b: [c]}}", "b stands nowhere: write {{b}} in prompt or criteria"),
        ("{variables: {word: []}}", "word has no values"),
        ("{variables: {word: [a b, a-b]}}", "matrix: the name x.a-b would be that of several suites"),
        (f"{{variables: {{word: [{'a' * 60}]}}}}", "is too long"),
        (f"{{variables: {{word: [{', '.join(f'w{n}' for n in range(51))}]}}}}", "makes 51 suites, and at most 50"),
        ("{effort: [huge]}", "item 1 of matrix.effort must be low, medium"),
        ("{variables: {Word: [a]}}", "Word must be the name of a key: small letters"),
    ],
)
def test_what_makes_no_sense_of_a_matrix_is_said_at_its_place(matrix: str, why: str, tmp_path: Path) -> None:
    text = f"prompt: '{{{{word}}}}'\nmatrix: {matrix}\n"
    said = problems(make(tmp_path, test_x=text))
    assert any(why in line for line in said), said
    assert said[0].startswith("zelda/test-x.yaml:2:")


def test_a_matrix_of_a_routing_suite_has_a_limit_with_its_prompts(tmp_path: Path) -> None:
    words = ", ".join(f"w{n}" for n in range(50))
    prompts = "".join(f"  - {{prompt: '{n} {{{{word}}}}', expect: none}}\n" for n in range(21))
    text = f"kind: routing\nmatrix: {{variables: {{word: [{words}]}}}}\nprompts:\n"
    (said,) = problems(make(tmp_path, test_x=text + prompts))
    assert said == "zelda/test-x.yaml:2:1: matrix makes 1050 suites, and at most 1000 may be"
    assert len(loaded(tmp_path / "20", test_x=text + prompts.rpartition("  -")[0]).suites) == 1_000


def test_a_value_that_makes_no_check_is_said_with_the_check(tmp_path: Path) -> None:
    text = "prompt: x\nmatrix: {variables: {word: [a, '(']}}\nchecks: [{says: '/{{word}}/'}]\n"
    (said,) = problems(make(tmp_path, test_x=text))
    assert said.startswith(
        "zelda/test-x.yaml:3:1: with ( of the matrix, says of item 1 of checks is no expression of RE2"
    )
