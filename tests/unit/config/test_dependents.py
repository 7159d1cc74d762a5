"""Keys that mean something only beside a testCommand."""

import pytest

from tests.unit.config.folder import GOOD, about_suite, loaded, make, problems

KEYS = {"coverageThreshold": "80", "testReport": "reports/*.xml", "coverageReport": "[a.xml, b.xml]"}
TESTED = GOOD + "testCommand: make test\n"


@pytest.mark.parametrize(("key", "value"), KEYS.items())
def test_a_suite_that_measures_what_it_never_runs_is_told_where(key, value, tmp_path):
    assert about_suite(tmp_path, f"{GOOD}{key}: {value}\n") == [
        f"2:1: {key} has no effect: the suite has no testCommand"
    ]


@pytest.mark.parametrize(("key", "value"), KEYS.items())
def test_the_command_may_stand_in_either_file(key, value, tmp_path):
    loaded(tmp_path / "a", test_a=f"{TESTED}{key}: {value}\n")
    loaded(tmp_path / "b", config="testCommand: make test\n", test_a=f"{GOOD}{key}: {value}\n")


@pytest.mark.parametrize(("key", "value"), KEYS.items())
def test_the_project_is_told_when_no_suite_has_tests(key, value, tmp_path):
    make(tmp_path, config=f"trials: 1\n{key}: {value}\n", test_a=GOOD)
    assert problems(tmp_path) == [f"zelda.config.yaml:2:1: {key} has no effect: no suite has a testCommand"]


def test_a_suite_may_switch_the_tests_of_the_project_off_but_not_measure_them_then(tmp_path):
    config = "testCommand: make test\ncoverageThreshold: 80\n"
    loaded(tmp_path / "a", config=config, test_a=GOOD + "testCommand: []\n")
    make(tmp_path / "b", config=config, test_a=GOOD + "testCommand: []\ntestReport: a.xml\n")
    assert problems(tmp_path / "b") == ["zelda/test-a.yaml:3:1: testReport has no effect: the suite has no testCommand"]
