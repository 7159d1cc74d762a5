"""Which suites a command means."""

import pytest

from tests.unit.config.folder import loaded, make
from zelda_ci.config.project import LoadedProject, load, select
from zelda_ci.errors import ConfigError


@pytest.fixture
def project(tmp_path):
    files = {
        "test_a": "prompt: x\ntags: [fast, api]\n",
        "test_b": "prompt: x\ntags: [slow]\n",
        "test_rest_endpoint": "name: endpoint\nprompt: x\ntags: [api]\n",
    }
    return loaded(tmp_path, **files)


def chosen(project: LoadedProject, *names: str) -> list[str]:
    return [suite.resolved.name for suite in select(project, names)]


@pytest.mark.parametrize(
    "name",
    ["endpoint", "zelda/test-rest-endpoint.yaml", "./zelda/test-rest-endpoint.yaml", "test-rest-endpoint.yaml",
     "/any/where/zelda/test-rest-endpoint.yaml", "../zelda/test-rest-endpoint.yaml"],
)  # fmt: skip
def test_a_suite_is_meant_by_name_or_by_file(name, project):
    assert chosen(project, name) == ["endpoint"]


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
def test_strangers_are_named_with_the_nearest(names, tags, message, project):
    with pytest.raises(ConfigError) as caught:
        select(project, names, tags)
    assert caught.value.message == message
    assert caught.value.code == "UNKNOWN_SUITE"
    with pytest.raises(ConfigError, match=r"None of the named suites has one of the tags\.") as nothing:
        select(project, ["b"], ["api"])
    assert nothing.value.code == "NO_SUITE_SELECTED"


def test_a_file_whose_name_names_nothing_does_not_keep_others_from_being_meant(tmp_path):
    make(tmp_path, test_b="prompt: x\n")
    (tmp_path / "zelda/test-.yaml").write_text("name: given\nprompt: x\n")
    assert chosen(load(tmp_path), "zelda/test-b.yaml") == ["b"]
    assert chosen(load(tmp_path), "giv*") == ["given"]


def test_of_a_path_that_exists_and_is_no_suite_here_it_is_said_what_it_is(tmp_path, monkeypatch):
    here, other = tmp_path / "here", tmp_path / "other"
    project = loaded(here, test_a="prompt: x\n")
    loaded(other, test_b="prompt: x\n")
    (here / "src").mkdir()
    (here / "src/test-c.yaml").write_text("prompt: x\n")
    monkeypatch.chdir(here)
    for name in ("../other/zelda/test-b.yaml", "../other", str(other / "zelda/test-b.yaml")):
        with pytest.raises(ConfigError) as caught:
            select(project, [name])
        assert "belongs to another project (--project ../other," in caught.value.message
    with pytest.raises(ConfigError) as caught:
        select(project, ["src/test-c.yaml"])
    assert caught.value.message.endswith("it exists, but suites are the files zelda/test-NAME.yaml.")
