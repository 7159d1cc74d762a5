"""Protected files against code of the session that runs between their restoration and the tests."""

from pathlib import Path

import pytest

from tests.integration.test_run_correctness import BREAK, PYTHON, TESTS, correctness, line, log, project_with, run
from tests.integration.test_run_protected import PROTECTED

EASY = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        pass\n"
WAYS = {
    "rewritten": "import shutil; shutil.copy('easy.txt', 'test_shop.py')",
    "removed": "import os; os.remove('test_shop.py')",
    "linked": "import os; os.remove('test_shop.py'); os.symlink('easy.txt', 'test_shop.py')",
    "a pipe": "import os; os.remove('test_shop.py'); os.mkfifo('test_shop.py')",
    "a folder": "import os; os.remove('test_shop.py'); os.makedirs('test_shop.py/deep')",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_build_step_of_the_session_cannot_rewrite_protected_tests(tmp_path: Path, way: str) -> None:
    build = line("buildCommand", f"{PYTHON} build.py")
    files = {"build.py": "pass\n", "easy.txt": EASY, "way.txt": WAYS[way]}
    project = project_with(tmp_path, TESTS + PROTECTED + build, **files)
    code, output = run(project, f"{BREAK}; cp way.txt build.py")
    found = correctness(project)["details"]
    assert found["tests"]["runners"][0]["failed"] == 2, output
    assert (code, found["passed"]) == (1, False)
    assert "restored before this one: test_shop.py" in log(project, "test")
