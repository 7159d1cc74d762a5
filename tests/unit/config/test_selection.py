"""Which suites a command means."""

import pytest

from tests.unit.config.folder import loaded, make
from zelda_ci.config.project import load
from zelda_ci.config.suites import LoadedSuite, select
from zelda_ci.errors import ConfigError


@pytest.fixture
def suites(tmp_path):
    files = {
        "test_a": "prompt: x\ntags: [fast, api]\n",
        "test_b": "prompt: x\ntags: [slow]\n",
        "test_rest_endpoint": "name: endpoint\nprompt: x\ntags: [api]\n",
    }
    return loaded(tmp_path, **files).suites


def chosen(suites: tuple[LoadedSuite, ...], names: list[str], tags: list[str] | None = None) -> list[str]:
    return [suite.resolved.name for suite in select(suites, names, tags or [])]


@pytest.mark.parametrize(
    "name",
    ["endpoint", "zelda/test-rest-endpoint.yaml", "./zelda/test-rest-endpoint.yaml", "test-rest-endpoint.yaml",
     "/any/where/zelda/test-rest-endpoint.yaml", "../zelda/test-rest-endpoint.yaml"],
)  # fmt: skip
def test_a_suite_is_meant_by_name_or_by_file(name, suites):
    assert chosen(suites, [name]) == ["endpoint"]


@pytest.mark.parametrize(
    ("names", "tags", "message"),
    [
        (["endpont"], [], 'No suite is called "endpont" (did you mean endpoint?).'),
        (["rest-endpoint"], [], 'No suite is called "rest-endpoint" (did you mean zelda/test-rest-endpoint.yaml?).'),
        (["x", "y"], [], 'No suite is called "x".\nNo suite is called "y".'),
        (["other/test-a.yaml"], [], 'No suite is called "other/test-a.yaml" (did you mean zelda/test-a.yaml?).'),
        (["", "."], [], 'No suite is called "".\nNo suite is called ".".'),
        ([], ["apis"], 'No suite has the tag "apis"; there are api, fast, slow.'),
        (["\x1b[31m"], [], 'No suite matches "\\x1b[31m".'),
    ],
)
def test_strangers_are_named_with_the_nearest(names, tags, message, suites):
    with pytest.raises(ConfigError) as caught:
        select(suites, names, tags)
    assert caught.value.message == message
    assert caught.value.code == "UNKNOWN_SUITE"
    with pytest.raises(ConfigError, match=r"None of the named suites has one of the tags\.") as nothing:
        select(suites, ["b"], ["api"])
    assert nothing.value.code == "NO_SUITE_SELECTED"


def test_a_file_whose_name_names_nothing_does_not_keep_others_from_being_meant(tmp_path):
    make(tmp_path, test_b="prompt: x\n")
    (tmp_path / "zelda/test-.yaml").write_text("name: given\nprompt: x\n")
    suites = load(tmp_path).suites
    assert chosen(suites, ["zelda/test-b.yaml"]) == ["b"]
    assert chosen(suites, ["giv*"]) == ["given"]
