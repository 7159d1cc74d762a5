"""Keys that mean something only beside a testCommand."""

import pytest

from tests.unit.config.folder import GOOD, about_suite, loaded, make, problems

KEYS = {"coverageThreshold": "80", "testReport": "reports/*.xml", "coverageReport": "[a.xml, b.xml]"}
TESTED = GOOD + "testCommand: make test\n"


@pytest.mark.parametrize(("key", "value"), KEYS.items())
def test_who_measures_what_is_never_run_is_told_where_and_the_command_may_stand_in_either_file(key, value, tmp_path):
    line = f"{key}: {value}\n"
    assert about_suite(tmp_path / "a", GOOD + line) == [f"2:1: {key} has no effect: the suite has no testCommand"]
    loaded(tmp_path / "b", test_a=TESTED + line)
    loaded(tmp_path / "c", config="testCommand: make test\n", test_a=GOOD + line)
    make(tmp_path / "d", config=f"trials: 1\n{line}", test_a=GOOD)
    assert problems(tmp_path / "d") == [f"zelda.config.yaml:2:1: {key} has no effect: no suite has a testCommand"]


def test_a_suite_may_switch_the_tests_of_the_project_off_but_not_measure_them_then(tmp_path):
    config = "testCommand: make test\ncoverageThreshold: 80\n"
    loaded(tmp_path / "a", config=config, test_a=GOOD + "testCommand: []\n")
    make(tmp_path / "b", config=config, test_a=GOOD + "testCommand: []\ntestReport: a.xml\n")
    assert problems(tmp_path / "b") == ["zelda/test-a.yaml:3:1: testReport has no effect: the suite has no testCommand"]
