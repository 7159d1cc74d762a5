"""What `zelda run` prints: the real command and CLI, one suite that passes and one that does not."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from tests.support.command import results, zelda
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text

SUITE = "prompt: Say hello.\nmetrics: {{toolUsage: false}}\nexecution: {{maxTurns: 2}}\ntestCommand: {command}\n"
GOOD = SUITE.format(command="'true'")
BAD = SUITE.format(command="'echo no such luck; exit 3'")


def run(project: Project, *arguments: str, **environment: str) -> tuple[int, str, str]:
    with ScriptedApi(lambda _: text("Hello.")) as api:
        done = zelda(project, "run", *arguments, api=api.url, **environment)
    return done.returncode, done.stdout, done.stderr


def test_a_suite_is_a_line_and_what_failed_is_told_at_the_end(tmp_path: Path) -> None:
    files = {"README.md": "# Sample\n", "zelda/test-a-bad.yaml": BAD, "zelda/test-b-good.yaml": GOOD}
    project = repository(tmp_path, files)
    code, output, errors = run(project, COLUMNS="60")
    assert code == 1, errors
    lines = output.splitlines()
    begins = next(at for at, line in enumerate(lines) if re.search(r"b-good +workspace", line))
    (failed,) = [at for at, line in enumerate(lines) if re.match(r" +FAIL +a-bad +completed", line) and at < begins]
    assert "exit code 3" in "\n".join(lines[failed:begins])
    told = output[output.index("What went wrong") :]
    for part in ("no such luck", "exit code 3", "Next", "test.log"):
        assert part in told, output
    passed = [line for line in lines if re.match(r" +MEASURED +b-good +completed", line)]
    assert len(passed) == 1, output
    after = "\n".join(lines[lines.index(passed[0]) :])
    assert "Session" not in after
    assert re.search(r"Verdict +Suite|MEASURED +b-good", after)
    (batch,) = {result["batchId"] for result in results(project)}
    assert batch in after
    again = zelda(project, "show", batch)
    assert again.returncode == 0
    assert "no such luck" in again.stdout

    # Asked once more: only failures, a line each.
    code, output, errors = run(project, "--quiet", "a-bad")
    assert code == 1, errors
    first, why, *last = output.splitlines()
    assert first.split()[:2] == ["FAIL", "a-bad"]
    assert why.strip() == "testCommand ended with exit code 3."
    assert len(last) <= 2, output
    assert "1 failed" in last[0]
    assert "exit code 1" in last[0]
    # For programs, printed and written beside; and what is known by now of the time.
    code, output, errors = run(project, "--reporter=junit", "--reporter=json=out.json")
    assert code == 1, errors
    root = ET.fromstring(output)
    assert {case.get("name") for case in root.iter("testcase") if case.find("failure") is not None} >= {"tests"}
    assert [suite.get("name") for suite in root.findall("testsuite")] == ["a-bad", "b-good"]
    assert len(json.loads((project.path / "out.json").read_text())["runs"]) == 2
    assert "2 runs, about " in errors
