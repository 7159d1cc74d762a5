"""`zelda run` on projects that have a build and tests: real commands, real test runner, a scripted session."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.claude_sessions import with_more_time
from tests.support.command import KEY, gone, processes, the_result, zelda
from tests.support.projects import Project, is_running, repository
from tests.support.scripted_api import ScriptedApi, text, tool_call
from tests.support.suites import Ran, Suite, files, run_suites

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


MAX_NAME = 60
Check = Callable[[Ran], None]
CASES: dict[str, tuple[Suite, int, Check]] = {}
"""By name of the suite: itself, the exit code that it alone would give, and what else must be true of it."""

REPORT = '<testsuite><testcase name="a"/><testcase name="b"><failure>no</failure></testcase></testsuite>'
STALE = REPORT.replace("<failure>no</failure>", "")


def case(settings: str, session: str | None = None, *, code: int) -> Callable[[Check], Check]:
    """Have a suite run together with others, and this looked at afterwards."""

    def register(check: Check) -> Check:
        CASES[check.__name__[:MAX_NAME]] = (Suite(settings, session) if session else Suite(settings), code, check)
        return check

    return register


# --- cases -----------------------------------------------------------------------------------------------------------


@case(
    TESTS + line("buildCommand", f"{PYTHON} -m compileall -q shop.py && echo built"), "echo '# new' >> shop.py", code=0
)
def code_that_is_built_and_tested_passes(ran: Ran) -> None:
    found = ran.correctness
    assert (found["score"], found["details"]["passed"]) == (100, True)
    (runner,) = found["details"]["tests"]["runners"]
    assert (runner["format"], runner["passed"], runner["failed"], runner["skipped"]) == ("unittest", 2, 0, 1)
    assert found["details"]["build"]["output"] == "built"
    assert ran.log("build") == "built\n"
    assert "Ran 3 tests" in ran.log("test")
    assert ran.result["changes"]["files"] == ["shop.py"]
    assert "2 passed" in ran.page


@case(TESTS, f"{BREAK}; echo '{STALE}' > left.xml; touch -d @4000000000 left.xml", code=1)
def a_failing_test_fails_the_run_and_is_named(ran: Ran) -> None:
    """Although a report of tests that passed is committed, and the session left another."""
    assert ran.result["status"] == "completed"
    found = ran.correctness
    assert (found["score"], found["details"]["passed"]) == (0, False)
    assert found["details"]["test"]["exitCode"] == 1
    assert [runner["format"] for runner in found["details"]["tests"]["runners"]] == ["unittest"]
    assert "completed, but the tests failed" in ran.page
    assert "2 of 2 tests failed." in ran.page
    assert "test_adds_up" in ran.page
    assert "FAILED (failures=2, skipped=1)" in ran.page
    assert "test.log" in ran.page


@case(TESTS + "buildCommand: echo 'shop.py does not compile' >&2; exit 3\n", code=1)
def what_cannot_be_built_is_not_tested(ran: Ran) -> None:
    found = ran.correctness
    assert found["score"] == 0
    assert "test" not in found["details"]
    assert "completed, but the build failed" in ran.page
    assert "shop.py does not compile" in ran.page
    assert "build.log" in ran.page
    assert not (ran.folder / "test.log").exists()


LOOK = "env; { cat /proc/$PPID/environ 2>/dev/null || true; } | tr '\\0' '\\n'; cat; echo end of input"


@case(line("setupCommand", LOOK) + line("buildCommand", LOOK) + line("testCommand", LOOK), code=0)
def commands_get_no_key_no_token_and_no_input(ran: Ran) -> None:
    for step in ("setup", "build", "test"):
        seen = ran.log(step)
        assert "CI=true" in seen
        assert seen.endswith("end of input\n")
        for name in ("ANTHROPIC", "GITHUB_TOKEN", "PLAIN", KEY, "ghs_fake", f"{ran.folder.parents[3]}/home"):
            assert name not in seen


@case("coverageThreshold: 80\n" + line("testCommand", f"{COVERAGE}; {PYTHON} -m unittest"), code=1)
def coverage_below_its_threshold_fails_the_run(ran: Ran) -> None:
    assert ran.correctness["score"] == pytest.approx(100 * (50 + 20 * 50 / 80) / 70)
    assert ran.correctness["details"]["coverage"] == {"format": "lcov", "lines": 50}
    assert "threshold 80%" in ran.page


@case("setupCommand: seq 1 1000; exit 4\n", code=2)
def the_last_lines_of_a_failed_setup_are_shown_and_the_rest_is_in_its_log(ran: Ran) -> None:
    assert "setup.log" in ran.page
    assert ran.log("setup").startswith("1\n2\n3\n")
    assert ran.result["setup"]["output"].split() == [str(number) for number in range(981, 1001)]


# --- the runs --------------------------------------------------------------------------------------------------------


def test_what_commands_did_is_stored_scored_and_told(tmp_path: Path) -> None:
    suites = {name: suite for name, (suite, _, _) in CASES.items()}
    project = repository(tmp_path, {**FILES, "junit.xml": STALE, **files(suites)})
    found = run_suites(project, suites, GITHUB_TOKEN="ghs_fakefakefakefakefakefake", PLAIN="of-the-developer")
    assert {name: ran.code for name, ran in found.items()} == {name: code for name, (_, code, _) in CASES.items()}
    for name, (_, _, check) in CASES.items():
        check(found[name])


def test_a_command_that_does_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:

    def ends(place: Path, limit: int) -> bool:
        pids = place / "pids"
        project = project_with(
            place,
            "isolation: {level: none}\n"
            f"commandTimeoutSeconds: {limit}\ntestCommand: 'echo begun; setsid sleep 900 & echo $! > {pids}; "
            f"sleep 900 & echo $! >> {pids}; echo OK; sleep 900'\n",
        )
        code, output = run(project)
        assert not processes(project)
        if code != 1 or log(project, "test") != "begun\nOK\n":
            return False
        assert not any(is_running(pid) for pid in pids.read_text().split())
        found = correctness(project)
        assert found["score"] == 0
        assert found["details"]["test"]["timedOut"]
        assert "exitCode" not in found["details"]["test"]
        return f"limit of {limit} s" in output

    with_more_time(ends, tmp_path, 2, 60)
