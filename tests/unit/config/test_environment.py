"""What is read from the environment, and what of it must never be shown."""

import pytest

from tests.support.cases import for_each
from zelda_ci.config import environment
from zelda_ci.errors import ConfigError
from zelda_ci.redact import Redactor, Secret

KEY = "sk-ant-fake0123456789"
PASTE = "begins or ends with blanks or a line break, as after a careless paste"
ADDRESS = "is not an http:// or https:// address without user name, query and fragment"


def test_values_are_read():
    read = environment.read_environment(
        {
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:8080/",
            "PORTKEY_API_KEY": "pk-fake-1234",
            "ZELDA_UNSAFE": "1",
        }
    )
    assert (found := read.credential())
    assert found.secret
    assert (found.variable, found.secret.reveal()) == ("ANTHROPIC_API_KEY", KEY)
    assert read.portkey_api_key is not None
    assert read.portkey_api_key.reveal() == "pk-fake-1234"
    assert (found.base_url, read.unsafe) == ("http://127.0.0.1:8080", True)


def test_a_credential_that_came_in_another_way_stands_for_its_variable():
    read = environment.read_environment({"ANTHROPIC_API_KEY": "'old-key-1234'"}, {"ANTHROPIC_API_KEY": Secret(KEY)})
    assert (found := read.credential())
    assert found.secret
    assert found.secret.mask(f"{KEY} is sent") == "*** is sent"
    assert Redactor(read.secrets)(f"{KEY} 'old-key-1234'") == "*** ***"


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("ANTHROPIC_API_KEY", f"{KEY}\n", PASTE),
        ("ANTHROPIC_API_KEY", "  ", PASTE),
        ("ANTHROPIC_API_KEY", f"'{KEY}'", "is in quotes, which have become part of it"),
        ("ANTHROPIC_API_KEY", f'"{KEY}"', "is in quotes, which have become part of it"),
        ("ANTHROPIC_API_KEY", f"{KEY} {KEY}", "holds blanks or characters that no key has"),
        ("PORTKEY_API_KEY", "pk-fäke-1234", "holds blanks or characters that no key has"),
        ("ANTHROPIC_BASE_URL", "api.anthropic.com", ADDRESS),
        ("ANTHROPIC_BASE_URL", "https://me:hunter2@api", ADDRESS),
        ("ANTHROPIC_BASE_URL", "http://host:99999", ADDRESS),
        ("ANTHROPIC_BASE_URL", "https://host/\n", PASTE),
        ("PORTKEY_GATEWAY_URL", "https://host/?key=hunter2", ADDRESS),
        ("ZELDA_WORKSPACES", "tmp/x", "is not an absolute path"),
        ("ZELDA_WORKSPACES", "/tmp/x\n", PASTE),
    ],
)
def test_a_value_that_cannot_be_used_is_named_but_not_shown(name, value, wrong):
    with pytest.raises(ConfigError) as caught:
        environment.read_environment({name: value})
    assert caught.value.message == f"The environment variable {name} {wrong}."
    assert (caught.value.code, caught.value.exit_code) == ("ENVIRONMENT_INVALID", 2)
    assert "hunter2" not in caught.value.user_message


SECRET = (
    "ANTHROPIC_API_KEY", "PORTKEY_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ANYTHING_ELSE", "STRIPE_KEY", "npm_config_auth_token",
    "DB_PASSWORD", "CLIENT_SECRET", "TOKEN",
)  # fmt: skip
HARMLESS = {
    "PATH": "/usr/local/bin", "STRIPE_KEY": "short", "AWS_REGION": "eu-central-1", "AWS_PROFILE": "default-profile",
    "KEYBOARD": "german", "TOKENS": "123456", "HOMEPAGE": "https://example.org/a@b",
}  # fmt: skip


@for_each([*((name, "value-1234", True) for name in SECRET), *((*each, False) for each in HARMLESS.items())])
def test_values_worth_masking_are_secrets_and_harmless_ones_are_not(name, value, is_secret):
    found = environment.read_environment({name: value}).secrets
    assert [secret.reveal() for secret in found] == [value] * is_secret


def test_all_wrong_values_are_told_at_once_and_no_secret_is_ever_shown():
    with pytest.raises(ConfigError) as caught:
        environment.read_environment({"ANTHROPIC_API_KEY": " x", "PORTKEY_GATEWAY_URL": "x"})
    assert len(caught.value.message.splitlines()) == 2
    read = environment.read_environment(
        {"ANTHROPIC_API_KEY": KEY, "A": "postgres://me:hunter2@db:5432/x", "B": "http://[b:@"}
    )
    assert {secret.reveal() for secret in read.secrets} == {KEY, "hunter2"}
    assert KEY not in repr(read)
