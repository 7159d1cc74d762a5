"""JSON Schemas, templates and the reference: current, complete, and of one mind with the loader."""

import re
from pathlib import Path

import pytest
import yaml

from tests.support.schemas import checker
from tests.unit.config.folder import about_config, about_suite, loaded, make, problems
from zelda_ci import __version__
from zelda_ci.config import init, project
from zelda_ci.config.schema import ProjectConfig, entries, keys
from zelda_ci.errors import ConfigError

REPOSITORY = Path(__file__).parents[3]
REFERENCE = REPOSITORY / "docs/configuration.md"
PROJECT = "zelda.config.schema.json"
SUITE = "zelda.suite.schema.json"


def is_accepted(name: str, text: str) -> bool:
    return bool(checker(name).is_valid(yaml.safe_load(text) or {}))


def test_the_templates_name_the_schema_of_this_version_on_their_first_line():
    address = f"https://raw.githubusercontent.com/zelda-ci/zelda-ci/v{__version__}/schemas"
    first = "# yaml-language-server: $schema="
    assert init.config_text().splitlines()[0] == f"{first}{address}/{PROJECT}"
    assert init.first_suite(None).text.splitlines()[0] == f"{first}{address}/{SUITE}"


@pytest.mark.parametrize(
    ("commands", "programs"),
    [((), ()), ([init.CommandLine("testCommand", "a", "b"), init.CommandLine("setupCommand", "c", "d")], ["x/bin"])],
)
def test_every_line_of_the_configuration_template_may_be_uncommented(commands, programs, tmp_path):
    names = "|".join({key.name for key in keys(ProjectConfig)})
    lines = init.config_text((), commands, programs)
    text = re.sub(rf"^( *)# ( *(?:{names}):)", r"\1\2", lines, flags=re.MULTILINE)
    read = loaded(tmp_path, config=text, test_x="prompt: x\n").config
    assert read.trials == ProjectConfig().trials
    assert {"execution.maxTurns: ", "testCommand: "} <= {f"{key}: " for key, value in entries(read) if value}
    assert read.execution.path == tuple(programs)
    assert is_accepted(PROJECT, text)


@pytest.mark.parametrize("remark", [None, "it ended with: # exit code 1\n\x1b[0mtestCommand: evil"])
@pytest.mark.parametrize("command", ["npm ci", "a && b -e '.[test]'", "x: y # z", "yes"])
def test_commands_are_read_back_as_they_are_and_what_is_left_out_is_not_read(command, remark, tmp_path):
    lines = [init.CommandLine("setupCommand", command, "odd\nfile: #", remark)]
    text = init.config_text(["Found: \n- evil\r: yes"], lines)
    read = loaded(tmp_path, config=text, test_x="prompt: x\n").config
    assert read == ProjectConfig(setup_command=() if remark else command)


REFUSED = (
    "maxTurn: 5", "execution:\n  maxTurn: 5", "trials: 1.5", 'trials: "3"', "trials: true", "metrics: {speed: true}",
    "execution: {model: sonnet}", "execution: {maxTurns: 0}", "judge: {votes: 2}", "testDir: ''", "gatewayUrl: x",
    "testCommand: 5", "gate: {failOn: [x]}", "coverageThreshold: 101", "execution: {env: [A=b]}",
)  # fmt: skip
ACCEPTED = (
    "", "trials: 3", "trials:", "execution:", "execution: {maxTurns: }", "setupCommand: [npm, ci]",
    "testCommand: make test\ntestReport: a/*.xml", "testCommand: make test\ntestReport: [a.xml, b.xml]",
    "gate: {minScore: {efficiency: 50}}", "isolation: {level: auto, require: uid}", "efficiencyTargets: {costUsd: 1}",
    "judge: {votes: 3}", "resultsDir: out", "gatewayUrl: https://api.portkey.ai/v1",
)  # fmt: skip
REFUSED_SUITES = ("tags: [a]", "prompt: a\npromptFile: b", "prompt: a\nname: a b", "prompt: a\ntestDir: x")


@pytest.mark.parametrize(
    ("schema", "text", "accepted"),
    [
        *((PROJECT, text, True) for text in ACCEPTED),
        *((PROJECT, text, False) for text in REFUSED),
        *((SUITE, text, False) for text in REFUSED_SUITES),
    ],
)
def test_schema_and_loader_are_of_one_mind(schema, text, accepted, tmp_path):
    assert is_accepted(schema, text) is accepted
    about = about_config if schema == PROJECT else about_suite
    assert (about(tmp_path, text) == []) is accepted


def test_the_error_messages_in_the_docs_are_real(tmp_path):
    make(
        tmp_path,
        config="trials: 3\n\nmaxTurns: 5\n",
        test_api="prompt: x\nacceptanceCriteria: [One.]\ntags:\n  - area: api\n"
        "execution:\n  maxTurn: 5\n  timeoutSeconds: '5'\napiKey: hunter2\n",
    )
    with pytest.raises(ConfigError) as caught:
        project.load(tmp_path)
    text = REFERENCE.read_text("utf-8")
    assert f"error: {caught.value.user_message}\n```" in text


def test_templates_and_the_suite_of_the_docs_are_accepted_by_valid_schemas_and_by_the_loader(tmp_path):
    assert is_accepted(PROJECT, init.config_text())
    assert is_accepted(SUITE, init.first_suite(None).text)
    (suite,) = re.findall(
        r"```yaml\n(# zelda/test-rest-endpoint.yaml\n.*?)```", REFERENCE.read_text("utf-8"), re.DOTALL
    )
    assert is_accepted(SUITE, suite)
    texts = {"test_example": init.first_suite(None).text, "test_api": suite}
    assert problems(make(tmp_path, config=init.config_text(), **texts)) == []
