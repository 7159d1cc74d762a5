"""Values of the wrong kind, each with the sentence that says how to write it right."""

import pytest

from tests.unit.config.folder import about_config, about_suite, only_suite

CRITERION = "item 1 of acceptanceCriteria must be text"
KEY = "a colon followed by a blank makes a key, so put the whole text in quotes"
LOOKS = "a list of 1 to 10 whole numbers from 1 to 1000"
COMMAND = "1:14: testCommand must be text or a list of texts"
HELD = "must not be passed on: sessions never hold the key itself"
MODEL = "execution.model must be the full id of a model, such as claude-sonnet-5-5, not an alias"
MODES = "execution.permissionMode must be one of default, acceptEdits, bypassPermissions, dontAsk, plan"
PLAN = "adaptive or a group of keys such as {first: 3, looks: [6, 10, 16]}"

WRONG = {
    "execution: {maxTurns: %s}": (
        "1:23: execution.maxTurns must be a whole number from 1 to 10000",
        {
            '"5"': ", not text: remove the quotes",
            "true": ", not true",
            "10001": ", not 10001",
            "1e3": ", not 1e3: write it in plain digits",
            "[5]": ", not a list",
            "{a: 5}": ", not a group of keys",
            "9" * 100_000: f", not {'9' * 57}...: write it in plain digits",
        },
    ),
    "execution: {timeoutSeconds: %s}": (
        "1:29: execution.timeoutSeconds must be a number above 0, at most 604800",
        {
            ".nan": ", not .nan: write it in plain digits",
            "30s": ", not text",
        },
    ),
    "trials: %s": (
        f"1:9: trials must be a whole number from 1 to 1000 or {PLAN}",
        {
            "1.5": ", not 1.5",
            "yes": ", not yes: write it in plain digits",
            "adaptiv": " (did you mean adaptive?)",
        },
    ),
    "trials: {looks: %s}": (
        "1:17: trials.looks must be ",
        {
            "[6, 3]": "numbers that rise",
            "5": f"{LOOKS}, not 5",
            str([*range(4, 15)]): f"{LOOKS}, not 11",
        },
    ),
    "trials: %s ": (
        "1:",
        {
            "{first: 0}": "17: trials.first must be a whole number from 1 to 1000, not 0",
            "{fist: 2}": "10: fist is not a known key (did you mean first?)",
            "{first: 24}": "9: trials must have a look above first: first is 24, and the last look 24",
        },
    ),
    "testCommand: %s": (
        "",
        {
            "5": f"{COMMAND}: put 5 in quotes",
            '""': f"{COMMAND}, not empty",
            "[npm, 5]": "1:20: item 2 of testCommand must be text: put 5 in quotes",
            "['', x]": "1:14: testCommand must begin with the program to start",
            "{a: b}": f"{COMMAND}, not a group of keys: {KEY}",
        },
    ),
    "execution: {env: %s}": (
        "1:",
        {
            "[FOO=value]": "19: item 1 of execution.env must be the name of an environment variable, without a value",
            "[HOME, anthropic_api_key]": f"25: item 2 of execution.env {HELD}",
            "{FOO: [bar]}": "24: execution.env.FOO must be text, not a list",
        },
    ),
    "%s": (
        "1:",
        {
            "execution: {model: sonnet}": f"20: {MODEL}",
            "execution: {permissionMode: bypass}": f"29: {MODES} (did you mean bypassPermissions?)",
            "execution: fast": "12: execution must be a group of keys",
            "metrics: {efficiency: on}": "23: metrics.efficiency must be true or false, not on",
            "metrics: {toolUsage: 'true'}": "22: metrics.toolUsage must be true or false, not text: remove the quotes",
            "judge: {votes: 2}": "16: judge.votes must be one of 1, 3, 5, not 2",
            "coverageThreshold: 101": "20: coverageThreshold must be a number from 0 to 100, not 101",
        },
    ),
}
ROWS = [(key % value, begin + end) for key, (begin, values) in WRONG.items() for value, end in values.items()]


@pytest.mark.parametrize(("text", "line"), ROWS, ids=[text[:50] for text, _ in ROWS])
def test_a_value_is_what_it_must_be(text, line, tmp_path):
    assert about_config(tmp_path, f"{text}\n") == [line]


@pytest.mark.parametrize("word", ["on", "2026-02-13", "012", "12:30", "3.10", "5", "true", ".nan"])
def test_text_that_reads_as_something_else_must_be_quoted(word, tmp_path):
    text = f"prompt: {word}\ntags: [{word}]\nacceptanceCriteria:\n  - {word}\n"
    assert about_suite(tmp_path, text) == [
        f"1:9: prompt must be text: put {word} in quotes",
        f"2:8: item 1 of tags must be text: put {word} in quotes",
        f"4:5: {CRITERION}: put {word} in quotes",
    ]


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ("", f"3:4: {CRITERION}, not empty"),
        ('" "', f"3:5: {CRITERION}"),
        ("{a: b, c: d}", f"3:5: {CRITERION}, not a group of keys: {KEY}"),
        ("{a: [b]}", f"3:5: {CRITERION}, not a group of keys: {KEY}"),
        ("[a]", f"3:5: {CRITERION}, not a list"),
    ],
)
def test_a_criterion_is_a_sentence(item, line, tmp_path):
    assert about_suite(tmp_path, f"prompt: x\nacceptanceCriteria:\n  - {item}\n") == [line]


@pytest.mark.parametrize("key", ["acceptanceCriteria", "mustPass", "answerCriteria"])
@pytest.mark.parametrize(
    "sentence", ["Password: at least 8 characters are asked for", "Key: is shown once", "Returns 404: not 500"]
)
def test_a_criterion_may_hold_a_colon_and_be_about_passwords(key, sentence, tmp_path):
    suite = only_suite(tmp_path, test_x=f"prompt: x\n{key}:\n  - {sentence}\n  - Two.\n").resolved
    assert suite.criteria == (sentence, "Two.")


def test_what_is_in_quotes_is_text_and_a_list_of_texts_is_one(tmp_path):
    text = "prompt: 'on'\ntags: [\"3.10\", '2026-02-13']\ntestCommand: [grep, '', f]\n"
    suite = only_suite(tmp_path, test_x=text).resolved
    assert (suite.prompt, suite.tags, suite.test_command) == ("on", ("3.10", "2026-02-13"), ("grep", "", "f"))
    assert about_suite(tmp_path, "prompt: x\ntags: a\n") == ["2:7: tags must be a list of texts"]
    (line,) = about_suite(tmp_path, "prompt: '  '\n")
    assert line.startswith("1:9: prompt must be text")


@pytest.mark.parametrize("value", ["/etc", "a/../../x", "~/x", "a\\b"])
@pytest.mark.parametrize("key", ["testDir", "protectedPaths"])
def test_paths_stay_inside(key, value, tmp_path):
    (line,) = about_config(tmp_path, f"{key}: '{value}'\n")
    inside = "must be a path inside the project, with forward slashes, not absolute and without '..'"
    assert line.startswith("1:")
    assert line.endswith(f"{key} {inside}")


@pytest.mark.parametrize("value", ["api.portkey.ai", "ftp://x", "https://", "https://me:pw@host", "https://h/?k=x"])
def test_a_gateway_is_a_plain_web_address(value, tmp_path):
    (line,) = about_config(tmp_path, f"gatewayUrl: {value}\n")
    address = "an http:// or https:// address without user name, query and fragment"
    assert line.startswith(f"1:13: gatewayUrl must be {address}")
    assert "pw" not in line


def test_two_different_judges_are_named_with_their_lines(tmp_path):
    assert about_config(tmp_path, "judge: {model: a-b}\njudgeModel: c-d\n") == [
        "2:1: judgeModel (line 2) and judge.model (line 1) name different models: keep one"
    ]
    assert about_config(tmp_path, "judgeModel: a-b\njudge: {model: a-b}\n") == []


def test_hundreds_of_problems_are_counted_not_all_shown(tmp_path):
    lines = about_config(tmp_path, "".join(f"nonsense{number}: 1\n" for number in range(300)))
    assert len(lines) == 101
    assert lines[0] == "1:1: nonsense0 is not a known key"
    assert lines[-1] == "has 200 more problems"
