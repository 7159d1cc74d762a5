"""`zelda run` on a suite that protects its tests: a session that edits them gains nothing, and is told of."""

import json
import os
import shutil
from pathlib import Path

from tests.integration.test_run_correctness import BREAK, FILES, PYTHON, TESTS, correctness, line, project_with, run
from tests.support.command import zelda
from tests.support.projects import repository
from tests.support.scripted_api import ApiRequest, Message, ScriptedApi, text, tool_call
from tests.support.suites import Ran, Suite, files, run_suites

PROTECTED = 'protectedPaths: [test_shop.py, "**/conftest.py"]\n'
CHEAT = f"{BREAK}; echo > test_shop.py; echo 'import os; os._exit(0)' > conftest.py"


AGAIN = line("setupCommand", "pwd > out/made && cat out/made")
LOOK = line("buildCommand", "cat out/made && test ! -e out/planted && test ! -e $HOME/planted")
EASY = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        pass\n"
# What a build step of the session does to protected files, which are restored before it: each way to one of them.
WAYS = {
    "rewritten": "shutil.copy('easy.txt', FILE)",
    "removed": "os.remove(FILE)",
    "linked": "os.remove(FILE); os.symlink('easy.txt', FILE)",
    "pipe": "os.remove(FILE); os.mkfifo(FILE)",
    "folder": "os.remove(FILE); os.makedirs(f'{FILE}/deep')",
}
BUILD = "import os, shutil\n" + "".join(f"FILE = 'test_{way}.py'\n{act}\n" for way, act in WAYS.items())
BUILT = TESTS + 'protectedPaths: ["test_*.py", "!build.py"]\n' + line("buildCommand", f"{PYTHON} build.py")
SUITES = {
    "cheating": Suite(TESTS + PROTECTED, CHEAT),
    "honest": Suite(TESTS + PROTECTED + AGAIN + LOOK, "echo '# better' >> shop.py; touch out/planted $HOME/planted"),
    "without-setup": Suite(TESTS + PROTECTED + line("setupCommand", f"{PYTHON} setup.py"), "rm setup.py"),
    "building": Suite(BUILT, f"{BREAK}; cp evil.txt build.py"),
}


def test_a_session_gains_nothing_by_what_it_does_to_tests_setup_and_build(tmp_path: Path) -> None:
    more: dict[str, str | bytes] = {"out/.gitignore": "made\nplanted\n", "setup.py": "", "build.py": "pass\n"}
    more |= {f"test_{way}.py": FILES["test_shop.py"] for way in WAYS} | {"evil.txt": BUILD, "easy.txt": EASY}
    found = run_suites(repository(tmp_path, {**FILES, **more, **files(SUITES)}), SUITES)
    a_session_that_edits_the_tests_fails_them_all_the_same(found["cheating"])
    honest_work_passes_and_setup_is_done_again(found["honest"])
    a_session_that_makes_setup_fail_has_failed(found["without-setup"])
    a_build_step_of_the_session_cannot_rewrite_protected_tests(found["building"])


def a_session_that_edits_the_tests_fails_them_all_the_same(ran: Ran) -> None:
    found = ran.correctness["details"]
    assert (ran.code, found["passed"]) == (1, False)
    assert found["tests"]["runners"][0]["failed"] == 2 + 2 * len(WAYS)
    assert ran.result["isolation"]["protected"] == ["conftest.py", "test_shop.py"]
    assert "2 protected files changed by the session, and restored" in ran.page


def honest_work_passes_and_setup_is_done_again(ran: Ran) -> None:
    """What setup made lies among ignored files, and those of the session are not taken over."""
    assert ran.code == 0, ran.page
    assert ran.correctness["details"]["tests"]["runners"][0]["passed"] == 2 + 2 * len(WAYS)
    assert ran.result["isolation"]["protected"] == []
    assert ran.log("setup") != ran.log("setup-again")
    assert ran.log("setup-again") in ran.log("build")


def a_session_that_makes_setup_fail_has_failed(ran: Ran) -> None:
    assert (ran.code, ran.correctness["score"]) == (1, 0)
    assert "In the fresh checkout setupCommand ended with exit code 2." in ran.correctness["reasoning"]
    assert "In the fresh checkout setupCommand" in ran.page


def a_build_step_of_the_session_cannot_rewrite_protected_tests(ran: Ran) -> None:
    found = ran.correctness["details"]
    assert found["tests"]["runners"][0]["failed"] == 2 + 2 * len(WAYS), ran.page
    assert (ran.code, found["passed"]) == (1, False)
    assert "restored before this one: test_folder.py" in ran.log("test")


def test_where_the_checkout_cannot_be_made_nothing_has_passed(tmp_path: Path) -> None:
    """A session may have found a way to prevent it, so this must never be a way to pass."""
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "git").write_text(
        '#!/bin/sh\ncase " $* " in *" read-tree -m "*) echo "fatal: not today" >&2; exit 128;; esac\n'
        f'exec "{shutil.which("git")}" "$@"\n'
    )
    (shims / "git").chmod(0o755)
    project = project_with(tmp_path, TESTS + PROTECTED)
    code, output = run(project, "true", PATH=f"{shims}{os.pathsep}{os.environ['PATH']}")
    found = correctness(project)
    assert (code, found["score"], found["details"]["passed"]) == (1, 0, False)
    assert (
        "The fresh checkout for build and tests could not be made: git read-tree failed: fatal: not today"
        in found["reasoning"]
    )
    assert "not today" in output


def test_the_judge_is_told(tmp_path: Path) -> None:
    judged: list[str] = []

    def script(request: ApiRequest) -> Message:
        if "tools" not in request.body or request.answer_tool:
            judged.append(json.dumps(request.body))
            verdict = {"criterion": 1, "verdict": "PASS", "reasoning": "r", "evidence": []}
            return tool_call(str(request.answer_tool), {"criteria": [verdict]})
        return tool_call("Bash", {"command": CHEAT}) if len(request.messages) < 3 else text("Done.")

    suite = f"prompt: Work.\nacceptanceCriteria: [It works.]\nmetrics: {{toolUsage: false}}\n{TESTS}{PROTECTED}"
    files: dict[str, str | bytes] = {"shop.py": "def total(p):\n    return sum(p)\n", "test_shop.py": "import shop\n"}
    project = repository(tmp_path, {**files, "zelda/test-shop.yaml": suite})
    with ScriptedApi(script) as api:
        zelda(project, "run", api=api.url)
    assert judged
    assert "The session changed protected files, which build and tests saw as they were committed" in judged[0]
    assert "conftest.py, test_shop.py" in judged[0]
