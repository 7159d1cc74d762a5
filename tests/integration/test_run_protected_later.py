"""Protected files against code of the session that runs between their restoration and the tests."""

from pathlib import Path

from tests.integration.test_run_correctness import BREAK, FILES, PYTHON, TESTS, line
from tests.integration.test_run_protected import PROTECTED
from tests.support.projects import repository
from tests.support.suites import Suite, files, run_suites

EASY = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        pass\n"
WAYS = {
    "rewritten": "import shutil; shutil.copy('easy.txt', 'test_shop.py')",
    "removed": "import os; os.remove('test_shop.py')",
    "linked": "import os; os.remove('test_shop.py'); os.symlink('easy.txt', 'test_shop.py')",
    "pipe": "import os; os.remove('test_shop.py'); os.mkfifo('test_shop.py')",
    "folder": "import os; os.remove('test_shop.py'); os.makedirs('test_shop.py/deep')",
}


def test_a_build_step_of_the_session_cannot_rewrite_protected_tests(tmp_path: Path) -> None:
    settings = TESTS + PROTECTED.replace("]", ', "!build.py"]') + line("buildCommand", f"{PYTHON} build.py")
    suites = {way: Suite(settings, f"{BREAK}; cp {way}.txt build.py") for way in WAYS}
    scripts = {f"{way}.txt": script for way, script in WAYS.items()}
    project = repository(tmp_path, {**FILES, "build.py": "pass\n", "easy.txt": EASY, **scripts, **files(suites)})
    for way, ran in run_suites(project, suites).items():
        found = ran.correctness["details"]
        assert found["tests"]["runners"][0]["failed"] == 2, (way, ran.page)
        assert (ran.code, found["passed"]) == (1, False)
        assert "restored before this one: test_shop.py" in ran.log("test")
