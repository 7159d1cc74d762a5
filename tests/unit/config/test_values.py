"""Values of the wrong kind, each with the sentence that says how to write it right."""

import pytest

from tests.unit.config.folder import about_config, about_suite, only_suite

TURNS = "execution.maxTurns must be a whole number from 1 to 10000"
PLAN = "a group of keys such as {first: 3, looks: [6, 10, 16]}"
TRIALS = f"trials must be a whole number from 1 to 1000 or adaptive or {PLAN}"
LOOKS = "trials.looks must be"
CRITERION = "item 1 of acceptanceCriteria must be text"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ('"5"', f"2:13: {TURNS}, not text: remove the quotes"),
        ("true", f"2:13: {TURNS}, not true"),
        ("many", f"2:13: {TURNS}, not text"),
        ("5.0", f"2:13: {TURNS}, not 5.0"),
        ("0", f"2:13: {TURNS}, not 0"),
        ("10001", f"2:13: {TURNS}, not 10001"),
        ("1e3", f"2:13: {TURNS}, not 1e3: write it in plain digits"),
        ("010", f"2:13: {TURNS}, not 010: write it in plain digits"),
        ('""', f"2:13: {TURNS}, not empty"),
        ("[5]", f"2:13: {TURNS}, not a list"),
        ("{a: 5}", f"2:13: {TURNS}, not a group of keys"),
    ],
)
def test_a_whole_number_must_be_one(value, line, tmp_path):
    assert about_config(tmp_path, f"execution:\n  maxTurns: {value}\n") == [line]


def test_a_number_of_absurd_length_is_cut_short(tmp_path):
    (line,) = about_config(tmp_path, f"execution:\n  maxTurns: {'9' * 100_000}\n")
    assert line == f"2:13: {TURNS}, not {'9' * 57}...: write it in plain digits"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("1.5", f"1:9: {TRIALS}, not 1.5"),
        ("yes", f"1:9: {TRIALS}, not yes: write it in plain digits"),
        ("2026-02-13", f"1:9: {TRIALS}, not 2026-02-13: write it in plain digits"),
        ("true", f"1:9: {TRIALS}, not true"),
        ("[3]", f"1:9: {TRIALS}, not a list"),
        ("adaptiv", f"1:9: {TRIALS} (did you mean adaptive?)"),
        ("{first: 0}", "1:17: trials.first must be a whole number from 1 to 1000, not 0"),
        ("{fist: 2}", "1:10: fist is not a known key (did you mean first?)"),
        ("{looks: [6, 3]}", f"1:17: {LOOKS} numbers that rise"),
        ("{looks: [3, 3]}", f"1:17: {LOOKS} numbers that rise"),
        ("{looks: 5}", f"1:17: {LOOKS} a list of 1 to 10 whole numbers from 1 to 1000, not 5"),
        ("{looks: []}", f"1:17: {LOOKS} a list of 1 to 10 whole numbers from 1 to 1000, not 0"),
        (f"{{looks: {[*range(4, 15)]}}}", f"1:17: {LOOKS} a list of 1 to 10 whole numbers from 1 to 1000, not 11"),
        ("{first: 9, looks: [6, 8]}", "1:9: trials must have a look above first: first is 9, and the last look 8"),
        ("{first: 16}", "1:9: trials must have a look above first: first is 16, and the last look 16"),
        ("{looks: [3.5]}", "1:18: item 1 of trials.looks must be a whole number from 1 to 1000, not 3.5"),
        ("{budgetUsd: -1}", "1:21: trials.budgetUsd must be a number above 0, not -1"),
    ],
)
def test_trials_are_counted(value, line, tmp_path):
    assert about_config(tmp_path, f"trials: {value}\n") == [line]


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
        ('""', f"3:5: {CRITERION}, not empty"),
        ('" "', f"3:5: {CRITERION}"),
        (
            "Returns 404: not 500",
            (
                f"3:5: {CRITERION}, not a group of keys: a colon followed by a blank makes a key, so put the whole "
                "text in quotes"
            ),
        ),
        ("[a]", f"3:5: {CRITERION}, not a list"),
    ],
)
def test_a_criterion_is_a_sentence(item, line, tmp_path):
    assert about_suite(tmp_path, f"prompt: x\nacceptanceCriteria:\n  - {item}\n") == [line]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("5", "1:14: testCommand must be text or a list of texts: put 5 in quotes"),
        ('""', "1:14: testCommand must be text or a list of texts, not empty"),
        ("[npm, 5]", "1:20: item 2 of testCommand must be text: put 5 in quotes"),
        ("['', x]", "1:14: testCommand must begin with the program to start"),
        (
            "{a: b}",
            (
                "1:14: testCommand must be text or a list of texts, not a group of keys: a colon followed by a blank "
                "makes a key, so put the whole text in quotes"
            ),
        ),
    ],
)
def test_a_command_is_a_line_or_a_list(value, line, tmp_path):
    assert about_config(tmp_path, f"testCommand: {value}\n") == [line]


@pytest.mark.parametrize("key", ["str", "'tuple[str, ...]'", "function-after", "0"])
def test_a_key_named_like_a_type_confuses_nobody(key, tmp_path):
    (line,) = about_config(tmp_path, f"setupCommand:\n  {key}: [x]\n")
    assert line.startswith("2:3: setupCommand must be text or a list of texts, not a group of keys")


@pytest.mark.parametrize(
    ("value", "hint"),
    [("bypass", " (did you mean bypassPermissions?)"), ("acceptedits", " (did you mean acceptEdits?)"), ("x", "")],
)
def test_a_choice_names_the_choices_and_the_nearest(value, hint, tmp_path):
    assert about_config(tmp_path, f"execution: {{permissionMode: {value}}}\n") == [
        "1:29: execution.permissionMode must be one of default, acceptEdits, bypassPermissions, dontAsk, plan" + hint
    ]


@pytest.mark.parametrize(
    "model", ["claude-sonnet-5-5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "@team/claude-opus-5-5"]
)
def test_full_ids_of_models_are_fine(model, tmp_path):
    text = f"prompt: x\nexecution: {{model: '{model}'}}\njudgeModel: '{model}'\n"
    assert only_suite(tmp_path, test_x=text).resolved.execution.model == model


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (
            "[FOO=secret-value]",
            "1:19: item 1 of execution.env must be the name of an environment variable, without a value",
        ),
        (
            "[HOME, anthropic_api_key]",
            "1:25: item 2 of execution.env must not be passed on: sessions never hold the key itself",
        ),
        (
            "[PORTKEY_API_KEY]",
            "1:19: item 1 of execution.env must not be passed on: sessions never hold the key itself",
        ),
        (
            "{FOO: [bar]}",
            "1:24: execution.env.FOO must be text, not a list",
        ),
    ],
)
def test_env_is_a_list_of_names_or_names_with_values(value, line, tmp_path):
    assert about_config(tmp_path, f"execution: {{env: {value}}}\n") == [line]


@pytest.mark.parametrize("value", ["/etc", "a/../../x", "~/x", "a\\b"])
@pytest.mark.parametrize("key", ["testDir", "protectedPaths"])
def test_paths_stay_inside(key, value, tmp_path):
    (line,) = about_config(tmp_path, f"{key}: '{value}'\n")
    inside = "must be a path inside the project, with forward slashes, not absolute and without '..'"
    assert line.startswith("1:")
    assert line.endswith(f"{key} {inside}")


@pytest.mark.parametrize(
    "value",
    ["api.portkey.ai", "ftp://x", "https://", "https://user:pw@host", "https://host/?key=x", "5"],
)
def test_a_gateway_is_a_plain_web_address(value, tmp_path):
    (line,) = about_config(tmp_path, f"gatewayUrl: {value}\n")
    address = "an http:// or https:// address without user name, query and fragment"
    assert line.startswith(f"1:13: gatewayUrl must be {address}")
    assert "pw" not in line


def test_two_different_judges_are_named_with_their_lines(tmp_path):
    assert about_config(tmp_path, "judgeModel: a-b\ntrials: 1\njudge:\n  votes: 3\n  model: c-d\n") == [
        "5:3: judgeModel (line 1) and judge.model (line 5) name different models: keep one"
    ]
    assert about_config(tmp_path, "judge: {model: a-b}\njudgeModel: c-d\n") == [
        "2:1: judgeModel (line 2) and judge.model (line 1) name different models: keep one"
    ]
    assert about_config(tmp_path, "judgeModel: a-b\njudge: {model: a-b}\n") == []


def test_hundreds_of_problems_are_counted_not_all_shown(tmp_path):
    lines = about_config(tmp_path, "".join(f"nonsense{number}: 1\n" for number in range(300)))
    assert len(lines) == 101
    assert lines[0] == "1:1: nonsense0 is not a known key"
    assert lines[-1] == "has 200 more problems"


SECONDS = "execution.timeoutSeconds must be a number above 0, at most 604800"
ALIAS = "execution.model must be the full id of a model, such as claude-sonnet-5-5, not an alias"
OTHERS = [
    ("execution: {timeoutSeconds: .nan}", f"1:29: {SECONDS}, not .nan: write it in plain digits"),
    ("execution: {timeoutSeconds: 0}", f"1:29: {SECONDS}, not 0"),
    ("execution: {timeoutSeconds: 1800000}", f"1:29: {SECONDS}, not 1800000"),
    ("execution: {timeoutSeconds: 30s}", f"1:29: {SECONDS}, not text"),
    ("execution: {model: sonnet}", f"1:20: {ALIAS}"),
    ("metrics: {efficiency: on}", "1:23: metrics.efficiency must be true or false, not on"),
    ('metrics: {efficiency: "true"}', "1:23: metrics.efficiency must be true or false, not text: remove the quotes"),
    ("metrics: [efficiency]", "1:10: metrics must be a group of keys, not a list"),
    ("execution: fast", "1:12: execution must be a group of keys"),
    ("judge: {votes: 2}", "1:16: judge.votes must be one of 1, 3, 5, not 2"),
    ("coverageThreshold: 101", "1:20: coverageThreshold must be a number from 0 to 100, not 101"),
]


@pytest.mark.parametrize(("text", "line"), OTHERS)
def test_numbers_switches_and_groups_are_what_they_must_be(text, line, tmp_path):
    assert about_config(tmp_path, f"{text}\n") == [line]


def test_what_is_in_quotes_is_text_and_a_list_of_texts_is_one(tmp_path):
    text = "prompt: 'on'\ntags: [\"3.10\", '2026-02-13']\ntestCommand: [grep, '', f]\n"
    suite = only_suite(tmp_path, test_x=text).resolved
    assert (suite.prompt, suite.tags, suite.test_command) == ("on", ("3.10", "2026-02-13"), ("grep", "", "f"))
    assert about_suite(tmp_path, "prompt: x\ntags: a\n") == ["2:7: tags must be a list of texts"]
    (line,) = about_suite(tmp_path, "prompt: '  '\n")
    assert line.startswith("1:9: prompt must be text")
