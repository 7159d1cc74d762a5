"""`zelda run` on projects that have a build and tests: real commands, real test runner, a scripted session."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import KEY, gone, processes, the_result, zelda
from tests.support.projects import Project, is_running, repository
from tests.support.scripted_api import ScriptedApi, text, tool_call

PYTHON = shlex.quote(sys.executable)

FILES = {
    "shop.py": "def total(prices):\n    return sum(prices)\n",
    "test_shop.py": (
        "import unittest\nfrom shop import total\n\n"
        "class Totals(unittest.TestCase):\n"
        "    def test_adds_up(self):\n        self.assertEqual(total([1, 2]), 3)\n\n"
        "    def test_of_nothing(self):\n        self.assertEqual(total([]), 0)\n\n"
        "    @unittest.skip('later')\n    def test_of_negative_prices(self):\n        pass\n"
    ),
}
BREAK = "sed -i 's/sum(prices)/sum(prices) + 1/' shop.py"
TESTS = f"testCommand: {json.dumps([sys.executable, '-m', 'unittest'])}\n"
COVERAGE = "printf 'SF:shop.py\\nDA:1,1\\nDA:2,0\\nLF:2\\nLH:1\\nend_of_record\\n' > lcov.info"


def line(key: str, command: str) -> str:
    """A line of a suite; JSON is YAML, whatever the command holds."""
    return f"{key}: {json.dumps(command)}\n"


def project_with(tmp_path: Path, settings: str, **files: str) -> Project:
    suite = f"prompt: Work on the shop.\n{settings}\n"
    return repository(tmp_path, {**FILES, "zelda/test-shop.yaml": suite, **files})


def run(project: Project, script: str = "true", **environ: str) -> tuple[int, str]:
    """Exit code and everything printed, after a session that ran this shell script; nothing of the run is left."""
    before = project.fingerprint()
    with ScriptedApi([tool_call("Bash", {"command": script}), text("Done.")]) as api:
        done = zelda(project, "run", api=api.url, **environ)
    assert project.fingerprint() == before
    assert gone(project)
    output = done.stdout + done.stderr
    assert "Traceback (most recent call last)" not in done.stderr
    return done.returncode, output


def correctness(project: Project) -> dict[str, Any]:
    found: dict[str, Any] = the_result(project)["evaluations"]["functionalCorrectness"]
    return found


def log(project: Project, step: str) -> str:
    (file,) = project.results.glob(f"runs/*/{step}.log")
    return file.read_text()


def test_code_that_is_built_and_tested_passes(tmp_path: Path) -> None:
    project = project_with(tmp_path, TESTS + line("buildCommand", f"{PYTHON} -m compileall -q shop.py && echo built"))
    code, output = run(project, "echo '# new' >> shop.py")
    assert code == 0, output
    found = correctness(project)
    assert (found["score"], found["details"]["passed"]) == (100, True)
    (runner,) = found["details"]["tests"]["runners"]
    assert (runner["format"], runner["passed"], runner["failed"], runner["skipped"]) == ("unittest", 2, 0, 1)
    assert found["details"]["build"]["output"] == "built"
    assert log(project, "build") == "built\n"
    assert "Ran 3 tests" in log(project, "test")
    assert the_result(project)["changes"]["files"] == ["shop.py"]
    assert "2 passed" in output


def test_a_failing_test_fails_the_run_and_is_named(tmp_path: Path) -> None:
    project = project_with(tmp_path, TESTS)
    code, output = run(project, BREAK)
    assert code == 1, output
    assert the_result(project)["status"] == "completed"
    found = correctness(project)
    assert (found["score"], found["details"]["passed"]) == (0, False)
    assert found["details"]["test"]["exitCode"] == 1
    assert "completed, but the tests failed" in output
    assert "2 of 2 tests failed." in output
    assert "test_adds_up" in output
    assert "FAILED (failures=2, skipped=1)" in output
    assert "test.log" in output


def test_tests_are_not_run_on_what_cannot_be_built(tmp_path: Path) -> None:
    project = project_with(tmp_path, TESTS + "buildCommand: echo 'shop.py does not compile' >&2; exit 3\n")
    code, output = run(project)
    assert code == 1, output
    found = correctness(project)
    assert found["score"] == 0
    assert "test" not in found["details"]
    assert "completed, but the build failed" in output
    assert "shop.py does not compile" in output
    assert "build.log" in output
    assert not list(project.results.glob("runs/*/test.log"))


def test_a_command_that_does_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    project = project_with(
        tmp_path,
        "isolation: {level: none}\n"
        f"commandTimeoutSeconds: 2\ntestCommand: 'echo begun; setsid sleep 300 & echo $! > {pids}; sleep 300 & "
        f"echo $! >> {pids}; echo OK; sleep 300'\n",
    )
    code, output = run(project)
    assert code == 1, output
    assert not any(is_running(pid) for pid in pids.read_text().split())
    assert not processes(project)
    found = correctness(project)
    assert found["score"] == 0
    assert found["details"]["test"]["timedOut"]
    assert "exitCode" not in found["details"]["test"]
    assert log(project, "test") == "begun\nOK\n"
    assert "limit of 2 s" in output


REPORT = '<testsuite><testcase name="a"/><testcase name="b"><failure>no</failure></testcase></testsuite>'


def test_a_report_is_preferred_to_what_was_printed(tmp_path: Path) -> None:
    command = f"echo '{REPORT}' > out.xml; echo '===== 9 passed in 0.10s ====='; exit 1"
    project = project_with(tmp_path, f"testReport: '*.xml'\ntestCommand: {json.dumps(command)}\n")
    code, output = run(project)
    assert code == 1, output
    found = correctness(project)
    assert found["score"] == 50
    assert found["details"]["tests"]["runners"][0]["source"] == "report"


@pytest.mark.parametrize("stale", ["committed", "left by the session"])
def test_a_report_that_the_command_did_not_write_never_counts(tmp_path: Path, stale: str) -> None:
    good = REPORT.replace("<failure>no</failure>", "")
    project = project_with(tmp_path, TESTS, **({"junit.xml": good} if stale == "committed" else {}))
    session = BREAK if stale == "committed" else f"{BREAK}; echo '{good}' > junit.xml; touch -d @4000000000 junit.xml"
    code, output = run(project, session)
    assert code == 1, output
    assert [runner["format"] for runner in correctness(project)["details"]["tests"]["runners"]] == ["unittest"]


def test_commands_get_no_key_no_token_and_no_input(tmp_path: Path) -> None:
    look = "env; { cat /proc/$PPID/environ 2>/dev/null || true; } | tr '\\0' '\\n'; cat; echo end of input"
    project = project_with(
        tmp_path,
        f"setupCommand: {json.dumps(look)}\nbuildCommand: {json.dumps(look)}\ntestCommand: {json.dumps(look)}\n",
    )
    code, output = run(project, GITHUB_TOKEN="ghs_fakefakefakefakefakefake", PLAIN="of-the-developer")
    assert code == 0, output
    for step in ("setup", "build", "test"):
        seen = log(project, step)
        assert "CI=true" in seen
        assert seen.endswith("end of input\n")
        for name in ("ANTHROPIC", "GITHUB_TOKEN", "PLAIN", KEY, "ghs_fake", str(project.home)):
            assert name not in seen


def test_a_secret_in_the_output_is_masked_everywhere(tmp_path: Path) -> None:
    project = project_with(tmp_path, f"testCommand: echo {KEY[:10]}''{KEY[10:]}; exit 1\n")
    code, output = run(project)
    assert code == 1
    stored = "".join(file.read_text() for file in project.results.rglob("*") if file.is_file())
    assert KEY not in stored + output
    assert log(project, "test") == "***\n"


def test_a_flood_of_output_is_drained_and_its_end_still_read(tmp_path: Path) -> None:
    command = "yes 'test line of a chatty program' | head -c 500000000; echo; echo '===== 3 passed in 0.10s ====='"
    # `yes` ends by a signal, which a strict shell takes for a failure.
    project = project_with(tmp_path, f"shell: bash -e -c\ntestCommand: {json.dumps(command)}\n")
    code, output = run(project)
    assert code == 0, output
    details = correctness(project)["details"]
    assert details["test"]["outputBytes"] > 500_000_000
    assert details["test"]["truncated"]
    assert "runners" not in details["tests"] or details["tests"]["runners"] == []
    assert "too long" in details["tests"]["note"]
    assert 400_000 < len(log(project, "test")) < 450_000
    (result,) = project.results.glob("runs/*/result.json")
    assert result.stat().st_size < 20_000


@pytest.mark.parametrize(("threshold", "code", "score"), [(50, 0, 100), (80, 1, 100 * (50 + 20 * 50 / 80) / 70)])
def test_coverage_is_held_against_its_threshold(tmp_path: Path, threshold: int, code: int, score: float) -> None:
    command = f"{COVERAGE}; {PYTHON} -m unittest"
    project = project_with(tmp_path, f"coverageThreshold: {threshold}\ntestCommand: {json.dumps(command)}\n")
    found, output = run(project)
    assert found == code, output
    assert correctness(project)["score"] == pytest.approx(score)
    assert correctness(project)["details"]["coverage"] == {"format": "lcov", "lines": 50}
    assert f"threshold {threshold}%" in output


def test_zero_tests_are_no_pass(tmp_path: Path) -> None:
    project = project_with(tmp_path, line("testCommand", f"{PYTHON} -m unittest shop || true"))
    code, output = run(project)
    assert code == 1, output
    assert correctness(project)["score"] == 0
    assert "ran no test" in output


def test_an_exit_code_that_contradicts_the_numbers_is_told(tmp_path: Path) -> None:
    project = project_with(tmp_path, line("testCommand", f"{PYTHON} -m unittest; exit 1"))
    code, output = run(project)
    assert code == 1, output
    assert correctness(project)["score"] == 0
    assert " FAIL " in output
    assert "The command failed (exit code 1) though 2 of 2 tests passed." in " ".join(output.split())


def test_without_a_recognised_runner_the_exit_code_decides_and_the_way_to_counts_is_told(tmp_path: Path) -> None:
    project = project_with(tmp_path, "testCommand: echo all is well\n")
    code, output = run(project)
    assert code == 0, output
    assert correctness(project)["score"] == 100
    assert "testReport" in output


def test_nothing_configured_is_unscored_and_no_failure(tmp_path: Path) -> None:
    project = project_with(tmp_path, "")
    code, output = run(project)
    assert code == 0, output
    assert " MEASURED " in output
    assert " PASS " not in output
    assert "score" not in correctness(project)
    assert correctness(project)["reasoning"].startswith("not configured")


def test_what_build_and_tests_write_is_not_the_work_of_the_session(tmp_path: Path) -> None:
    project = project_with(tmp_path, "buildCommand: echo x > built.txt\ntestCommand: echo x > tested.txt\n")
    code, output = run(project, "echo x > new.txt")
    assert code == 0, output
    assert the_result(project)["changes"]["files"] == ["new.txt"]


def test_a_session_out_of_turns_is_tested_too(tmp_path: Path) -> None:
    project = project_with(tmp_path, TESTS + "execution: {maxTurns: 1}\n")
    code, output = run(project)
    assert code == 1, output
    assert the_result(project)["status"] == "maxTurns"
    assert correctness(project)["score"] == 100


def test_the_last_lines_of_a_failed_setup_are_shown_and_the_rest_is_in_its_log(tmp_path: Path) -> None:
    project = project_with(tmp_path, "setupCommand: seq 1 1000; exit 4\n")
    code, output = run(project)
    assert code == 2, output
    assert "setup.log" in output
    assert log(project, "setup").startswith("1\n2\n3\n")
    assert the_result(project)["setup"]["output"].split() == [str(number) for number in range(981, 1001)]
