"""What becomes of a pull request's settings beside those of its base."""

from pathlib import Path

import pytest

from tests.unit.config.folder import loaded, make
from zelda_ci.config.project import SettledProject, settle
from zelda_ci.errors import ConfigError

TESTED = "prompt: x\ntestCommand: make test\n"


def settled(tmp_path: Path, head: dict[str, str], base: dict[str, str]) -> SettledProject:
    top, other = tmp_path / "head", make(tmp_path / "base", **base)
    return settle(loaded(top, **head), top, other, other, "b" * 40)


def told(found: SettledProject) -> list[tuple[str, str, bool]]:
    return [(it.key, str(it.origin), it.loosens) for it in found.changes]


def suite_with(more: str, config: str = "") -> dict[str, str]:
    return {"test_a": TESTED + more, "config": config}


@pytest.mark.parametrize(
    ("head", "base", "changes"),
    [
        # A right is never said to loosen how results are judged, also where its number is lower.
        (suite_with("trials: 2\n"), suite_with("trials: 4\n"), [("trials", "zelda/test-a.yaml:3", False)]),
        (suite_with(""), suite_with("", "trials: 4\n"), [("trials", "zelda.config.yaml:1", False)]),
        (
            suite_with("coverageThreshold: 10\n"),
            suite_with("coverageThreshold: 80\n"),
            [("coverageThreshold", "zelda/test-a.yaml:3", True)],
        ),
        # A suite that the base lacks brings its own rules, but those that the project's file gives are the base's.
        (suite_with("undecided: ignore\n"), {}, []),
        (
            suite_with("", "undecided: ignore\n"),
            {"config": "undecided: fail\n"},
            [("undecided", "zelda.config.yaml:1", True)],
        ),
        (suite_with("undecided: ignore\n"), suite_with(""), [("undecided", "zelda/test-a.yaml:3", True)]),
    ],
)
def test_what_counts_of_a_changed_setting(tmp_path, head, base, changes):
    found = settled(tmp_path, head, base)
    assert told(found) == changes
    assert {(it.suite, it.is_judging) for it in found.changes} <= {("a", changes != [] and changes[0][0] != "trials")}
    assert found.new == (() if "test_a" in base else ("zelda/test-a.yaml",))


def test_only_what_counts_has_to_be_right_on_the_base(tmp_path):
    assert told(settled(tmp_path / "a", {"test_a": TESTED}, {"test_a": "undecided: fail\nprompt: [1]\n"})) == []
    for broken in ("prompt: x\ntrials: many\n", "- no mapping\n"):
        with pytest.raises(ConfigError, match="bbbbbbb"):
            settled(tmp_path / broken[0], {"test_a": TESTED}, {"test_a": broken})


def test_where_results_go_is_the_bases_and_its_suites_that_are_gone_are_named(tmp_path: Path) -> None:
    top, other = tmp_path / "head", tmp_path / "base"
    project = loaded(top, config="# own\nresultsDir: mine\n", test_a=TESTED)
    other = make(other, config="resultsDir: theirs\n", test_a=TESTED, test_gone=TESTED)
    found = settle(project, top, other, other, "b")
    assert (str(found.project.config.results_dir), found.project.results_dir) == ("theirs", top / "theirs")
    assert [(it.key, str(it.origin), it.suite) for it in found.changes] == [("resultsDir", "zelda.config.yaml:2", None)]
    assert (found.gone, found.new) == (("zelda/test-gone.yaml",), ())
    same = make(tmp_path / "same", config="resultsDir: mine\n")
    found = settle(project, top, same, same, "b")
    assert (found.changes, found.gone, found.new) == ((), (), ("zelda/test-a.yaml",))
    # Left out by the pull request, it is told where the base gives it.
    bare, place = loaded(tmp_path / "bare", test_a=TESTED), tmp_path / "bare"
    assert [str(it.origin) for it in settle(bare, place, other, other, "b").changes] == ["zelda.config.yaml:1"]
    (top / "theirs").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match=r"resultsDir.*outside \.git|symbolic link"):
        settle(project, top, other, other, "b")
