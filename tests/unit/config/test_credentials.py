"""Credentials in files: found wherever they stand, named with the variable to use, and never repeated."""

import pytest

from tests.unit.config.folder import GOOD, about_config, about_suite, make, problems
from zelda_ci.config import project
from zelda_ci.errors import ConfigError

ELSEWHERE = "which does not belong in a file:"
ANY = "keep it in an environment variable (Zelda itself reads ANTHROPIC_API_KEY, and PORTKEY_API_KEY for the gateway)"
REVOKE = ", and revoke the credential if the file was ever committed"
FAKE = "sk-ant-fake0123456789abcdef"
BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"
SHAPES = (FAKE, f"ghp_{'a1B2' * 10}", f"AKIA{'A1B2' * 4}", f"glpat-{'a1B2' * 5}")


@pytest.mark.parametrize("key", ["apiKey", "api_key", "key", "token", "authToken", "clientSecret", "githubToken"])
def test_a_key_that_names_a_credential_is_told_where_it_belongs(key, tmp_path):
    line = f"{key} looks like a credential, {ELSEWHERE} {ANY}"
    assert about_config(tmp_path, f"{key}: hunter2-hunter2\n") == [f"1:1: {line}"]
    assert about_suite(tmp_path / "deep", f"{GOOD}execution:\n  {key}: hunter2\n") == [f"3:3: {line}"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        *((f"# {credential}\n{GOOD}", "1:3") for credential in SHAPES),
        (f"prompt: |\n  -----BEGIN PRIVATE KEY-----\n  {BODY}\n  -----END PRIVATE KEY-----\n", "2:3"),
        (f"prompt: use {FAKE} please\n", "1:13"),
        (f"prompt: |\n  first\n  key={FAKE}\n", "3:7"),
        (f"prompt: x\nacceptanceCriteria:\n  - {FAKE}\n", "3:5"),
        (f"prompt: x\njudgeModel: {FAKE}\n", "2:13"),
        (f"prompt: x\ndescription: '{FAKE}'\n", "2:15"),
    ],
)
def test_a_value_with_the_shape_of_a_key_is_found_anywhere(text, place, tmp_path):
    (line,) = about_suite(tmp_path, text)
    assert line == f"{place}: this has the shape of a credential, {ELSEWHERE} {ANY}{REVOKE}"


@pytest.mark.parametrize(
    "text",
    [
        "Build a task-management-application-service.",
        "sk-learn-pipelines",
        "Use the risk-assessment-tool-2000x",
        "Refuse files that begin with -----BEGIN RSA PRIVATE KEY----- and log the refusal of each of them",
    ],
)
def test_ordinary_words_are_no_credentials(text, tmp_path):
    assert about_suite(tmp_path, f"prompt: {text}\n") == []


def test_a_key_is_found_in_a_file_with_syntax_errors_and_in_a_prompt_file(tmp_path):
    make(tmp_path, test_a=f"# {FAKE}\nprompt: 'open\n", test_b="promptFile: p.md\n")
    (tmp_path / "zelda/p.md").write_text(f"Hello\nuse {FAKE}\n")
    assert [line.split(",")[0] for line in problems(tmp_path)] == [
        "zelda/p.md:2:5: this has the shape of a credential",
        "zelda/test-a.yaml:1:3: this has the shape of a credential",
        "zelda/test-a.yaml:2:9: a quote is opened here and never closed",
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"apiKey: {FAKE}\n",
        f"prompt: {FAKE}\nmaxTurn: {FAKE}\n",
        f"{FAKE}: {FAKE}\n",
        f"prompt: x\n{FAKE}: 1\n{FAKE}: 2\n",
        f"prompt: x\nname: '{FAKE} {FAKE}'\n",
        f"prompt: x\ntestCommand: {{a: {FAKE}}}\n",
        f"prompt: x\nexecution: {{permissionMode: {FAKE}, maxTurns: {FAKE}}}\n",
        f"prompt: *{FAKE}\n",
        f"prompt: !{FAKE} x\n",
        f"prompt: 'x\n{FAKE}",
        f"promptFile: {FAKE}\n",
        "token: hunter2-hunter2\npassword: hunter2-hunter2\n",
        "prompt: x\nexecution: {env: [FOO=hunter2-hunter2]}\n",
        "prompt: x\ngatewayUrl: https://me:hunter2-hunter2@host\n",
    ],
)
def test_no_error_repeats_the_value(text, tmp_path):
    with pytest.raises(ConfigError) as caught:
        project.load(make(tmp_path, test_x=text, config=text))
    assert "fake0123456789" not in caught.value.user_message
    assert "hunter2" not in caught.value.user_message


def test_another_problem_of_the_line_hides_no_credential(tmp_path):
    assert [line.split(",")[0] for line in about_config(tmp_path, f"maxTurn: ghp_{'a1B2' * 10}\n")] == [
        "1:1: maxTurn is not a known key (did you mean execution.maxTurns?)",
        "1:10: this has the shape of a credential",
    ]
