"""`zelda explain` says what the table of error codes says, to people on a terminal."""

import pytest
from click.testing import CliRunner

from zelda_ci.cli.commands import zelda
from zelda_ci.errors import ConfigError, ZeldaError, explanations


def said(*words: str) -> tuple[str, int]:
    done = CliRunner().invoke(zelda, ["explain", *words])
    return done.output, done.exit_code


@pytest.mark.parametrize("spelled", ["CREDENTIAL_MISSING", "credential-missing", "credential missing"])
def test_a_code_is_explained_with_addresses_that_can_be_opened(spelled: str) -> None:
    page = "https://github.com/zelda-ci/zelda-ci/blob/main/docs/configuration.md#credentials"
    means = "CREDENTIAL_MISSING: A cloud was chosen, and a part of its credential is not set or cannot be used."
    assert said(*spelled.split()) == (f"{means}\n  Set the variables of your kind of credential ({page}).\n", 0)


def test_words_find_every_explanation_that_has_them_and_others_are_an_error_of_use() -> None:
    output, code = said("Init", "files")
    assert (output.splitlines()[0].partition(":")[0], code) == ("INIT_WOULD_OVERWRITE", 0)
    output, code = said("no-such-thing")
    assert "No error code is 'no-such-thing'" in output
    assert code == 2


def test_every_code_is_explained_in_sentences_and_every_default_code_is_known() -> None:
    rows = explanations()
    assert {ZeldaError.default_code, ConfigError.default_code} <= rows.keys()
    assert [code for code, it in rows.items() if not it.meaning.endswith((".", ":")) or not it.action] == []
