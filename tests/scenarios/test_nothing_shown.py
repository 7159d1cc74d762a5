"""Nothing is green in a workflow that was not shown: commands that fail, and suites that ask for nothing."""

from pathlib import Path
from xml.etree import ElementTree as ET

from tests.scenarios.stage import GREETING, Done, Stage
from tests.support.scripted_api import Reply, text

IDLE: list[Reply] = [text("Done.")]
LIAR = "echo '5 passed in 0.1s'; exit 1"
TITLE = GREETING.partition("testCommand")[0]


FAILING = {
    "tests": f'testCommand: "{LIAR}"\n',
    "build": "buildCommand: exit 3\ntestCommand: echo '5 passed in 0.1s'\n",
    "coverage": "testCommand: echo '5 passed in 0.1s'\ncoverageThreshold: 80\n",
    # Nor does a gate that asks for no score change it.
    "lenient": f'testCommand: "{LIAR}"\ngate: {{minScore: {{functionalCorrectness: 0}}}}\n',
}


def test_a_command_that_fails_is_red_whatever_it_prints_unless_it_fails_on_the_base_too(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"zelda/test-{name}.yaml": TITLE + line for name, line in FAILING.items()}

    def is_red(done: Done) -> None:
        assert done.code == 1, done.printed
        assert done.outputs["verdict"] == "failed"
        assert float(done.outputs["score"]) < 100
        assert "The gate does not pass" in done.printed
        root = ET.parse(stage.project.path / done.outputs["junit-path"]).getroot()
        assert int(root.get("failures", "0")) >= len(FAILING)

    with Stage(tmp_path, {"README.md": "# Shop\n", **files}) as stage:
        is_red(stage.push(lambda _: IDLE[0], jobs="4"))
        done = stage.pull_request(stage.open_pull(), IDLE, suites="tests")
        assert done.code == 0, done.printed
        (body,) = stage.bodies()
        assert "no change found in 1 suite, 1 fails on the base, too" in body


def test_a_suite_that_asks_for_nothing_is_measured_and_never_passed(tmp_path: Path) -> None:
    with Stage(tmp_path, {"README.md": "# Shop\n", "zelda/test-greeting.yaml": TITLE}) as stage:
        done = stage.pull_request(stage.open_pull(), IDLE)
        assert done.code == 0, done.printed
        assert done.outputs["verdict"] == "measured"
        assert "The gate passes" not in done.printed
        assert "PASS" not in done.printed + done.summary
        assert "passed" not in done.summary
        root = ET.parse(stage.project.path / done.outputs["junit-path"]).getroot()
        assert all(case.find("skipped") is not None for case in root.iter("testcase"))
        (body,) = stage.bodies()
        assert "measured" in body
        assert "passed" not in body
