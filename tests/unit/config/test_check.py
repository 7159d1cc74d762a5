"""Values of the wrong kind and unknown keys, each with the sentence that says how to write it right."""

import pytest

from tests.unit.config.folder import GOOD, about_config, about_suite, loaded, make, only_suite, problems
from zelda_ci.config.document import parse_document
from zelda_ci.config.schema import ProjectConfig, SuiteConfig, keys
from zelda_ci.domain.suite import MetricSwitches
from zelda_ci.named_secrets import is_secret_name

KEY = "a colon followed by a space makes a key, so put the whole text in quotes"
DIGITS = "write it in plain digits"
ENV = "execution.env"
MODES = "default, acceptEdits, bypassPermissions, dontAsk or plan"
TRIALS = "1:9: trials must be a whole number, adaptive or a group of keys"
COMMAND = "1:14: testCommand must be text or a list"
NAME = "must be the name of an environment variable, without a value"
ADDRESS = "an http:// or https:// address without user name, query and fragment"
ADDRESSES = ("api.portkey.ai", "ftp://x", "https://", "https://me:pw@host", "https://h/?k=x")
GIT = "must not lead into .git, where git keeps what is its own"
INSIDE = "a path inside the project, with forward slashes, not absolute and without '..'"
OUTSIDE = ("/etc", "a/../../x", "~/x", "a\\b")

WRONG = {
    'execution: {maxTurns: "5"}': "1:23: execution.maxTurns must be a whole number, not text: remove the quotes",
    "execution: {maxTurns: true}": "1:23: execution.maxTurns must be a whole number, not true",
    "execution: {maxTurns: 10001}": "1:23: execution.maxTurns must be at most 10000, not 10001",
    "execution: {maxTurns: 1e3}": f"1:23: execution.maxTurns must be a whole number, not 1e3: {DIGITS}",
    "execution: {maxTurns: [5]}": "1:23: execution.maxTurns must be a whole number, not a list",
    "execution: {maxTurns: {a: 5}}": "1:23: execution.maxTurns must be a whole number, not a group of keys",
    f"execution: {{maxTurns: {'9' * 100_000}}}": f"1:23: execution.maxTurns must be a whole number, not {'9' * 57}...: "
    + DIGITS,
    "execution: {timeoutSeconds: .nan}": f"1:29: execution.timeoutSeconds must be a number, not .nan: {DIGITS}",
    "execution: {timeoutSeconds: 30s}": "1:29: execution.timeoutSeconds must be a number, not text",
    "execution: {maxCostUsd: 0}": "1:25: execution.maxCostUsd must be above 0, not 0",
    "execution: {model: sonnet}": "1:20: execution.model must be the full id of a model, such as claude-sonnet-5-5, "
    "not an alias",
    "execution: {permissionMode: bypass}": f"1:29: execution.permissionMode must be {MODES} (did you mean "
    "bypassPermissions?)",
    "execution: fast": "1:12: execution must be a group of keys, not text",
    "execution: {env: [FOO=value]}": f"1:19: item 1 of {ENV} {NAME}",
    "execution: {env: {A B: x}}": f"1:19: {ENV}: A B {NAME}",
    "execution: {env: [HOME, anthropic_api_key]}": f"1:25: item 2 of {ENV} must not be passed on: sessions never hold "
    "the key",
    "execution: {env: {FOO: [bar]}}": f"1:24: {ENV}.FOO must be text, not a list",
    "trials: 1.5": f"{TRIALS}, not 1.5",
    "trials: 0": "1:9: trials must be at least 1, not 0",
    "trials: yes": f"{TRIALS}, not yes: {DIGITS}",
    "trials: adaptiv": f"{TRIALS} (did you mean adaptive?)",
    "trials: {looks: [6, 3]}": "1:17: trials.looks must be numbers that rise",
    "trials: {looks: 5}": "1:17: trials.looks must be a list, not 5",
    f"trials: {{looks: {[*range(4, 15)]}}}": "1:17: trials.looks must be a list of at most 10, not 11",
    "trials: {first: 0}": "1:17: trials.first must be at least 1, not 0",
    "trials: {first: 24}": "1:9: trials must have a look above first: first is 24, and the last look 24",
    "trials: {fist: 2}": "1:10: fist is not a known key (did you mean first?)",
    # Members of a union have names, which a file may use, too.
    "trials: {int: 5}": "1:10: int is not a known key of trials; it has first, looks, budgetUsd",
    "testCommand: {str: b}": f"{COMMAND}, not a group of keys: {KEY}",
    "testCommand: 5": f"{COMMAND}: put 5 in quotes",
    'testCommand: ""': "1:14: testCommand must be text, not empty",
    "testCommand: ['tuple[str, ...]', 5]": "1:34: item 2 of testCommand must be text: put 5 in quotes",
    "testCommand: ['', x]": "1:14: testCommand must begin with the program to start",
    "shell: [bash]": "1:8: shell must be a list of at least 2, not 1",
    "metrics: {efficiency: on}": "1:23: metrics.efficiency must be true or false, not on",
    "metrics: {toolUsage: 'true'}": "1:22: metrics.toolUsage must be true or false, not text: remove the quotes",
    "judge: {votes: 2}": "1:16: judge.votes must be 1, 3 or 5, not 2",
    "judge: {votes: true}": "1:16: judge.votes must be 1, 3 or 5, not true",
    "coverageThreshold: 101": "1:20: coverageThreshold must be at most 100, not 101",
    "gate: {failOn: [regresion]}": "1:17: item 1 of gate.failOn must be regression or evaluation (did you mean "
    "regression?)",
    "protectedPaths: ['.git/hooks/*']": f"1:18: item 1 of protectedPaths {GIT}",
    "protectedPaths: a/.GIT/config": f"1:17: protectedPaths {GIT}",
    # A number is no credential.
    "token: 500": "1:1: token is not a known key (did you mean efficiencyTargets.tokens?)",
    "prompt: x": "1:1: prompt is not a known key here: it belongs in a suite (test-*.yaml)",
    **{f"gatewayUrl: {value}": f"1:13: gatewayUrl must be {ADDRESS}" for value in ADDRESSES},
    **{f"testDir: '{value}'": f"1:10: testDir must be {INSIDE}" for value in OUTSIDE},
    **{f"protectedPaths: ['{value}']": f"1:18: item 1 of protectedPaths must be {INSIDE}" for value in OUTSIDE},
    "gate: {minScore: {toolUsage: 101}}": "1:30: gate.minScore.toolUsage must be at most 100, not 101",
}


@pytest.mark.parametrize(("text", "line"), WRONG.items(), ids=[text[:50] for text in WRONG])
def test_a_value_is_what_it_must_be(text, line, tmp_path):
    assert about_config(tmp_path, f"{text}\n") == [line]


@pytest.mark.parametrize("word", ["on", "2026-02-13", "012", "12:30", "3.10", "5", "true", ".nan"])
def test_text_that_reads_as_something_else_must_be_quoted(word, tmp_path):
    text = f"prompt: {word}\ntags: [{word}]\nacceptanceCriteria:\n  - {word}\n"
    assert about_suite(tmp_path, text) == [
        f"1:9: prompt must be text: put {word} in quotes",
        f"2:8: item 1 of tags must be text: put {word} in quotes",
        f"4:5: item 1 of acceptanceCriteria must be text: put {word} in quotes",
    ]


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ("", "3:4|, not empty"),
        ('" "', "3:5|"),
        ("{a: b, c: d}", f"3:5|, not a group of keys: {KEY}"),
        ("{a: [b]}", f"3:5|, not a group of keys: {KEY}"),
        ("[a]", "3:5|, not a list"),
    ],
)
def test_a_criterion_is_a_sentence(item, line, tmp_path):
    whole = line.replace("|", ": item 1 of acceptanceCriteria must be text")
    assert about_suite(tmp_path, f"prompt: x\nacceptanceCriteria:\n  - {item}\n") == [whole]


@pytest.mark.parametrize("key", ["acceptanceCriteria", "mustPass", "answerCriteria"])
@pytest.mark.parametrize(
    "sentence", ["Password: at least 8 characters are asked for", "Key: is shown once", "Returns 404: 5.10", "It: yes"]
)
def test_a_criterion_may_hold_a_colon_and_be_about_passwords(key, sentence, tmp_path):
    suite = only_suite(tmp_path, test_x=f"prompt: x\n{key}:\n  - {sentence}\n  - Two.\n").resolved
    assert suite.criteria == (sentence, "Two.")


def test_what_is_in_quotes_is_text_and_a_list_of_texts_is_one(tmp_path):
    text = "prompt: 'on'\ntags: [\"3.10\", '2026-02-13']\ntestCommand: [grep, '', f]\n"
    suite = only_suite(tmp_path, test_x=text).resolved
    assert (suite.prompt, suite.tags, suite.test_command) == ("on", ("3.10", "2026-02-13"), ("grep", "", "f"))
    assert about_suite(tmp_path, "prompt: x\ntags: a\n") == [
        "2:7: tags must be a list, not text: write each item on a line of its own, after a dash"
    ]
    (problem,) = about_suite(tmp_path, "prompt: x\nchecks: [{called: Skill(}]\n")
    assert problem.endswith("as in permission rules, such as Bash(git push*)")
    assert about_suite(tmp_path, "prompt: '  '\n") == ["1:9: prompt must be text"]


def test_hundreds_of_problems_are_counted_not_all_shown(tmp_path):
    lines = about_config(tmp_path, "".join(f"maxTurnx{number}: 1\n" for number in range(250)))
    assert len(lines) == 101
    assert lines[0] == "1:1: maxTurnx0 is not a known key (did you mean execution.maxTurns?)"
    assert lines[-1] == "has 150 more problems"


UNKNOWN = {
    "execution:\n  maxTurn: 5": "3:3: maxTurn|maxTurns",
    "execution:\n  max_turns: 5": "3:3: max_turns|maxTurns",
    "execution:\n  MAXTURNS: 5": "3:3: MAXTURNS|maxTurns",
    "execution:\n  timeout: 5": "3:3: timeout|timeoutSeconds",
    "execution:\n  maxTurn:": "3:3: maxTurn|maxTurns",
    "max_turns: 5": "2:1: max_turns|execution.maxTurns",
    "tools: [Bash]": "2:1: tools|execution.allowedTools",
    # Of several keys that are alike, the first.
    "criteria: [a]": "2:1: criteria|acceptanceCriteria",
    "criterion: [a]": "2:1: criterion|acceptanceCriteria",
    "acceptanceCriterias: [a]": "2:1: acceptanceCriterias|acceptanceCriteria",
    "judge: {model: x}": "2:9: model|judgeModel",
    "matrix: {models: [a]}": "2:10: models|model",
    "model: opus": "2:1: model is not a known key here: it belongs under execution or matrix",
    "maxTurns: 5": "2:1: maxTurns is not a known key here: it belongs under execution",
    "execution: {trials: 2}": "2:13: trials is not a known key here: it belongs at the top level",
    "execution: {costUsd: 2}": "2:13: costUsd is not a known key here: it belongs under efficiencyTargets",
    "testDir: x": "2:1: testDir is not a known key here: it belongs in zelda.config.yaml",
    "metrics: {speed: true}": "2:11: speed is not a known key of metrics; it has efficiency, requirementFulfillment, "
    "toolUsage, functionalCorrectness",
    "'': x": "2:1: an empty word is not a known key",
    "<<: {a: 1}": "2:1: << is not a known key",
    "budget: 5": "2:1: budget is not a known key",
    "on: x": "2:1: on is not a known key",
    '"\\e[31mred": x': "2:1: \\x1b[31mred is not a known key",
    "1: x": "2:1: 1 is not a known key",
}


@pytest.mark.parametrize(("text", "line"), UNKNOWN.items())
def test_an_unknown_key_is_told_with_what_was_probably_meant_or_where_it_belongs(text, line, tmp_path):
    said = line.replace("|", " is not a known key (did you mean ") + "?)" * ("|" in line)
    assert about_suite(tmp_path, f"prompt: x\n{text}\n") == [said]


@pytest.mark.parametrize("model", [ProjectConfig, SuiteConfig])
def test_every_key_is_described_in_a_sentence_and_none_has_the_name_of_a_credential(model):
    assert [key.dotted for key in keys(model) if not key.description.endswith(".")] == []
    assert [key.name for key in keys(model) if is_secret_name(key.name)] == []


# Keys that mean something only beside a testCommand.
DEPENDENT = {"coverageThreshold": "80", "testReport": "reports/*.xml", "coverageReport": "[a.xml, b.xml]"}
TESTED = GOOD + "testCommand: make test\n"


@pytest.mark.parametrize(("key", "value"), DEPENDENT.items())
def test_who_measures_what_is_never_run_is_told_where_and_the_command_may_stand_in_either_file(key, value, tmp_path):
    line = f"{key}: {value}\n"
    assert about_suite(tmp_path / "a", GOOD + line) == [f"2:1: {key} has no effect: the suite has no testCommand"]
    loaded(tmp_path / "b", test_a=TESTED + line)
    loaded(tmp_path / "c", config="testCommand: make test\n", test_a=GOOD + line)
    make(tmp_path / "d", config=f"trials: 1\n{line}", test_a=GOOD)
    assert problems(tmp_path / "d") == [f"zelda.config.yaml:2:1: {key} has no effect: no suite has a testCommand"]


def test_of_the_metrics_of_both_files_one_must_be_left_on(tmp_path):
    off = [f"{field.alias}: false" for field in MetricSwitches.model_fields.values()]
    said = "1:1: metrics are all off: leave at least one of them on"
    config, suite = (f"metrics: {{{', '.join(each)}}}\n" for each in (off[1:], off[:1]))
    assert about_suite(make(tmp_path, config=config), suite + GOOD) == [said]
    assert about_suite(make(tmp_path, config="", test_x=""), suite + GOOD) == []


def test_a_suite_may_switch_the_tests_of_the_project_off_but_not_measure_them_then(tmp_path):
    config = "testCommand: make test\ncoverageThreshold: 80\n"
    loaded(tmp_path / "a", config=config, test_a=GOOD + "testCommand: []\n")
    make(tmp_path / "b", config=config, test_a=GOOD + "testCommand: []\ntestReport: a.xml\n")
    assert problems(tmp_path / "b") == ["zelda/test-a.yaml:3:1: testReport has no effect: the suite has no testCommand"]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{called: Read, says: x}", "3:5: item 1 of checks must have one of called, notCalled, order, "),
        ("{name: It reads.}", "it has none of them"),
        ("{caled: Read}", "did you mean called?"),
        ("{called: bash(x)}", "3:14: called of item 1 of checks must be a tool, alone or with what it is called with"),
        ("{order: [Read]}", "order of item 1 of checks must be a list of at least 2"),
        ("{called: Read, times: few}", "times of item 1 of checks must be "),
        ("{notCalled: Read, times: 2}", "has times, which goes with called only"),
        ("{says: x, agent: main}", "has agent, which goes with words for calls only"),
        ("{says: '/(/'}", "says of item 1 of checks is no expression of RE2"),
        (
            "{says: /x/gi}",
            "3:12: says of item 1 of checks is no expression of RE2: no look-around, no back-references",
        ),
        ("{called: Read, times: 3..1}", "3:27: times of item 1 of checks must not end below where it begins"),
        ("{changed: ['!a']}", "3:15: changed of item 1 of checks must name files, not only what ! takes out"),
        ("{command: []}", "3:15: command of item 1 of checks must not be an empty list"),
        ("{before: {first: Read}}", "3:14: before of item 1 of checks has no then"),
        ("{notRead: [/etc/passwd]}", "must be a path inside the project"),
        ("{hookFailed: all}", "hookFailed of item 1 of checks must be none"),
        ("{hookRan: guard}", "hookRan of item 1 of checks must be an event whose hooks Claude Code reports"),
        ("{hookRan: SessionEnd(x)}", "hookRan of item 1 of checks must be an event whose hooks Claude Code reports"),
    ],
)
def test_a_check_that_says_nothing_or_too_much_is_named_with_its_place(written: str, message: str) -> None:
    (problem,) = parse_document(f"prompt: x\nchecks:\n  - {written}\n", "test-a.yaml", SuiteConfig).problems
    assert message in str(problem)
