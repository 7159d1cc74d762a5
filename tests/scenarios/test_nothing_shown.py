"""Nothing is green in a workflow that was not shown: commands that fail, and suites that ask for nothing."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.scenarios.stage import GREETING, Done, Stage
from tests.support.scripted_api import Reply, text

IDLE: list[Reply] = [text("Done.")]
LIAR = "echo '5 passed in 0.1s'; exit 1"
TITLE = GREETING.partition("testCommand")[0]


def suite(line: str) -> dict[str, str | bytes]:
    return {"README.md": "# Shop\n", "zelda/test-greeting.yaml": TITLE + line}


FAILING = {
    "tests": f'testCommand: "{LIAR}"\n',
    "the build": "buildCommand: exit 3\ntestCommand: echo '5 passed in 0.1s'\n",
    "coverage": "testCommand: echo '5 passed in 0.1s'\ncoverageThreshold: 80\n",
}
NO_SCORE_ASKED = f'testCommand: "{LIAR}"\ngate: {{minScore: {{functionalCorrectness: 0}}}}\n'


def is_red(stage: Stage, done: Done) -> None:
    assert done.code == 1, done.printed
    assert done.outputs["verdict"] == "failed"
    assert float(done.outputs["score"]) < 100
    assert "The gate does not pass" in done.printed
    root = ET.parse(stage.project.path / done.outputs["junit-path"]).getroot()
    assert int(root.get("failures", "0")) >= 1


@pytest.mark.parametrize("what", FAILING)
def test_a_command_that_fails_is_red_whatever_it_prints(tmp_path: Path, what: str) -> None:
    with Stage(tmp_path, suite(FAILING[what])) as stage:
        is_red(stage, stage.push(IDLE))


def test_nor_do_a_gate_that_asks_for_no_score_and_a_baseline_that_is_no_better_change_it(tmp_path: Path) -> None:
    with Stage(tmp_path, suite(NO_SCORE_ASKED)) as stage:
        is_red(stage, stage.push(IDLE))
        is_red(stage, stage.pull_request(stage.open_pull(), IDLE))
        (body,) = stage.bodies()
        assert "no change found in 1 suite, 1 fails as before" in body


def test_a_suite_that_asks_for_nothing_is_measured_and_never_passed(tmp_path: Path) -> None:
    with Stage(tmp_path, suite("")) as stage:
        done = stage.push(IDLE)
        assert done.code == 0, done.printed
        assert done.outputs["verdict"] == "measured"
        assert "The gate passes" not in done.printed
        assert "PASS" not in done.printed + done.summary
        assert "passed" not in done.summary
        root = ET.parse(stage.project.path / done.outputs["junit-path"]).getroot()
        assert all(case.find("skipped") is not None for case in root.iter("testcase"))
        stage.pull_request(stage.open_pull(), IDLE)
        (body,) = stage.bodies()
        assert "measured" in body
        assert "passed" not in body
