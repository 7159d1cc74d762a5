"""Nothing is green in a workflow that was not shown: commands that fail, and suites that ask for nothing."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.scenarios.stage import GREETING, Stage
from tests.support.scripted_api import Reply, text

IDLE: list[Reply] = [text("Done.")]
LIAR = "echo '5 passed in 0.1s'; exit 1"
TITLE = GREETING.partition("testCommand")[0]


def suite(line: str) -> dict[str, str | bytes]:
    return {"README.md": "# Shop\n", "zelda/test-greeting.yaml": TITLE + line}


@pytest.mark.parametrize(
    "lines",
    [
        f'testCommand: "{LIAR}"\n',
        f'testCommand: "{LIAR}"\ngate: {{minScore: {{functionalCorrectness: 0}}}}\n',
        "buildCommand: exit 3\ntestCommand: echo '5 passed in 0.1s'\n",
        "testCommand: echo '5 passed in 0.1s'\ncoverageThreshold: 80\n",
    ],
)
def test_a_command_that_fails_is_red_whatever_it_prints(tmp_path: Path, lines: str) -> None:
    with Stage(tmp_path, suite(lines)) as stage:
        done = stage.push(IDLE)
        assert done.code == 1, done.printed
        assert done.outputs["verdict"] == "failed"
        assert float(done.outputs["score"]) < 100
        assert "The gate does not pass" in done.printed
        # A baseline that is no better changes nothing.
        done = stage.pull_request(stage.open_pull(), IDLE)
        assert done.code == 1, done.printed
        assert done.outputs["verdict"] == "failed"
        (body,) = stage.bodies()
        assert "1 evaluation failed" in body
        root = ET.parse(stage.project.path / done.outputs["junit-path"]).getroot()
        assert int(root.get("failures", "0")) >= 1


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
