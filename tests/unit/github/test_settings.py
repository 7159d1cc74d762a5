"""Inputs and GITHUB_* variables become settings, or one error that names everything that is wrong."""

import json
from pathlib import Path

import pytest

from zelda_ci.ci.settings import ActionSettings, environment, read_action_settings
from zelda_ci.errors import ConfigError
from zelda_ci.github.archives import artifact_name
from zelda_ci.overrides import Given, Overrides
from zelda_ci.redact import Redactor

TOKEN = "ghs_faketoken0123456789012345678901234567"


def environ(workspace: Path, **inputs: str) -> dict[str, str]:
    return {
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_REPOSITORY": "octo/shop",
        "GITHUB_REPOSITORY_ID": "42",
        "GITHUB_RUN_ID": "1001",
        "GITHUB_SHA": "a" * 40,
        "GITHUB_WORKSPACE": str(workspace),
        "GITHUB_WORKFLOW_REF": "octo/shop/.github/workflows/zelda.yml@refs/heads/main",
        **{"INPUT_" + name.replace("_", "-").upper(): value for name, value in inputs.items()},
    }


def settings(workspace: Path, event: object = None, **inputs: str) -> ActionSettings:
    variables = environ(workspace, **inputs) | {"GITHUB_EVENT_PATH": "/github/workflow/event.json"}
    found = read_action_settings(variables, lambda _: json.dumps(event or {}).encode())
    if found.problem:
        raise found.problem
    return found


def test_without_inputs_everything_has_its_default(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert (found.mode, found.comment, found.jobs) == ("auto", "always", 1)
    assert (found.suites, found.overrides, found.baseline, found.compare) == ((), Overrides(), None, True)
    assert (found.artifact_name, found.include_transcripts) == ("zelda-results", True)
    assert found.project == tmp_path
    assert found.github_token is None
    assert found.context.workflow == ".github/workflows/zelda.yml"


def test_inputs_arrive(tmp_path: Path) -> None:
    (tmp_path / "shop/cassettes").mkdir(parents=True)
    (tmp_path / "shop/zelda.config.yaml").touch()
    (tmp_path / "main.json").touch()
    found = settings(
        tmp_path,
        mode="run",
        suites="rest-endpoint, bug\n zelda/test-a.yaml",
        working_directory="shop",
        config="zelda.config.yaml",
        anthropic_api_key=" sk-ant-fake-key\n",
        trials="3",
        max_cost_usd="2.5",
        baseline="../main.json",
        comment="failures",
        comment_id="node 20 / linux",
        fail_on="regression",
        replay="cassettes",
        include_transcripts="False",
        isolation_require="landlock",
        retention_days="14",
    )
    assert found.suites == ("rest-endpoint", "bug", "zelda/test-a.yaml")
    assert found.project == tmp_path / "shop"
    assert found.anthropic_api_key
    assert found.anthropic_api_key.reveal() == "sk-ant-fake-key"
    assert found.overrides == Overrides(
        {
            "trials": Given(3, "input", "trials"),
            "execution.maxCostUsd": Given(2.5, "input", "max-cost-usd"),
            "gate.failOn": Given(("regression",), "input", "fail-on"),
            "isolation.require": Given("landlock", "input", "isolation-require"),
        }
    )
    assert found.retention_days == 14
    assert (found.baseline, found.compare) == (tmp_path / "shop/../main.json", True)
    assert found.artifact_name == artifact_name("zelda-results-node 20 / linux")
    assert found.replay == tmp_path / "shop/cassettes"
    assert not found.include_transcripts


@pytest.mark.parametrize(("given", "kinds"), [("never", ()), ("evaluation\nregression", ("evaluation", "regression"))])
def test_what_turns_the_check_red_can_be_chosen(tmp_path: Path, given: str, kinds: tuple[str, ...]) -> None:
    assert settings(tmp_path, fail_on=given).overrides.get("gate.failOn") == Given(kinds, "input", "fail-on")


def test_every_wrong_input_is_named_at_once_with_what_is_allowed(tmp_path: Path) -> None:
    wrong = {
        "mode": "dance",
        "trials": "-1",
        "jobs": "many",
        "max_cost_usd": "inf",
        "comment": "loud",
        "fail_on": "never, regression",
        "include_transcripts": "perhaps",
        "baseline": "nowhere.json",
        "config": "other.yaml",
        "retention_days": "1e3",
        "artifact_name": "a/b",
        "junit_path": "../../outside.xml",
        "isolation_level": "iron",
        "isolation_require": "auto",
        "gateway_url": "ftp://x",
        "replay": "/etc",
        "baseline_branch": "a b",
        "comment_id": "a\nb",
        "shards": "0",
        "shard": "3/2",
        "plan": "latest",
    }
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, **wrong)
    lines = caught.value.message.splitlines()
    assert len(lines) == len(wrong)
    assert {line.split()[2].replace("-", "_") for line in lines} == set(wrong)
    assert "The input mode is 'dance', which cannot be used: it must be auto, run, comment, plan or merge." in lines
    assert (
        "The input isolation-require cannot be used: isolation.require must be full, uid, landlock or none."
    ) in lines
    with pytest.raises(ConfigError, match="The input jobs is ") as caught:
        settings(tmp_path, jobs="sk-ant-api03-fakefakefakefakefakefake")
    assert "fakefake" not in caught.value.message
    words = "must be a number, not text: write it in plain digits, such as 10"
    assert f"The input max-cost-usd cannot be used: execution.maxCostUsd {words}." in lines
    assert (
        "The input fail-on cannot be used: item 1 of gate.failOn must be regression or evaluation, or never alone."
    ) in lines
    assert caught.value.code == "INPUT_INVALID"


def test_a_link_does_not_lead_out_of_the_workspace_and_no_folder_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/out").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="must lie in the workspace"):
        settings(tmp_path / "workspace", working_directory="out")
    with pytest.raises(ConfigError, match=r"junit-path .*must name no folder"):
        settings(tmp_path, junit_path="workspace")


@pytest.mark.parametrize(
    ("name", "secret", "why"),
    [
        ("anthropic_api_key", "sk-ant-fake key", "it holds blanks"),
        ("github_token", "ghs_fake\nghs_fake", "it holds blanks"),
        ("portkey_api_key", "ghs_f\u00e4ke", "it holds blanks"),
        ("anthropic_api_key", "'sk-ant-fake-key'", "it is in quotes"),
    ],
)
def test_a_secret_that_cannot_be_sent_is_told_without_it(tmp_path: Path, name: str, secret: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"input {name.replace('_', '-')} cannot be used: {why}") as caught:
        settings(tmp_path, **{name: secret})
    assert "fake" not in caught.value.message


def test_outside_a_workflow_the_error_says_what_is_missing() -> None:
    with pytest.raises(ConfigError, match="GITHUB_EVENT_NAME, GITHUB_REPOSITORY, GITHUB_RUN_ID") as caught:
        read_action_settings({"HOME": "/root"}, Path.read_bytes)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("content", [b"[1]", b"\xff", b"{", b"[" * 100_000])
def test_an_event_that_is_no_object_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ConfigError, match="GITHUB_EVENT_PATH"):
        read_action_settings(environ(tmp_path) | {"GITHUB_EVENT_PATH": "/x"}, lambda _: content)


def test_credentials_go_where_zelda_looks_and_never_print(tmp_path: Path) -> None:
    variables = environ(tmp_path, anthropic_api_key="sk-ant-fake-from-input", github_token=TOKEN)
    variables |= {"ANTHROPIC_API_KEY": "sk-ant-fake-from-environment"}
    found = read_action_settings(variables, Path.read_bytes)
    assert "sk-ant-fake" not in repr(found)
    assert TOKEN not in repr(found)
    passed = environment(variables, found)
    assert (credential := passed.credential())
    assert credential.secret is found.anthropic_api_key
    assert not [name for name in passed.environ if name.startswith("INPUT_")]
    assert Redactor(passed.secrets)(f"{TOKEN} sk-ant-fake-from-input sk-ant-fake-from-environment") == "*** *** ***"
    assert "sk-ant-fake" not in repr(passed)
