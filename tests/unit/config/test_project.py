"""A whole project: where it is, which files belong to it, and all its problems at once."""

from pathlib import Path

import pytest

from tests.unit.config.folder import GOOD, make, problems
from zelda_ci.config.project import load
from zelda_ci.errors import ConfigError

KEYS = "it must hold keys, each followed by a colon and its value"
TRIALS = "trials must be a whole number, adaptive or a group of keys"


def names(root: Path) -> list[str]:
    return [suite.resolved.name for suite in load(root).suites]


def test_suites_are_found_by_name_in_order_and_called_after_their_files(tmp_path):
    make(tmp_path, test_b=GOOD, test_a=GOOD, test_rest_endpoint=GOOD, other=GOOD)
    (tmp_path / "zelda/test-c.yml").write_text(GOOD)
    (tmp_path / "zelda/test-d.yaml.bak").write_text("[")
    (tmp_path / "zelda/sub").mkdir()
    (tmp_path / "zelda/sub/test-e.yaml").write_text(GOOD)
    (tmp_path / "zelda/.hidden").mkdir()
    (tmp_path / "zelda/.hidden/test-f.yaml").write_text("[")
    assert names(tmp_path) == ["e", "a", "b", "c", "rest-endpoint"]


@pytest.mark.parametrize(
    ("text", "what"),
    [("", "is empty"), ("# only\n", "is empty"), ("tags: [a]\n", "has no prompt"), ("prompt:", "has no prompt")],
)
def test_a_suite_without_a_prompt_is_told_so(text, what, tmp_path):
    needs = "it needs a prompt (or a promptFile), and acceptanceCriteria or checks to be judged by"
    assert problems(make(tmp_path, test_a=text)) == [f"zelda/test-a.yaml:1:1: the suite {what}: {needs}"]


def test_every_problem_of_every_file_is_reported_at_once_in_order(tmp_path):
    make(
        tmp_path,
        config="trials: 1.5\nexecution:\n  maxTurn: 5\n",
        test_c="- a\n",
        test_a="prompt: x\ntrials: 0\napiKey: x1x1x1x1\nexecution:\n  timeoutSeconds: '5'\n",
        test_b="prompt: 'x\n",
        test_d="just words\n",
    )
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert caught.value.message.splitlines() == [
        "8 problems in the configuration:",
        f"zelda.config.yaml:1:9: {TRIALS}, not 1.5",
        "zelda.config.yaml:3:3: maxTurn is not a known key (did you mean maxTurns?)",
        "zelda/test-a.yaml:2:9: trials must be at least 1, not 0",
        (
            "zelda/test-a.yaml:3:1: apiKey looks like a credential, which does not belong in a file: keep "
            "it in an environment variable (Zelda itself reads ANTHROPIC_API_KEY, and PORTKEY_API_KEY for the gateway)"
        ),
        ("zelda/test-a.yaml:5:19: execution.timeoutSeconds must be a number, not text: remove the quotes"),
        "zelda/test-b.yaml:1:9: a quote is opened here and never closed",
        f"zelda/test-c.yaml:1:1: the file holds a list; {KEYS}",
        f"zelda/test-d.yaml:1:1: the file holds a single text; {KEYS}",
    ]
    assert caught.value.hint == "Nothing was run. Correct the configuration, then check it with `zelda validate`."
    assert (caught.value.code, caught.value.exit_code) == ("CONFIG_VALIDATION_FAILED", 2)


def test_names_must_be_unique_whatever_their_case(tmp_path):
    make(tmp_path, test_a="name: Same\nprompt: x\n", test_b="prompt: x\nname: same\n", test_same=GOOD)
    (tmp_path / "zelda/test-a.yml").write_text(GOOD)
    assert problems(tmp_path) == [
        "zelda/test-b.yaml:2:1: the name same is that of zelda/test-a.yaml already: every suite needs its own",
        "zelda/test-same.yaml: the name same is that of zelda/test-a.yaml already: every suite needs its own",
    ]


NAME = "at most 60 letters, digits, dots, dashes and underscores, beginning with a letter or digit"


@pytest.mark.parametrize("name", ["'a b'", "../x", "'.hidden'", "-x", "'" + "n" * 61 + "'", "naïve", '"con\\t"'])
def test_a_name_must_be_fit_for_a_folder(name, tmp_path):
    assert problems(make(tmp_path, test_a=f"name: {name}\nprompt: x\n")) == [
        f"zelda/test-a.yaml:1:7: name must be {NAME}"
    ]


@pytest.mark.parametrize("file", ["test-.yaml", "test-a b.yaml"])
def test_so_must_a_name_that_comes_from_the_file(file, tmp_path):
    make(tmp_path, test_fine=GOOD)
    (tmp_path / "zelda" / file).write_text(GOOD)
    assert problems(tmp_path) == [
        f"zelda/{file}: the suite's name, taken from the file's, must be {NAME}: set name, or rename the file"
    ]
    (tmp_path / "zelda" / file).write_text("name: given\nprompt: x\n")
    assert "given" in names(tmp_path)


def test_no_suites_is_an_error_that_says_how_to_make_one_and_points_out_what_is_almost_one(tmp_path):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert caught.value.message == (
        "zelda: does not exist, so there are no suites: write one to "
        "zelda/test-<name>.yaml, or let `zelda init` make an example"
    )
    assert (caught.value.code, caught.value.exit_code) == ("NO_SUITES", 2)
    (almost,) = problems(make(tmp_path, rest=GOOD))
    assert almost == (
        "zelda: holds no suites: write one to zelda/test-<name>.yaml, or let `zelda init` make an example "
        "(zelda/rest.yaml looks like a suite and is not run: call it zelda/test-rest.yaml)"
    )
    (tmp_path / "promptfooconfig.yaml").write_text("prompts: [x]\n")
    (tmp_path / "zelda").rename(tmp_path / "suites")
    (tmp_path / "promptfooconfig.yaml").write_text("prompts: [x]\n")  # which `zelda import` reads
    assert "(suites/rest.yaml looks like a suite and is not run: call it zelda/test-rest.yaml)" in problems(tmp_path)[0]


def test_a_file_that_was_meant_to_be_the_configuration_is_pointed_out(tmp_path):
    (tmp_path / "zelda.yml").touch()
    (said,) = problems(make(tmp_path, test_x=GOOD))
    assert said.startswith("zelda.yml: is not read: rename it to zelda.config.yaml")
    assert problems(make(tmp_path, config="")) == []


def test_links_do_not_lead_out_of_the_project(tmp_path):
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    (outside / "test-a.yaml").write_text(GOOD)
    root.mkdir()
    (root / "zelda").symlink_to(outside)
    (root / ".zelda").symlink_to(outside)
    (tmp_path / "zelda").write_text("x")
    assert problems(tmp_path) == ["zelda.config.yaml: testDir is not a folder"]
    assert problems(tmp_path / "nowhere") == [f"{tmp_path}/nowhere: is not a folder"]
    assert problems(root) == [
        "zelda.config.yaml: resultsDir must be a folder of its own in the project, outside .git",
        "zelda.config.yaml: testDir leads out of the project through a symbolic link",
    ]


def test_the_project_is_found_from_a_folder_inside_its_repository_and_never_above_that(tmp_path):
    make(tmp_path, test_a=GOOD)
    inner = tmp_path / "src/deep"
    inner.mkdir(parents=True)
    assert "zelda: does not exist" in problems(inner)[0]
    (inner / ".git").write_text("gitdir: elsewhere\n")
    assert "zelda: does not exist" in problems(inner)[0]
    (inner / ".git").unlink()
    (tmp_path / ".git").mkdir()
    assert load(inner).root == tmp_path.resolve()
    make(tmp_path / "src", test_b=GOOD)
    assert load(inner).root == (tmp_path / "src").resolve()
