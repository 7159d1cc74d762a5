"""The words of a criterion: what is two in one, what a check could decide, what only forbids, what repeats a rule."""

import json

import pytest
import yaml

from zelda_ci.config.document import is_sound
from zelda_ci.config.schema import SuiteConfig
from zelda_ci.pipeline.linting import check_line, halves, only_forbids, word_runs

TWO = {
    "GET /health answers 200 and is documented in README.md.": (
        "GET /health answers 200.",
        "GET /health is documented in README.md.",
    ),
    "The total is rounded and the tax is computed in cents": ("The total is rounded.", "The tax is computed in cents."),
    "Amounts stay whole cents; no float is used.": ("Amounts stay whole cents.", "No float is used."),
    "It says that x is gone; explains why": ("It says that x is gone.", "Explains why."),
    "A test exists and is named after the bug.": ("A test exists.", "A test is named after the bug."),
    "The file is made and it also has src/app.py.": ("The file is made.", "The file has src/app.py."),
    "The code is fixed, and all tests pass.": ("The code is fixed.", "All tests pass."),
    "A test exists and passes.": ("A test exists.", "A test passes."),
    "It is read-only and never writes to disk.": ("It is read-only.", "It never writes to disk."),
    "The bug is fixed and src/app.py has a test!": ("The bug is fixed.", "src/app.py has a test."),
    # What stands in code or brackets is one word, however many it has.
    "After `a and b is c`, X is 1 and the log is empty.": None,
    "`npm run all` is 1 of them and has no errors.": ("`npm run all` is 1 of them.", "`npm run all` has no errors."),
}
ONE = [
    "The function adds and removes items.", "The module has docs and tests for errors.",
    "The message is short and polite.", "It is read and written once.",
    "If the user is missing and the token is valid, it returns 401.",
    "A line names the file that is missing and says why.", "Both files are changed and have tests.",
    "The endpoint returns `a; b is c` and `d and e is f`.", "The error names the file and the line.",
    "Is `a` right? `b` is 1 and must not be 2.", "It warns that x is gone and the callers must be updated.",
    "The rule is loaded and applied to src/ and tests/.", "Given a cart is empty and a coupon is set, the total is 0.",
    "A user who is logged in and has no cart sees an empty page.", "`a` is 1 and so is `b`.",
    "The amount is whole cents; otherwise it is rejected.",
    "What is asked and what is answered are kept.", "In case x is missing and y is empty, it stops.",
    "A comment says why x is slow and y is fast.", "The docs and tests pass.", "Reads and writes work.",
    "As long as the lock is held and the queue is full, writes wait.", "", "and", "; ", "It is; is",
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TWO.items())
def test_two_clauses_with_verbs_are_two_criteria(text: str, expected: tuple[str, str] | None) -> None:
    assert halves(text) == expected


@pytest.mark.parametrize("text", ONE)
def test_what_and_joins_within_a_clause_is_one_criterion(text: str) -> None:
    assert halves(text) is None


CHECKS = [
    ("The session uses the changelog skill.", {"called": "Skill(changelog)"}),
    ("Calls the skill `changelog`", {"called": "Skill(changelog)"}),
    ("The changelog skill is used.", {"called": "Skill(changelog)"}),
    ("The sub-agent reviewer was called.", {"called": "Agent(reviewer)"}),
    ("It does not use the changelog skill.", {"notCalled": "Skill(changelog)"}),
    ("The changelog skill should be used.", {"called": "Skill(changelog)"}),
    ("The changelog skill must not be used.", {"notCalled": "Skill(changelog)"}),
    ("The reviewer sub-agent is not called.", {"notCalled": "Agent(reviewer)"}),
    ("The agent must run `npm test`.", {"called": "Bash(npm test *)"}),
    ("Nothing is pushed.", {"notCalled": "Bash(git push *)"}),
    ("docs/a.md has been modified.", {"changed": ["docs/a.md"]}),
    ("docs/a.md is unchanged.", {"changedOnly": ["**", "!docs/a.md"]}),
    ("CHANGELOG.md must not be changed.", {"changedOnly": ["**", "!CHANGELOG.md"]}),
    ("Runs `npm test`.", {"called": "Bash(npm test *)"}),
    ("`make lint` is run.", {"called": "Bash(make lint *)"}),
    ("Claude never runs `git push`.", {"notCalled": "Bash(git push *)"}),
    ("It never pushes.", {"notCalled": "Bash(git push *)"}),
    ("Nothing was committed.", {"notCalled": "Bash(git commit *)"}),
    ("The session does not read .env.", {"notRead": [".env"]}),
    ("`secrets/key` is not read", {"notRead": ["secrets/key"]}),
    ("Only changes files in src/.", {"changedOnly": ["src/**"]}),
    ("Only files in `src/api` are changed.", {"changedOnly": ["src/api/**"]}),
    ("CHANGELOG.md is updated.", {"changed": ["CHANGELOG.md"]}),
    ("It updates the file docs/a.md.", {"changed": ["docs/a.md"]}),
    ('The last message says "rate limit".', {"says": "rate limit"}),
    ("The final answer does not mention `TODO`.", {"notSays": "TODO"}),
]


NAMES = {
    "changelog",
    "reviewer",
    "CHANGELOG.md",
    "docs/a.md",
    "src",
    "src/api",
    "secrets/key",
    "src/[id].ts",
    "a.md",
    "../up.md",
}


@pytest.mark.parametrize(("text", "check"), CHECKS)
def test_a_criterion_that_a_check_decides_becomes_one_that_a_suite_may_have(text: str, check: object) -> None:
    line = check_line(text, NAMES)
    assert yaml.safe_load(line or "") == [check]
    assert is_sound(f"prompt: x\nchecks: [{json.dumps(check)}]", SuiteConfig)


JUDGED = [
    "It uses the other skill.", "CHANGELOG.md is updated with a line about the fix.", "The docs are updated.",
    "Runs `npm test` before it commits.", "Runs `npm test | tee log`.", "The last message says what is left.",
    'The last message says "/rate.*/".', 'CHANGELOG.md is updated and "x".', "It says `done`.",
    # Elsewhere is another of this name, and no check looks above the project.
    "`a.md` is changed.", "a.md is unchanged.", "../up.md is updated.", "It could not run `npm test`.",
    "`DEFAULT_TIMEOUT` is changed.", "`config.timeout` is updated.", "`src/[id].ts` is changed.",
    "It does not read stdin/stdout.", "`main` is run.", "The right skill was called.", "Only changes files in ../x/.",
]  # fmt: skip


@pytest.mark.parametrize("text", JUDGED)
def test_what_a_check_may_not_decide_stays_with_the_judge(text: str) -> None:
    assert check_line(text, NAMES) is None


def test_a_criterion_forbids_only_where_it_asks_for_nothing() -> None:
    forbids = [
        "Nothing is pushed.", "Claude does not touch tests.", "The agent makes no changes.", "No test fails.",
        "It never logs X.", "None is left.",
    ]  # fmt: skip
    asks = [
        "A note says that no test fails.", "The README explains what is not supported.",
        "Nothing is pushed, but a tag is made.", "Notes exist.",
    ]  # fmt: skip
    assert ([*map(only_forbids, forbids)], [*map(only_forbids, asks)]) == ([True] * 6, [False] * 4)


def test_runs_of_words_know_their_line_whatever_stands_between() -> None:
    text = "# Rules\n\n- Every endpoint answers errors,\n  with **a** JSON body and a code."
    runs = dict(word_runs(text))
    assert runs["every endpoint answers errors with a json body"] == 3
    assert runs["answers errors with a json body and a"] == 3
    assert len(runs) == 5
    assert [*word_runs("one two three four five six seven")] == []
    # Commands stand there as they are, and marks are no ends of words.
    assert [*word_runs("Run `npm run build -- --mode production` and check it twice.")] == []
    assert [*word_runs("फ़ाइल में परिवर्तन करना ज़रूरी है।")] == []
