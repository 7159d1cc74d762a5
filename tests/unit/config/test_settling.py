"""What becomes of a pull request's settings beside those of its base."""

from pathlib import Path

import pytest

from tests.unit.config.folder import loaded, make
from zelda_ci.config.trust import SettledSuite, base_settings, places, settle
from zelda_ci.errors import ConfigError

TESTED = "prompt: x\ntestCommand: make test\n"


def settled(tmp_path: Path, head: dict[str, str], base: dict[str, str]) -> SettledSuite:
    top, other = tmp_path / "head", tmp_path / "base"
    project = loaded(top, **head)
    settings = base_settings(make(other, **base), other, "b" * 40, places(project, top).values())
    (suite,) = settle(project, top, settings).suites
    return suite


def told(suite: SettledSuite) -> list[tuple[str, str, bool]]:
    return [(it.key, str(it.origin), it.loosens) for it in (*suite.changes, *suite.judging_changes)]


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
    suite = settled(tmp_path, head, base)
    assert told(suite) == changes
    assert suite.is_new is ("test_a" not in base)


def test_only_what_counts_has_to_be_right_on_the_base(tmp_path):
    assert told(settled(tmp_path / "a", {"test_a": TESTED}, {"test_a": "undecided: fail\nprompt: [1]\n"})) == []
    for broken in ("prompt: x\ntrials: many\n", "- no mapping\n"):
        with pytest.raises(ConfigError, match="bbbbbbb"):
            settled(tmp_path / broken[0], {"test_a": TESTED}, {"test_a": broken})


def test_where_results_go_is_the_bases_and_its_suites_that_are_gone_are_named(tmp_path: Path) -> None:
    top, other = tmp_path / "head", tmp_path / "base"
    project = loaded(top, config="# own\nresultsDir: mine\n", test_a=TESTED)
    ours = tuple(places(project, top).values())
    base = base_settings(make(other, config="resultsDir: theirs\n", test_a=TESTED, test_gone=TESTED), other, "b", ours)
    found = settle(project, top, base)
    assert (str(found.project.config.results_dir), found.project.results_dir) == ("theirs", top / "theirs")
    assert [(change.key, str(change.origin)) for change in found.changes] == [("resultsDir", "zelda.config.yaml:2")]
    assert (found.gone, [suite.is_new for suite in found.suites]) == (("zelda/test-gone.yaml",), [False])
    same = base_settings(make(tmp_path / "same", config="resultsDir: mine\n"), tmp_path / "same", "b", ours)
    assert (settle(project, top, same).changes, same.gone, same.suites) == ((), (), {})
    # Left out by the pull request, it is told where the base gives it.
    bare = loaded(tmp_path / "bare", test_a=TESTED)
    assert [str(change.origin) for change in settle(bare, tmp_path / "bare", base).changes] == ["zelda.config.yaml:1"]
    (top / "theirs").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match=r"resultsDir.*outside \.git|symbolic link"):
        settle(project, top, base)
