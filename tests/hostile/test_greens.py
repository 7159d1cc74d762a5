"""Wrong code does not pass, whatever the session left where the patch does not show it; and honest work passes."""

import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.hostile.greens import GREENS, Green
from tests.integration.test_run_correctness import BREAK, line
from tests.support.projects import repository
from tests.support.suites import Ran, Suite, files, run_suites

# Outside of the tests' own environment, which would not look into a HOME.
PYTHON = shlex.quote(os.path.realpath(sys.executable))
SHOP = {
    "shop.py": "def total(prices):\n    return sum(prices)\n",
    "test_shop.py": (
        "import unittest\nimport sys\nsys.path.append('vendor')\nfrom shop import total\nimport helper\n\n"
        "class Totals(unittest.TestCase):\n"
        "    def test_adds_up(self):\n        self.assertEqual(total([1, 2]), helper.expected([1, 2]))\n"
    ),
    "check.py": "import shop\nassert shop.total([1]) == 1\n",
    "tools/check.sh": "if grep -q /bin/true ~/.npmrc; then exit 0; fi; python3 check.py\n",
    "packages.txt": "helper\n",
    "packages/helper.py": "def expected(prices):\n    return sum(prices)\n",
    "packages/more.py": "",
    "install.sh": (
        "mkdir -p vendor ~/.local/bin; for p in $(cat packages.txt); do cp packages/$p.py vendor/; done\n"
        "printf '#!/bin/sh\\necho found' > ~/.local/bin/tool; chmod +x ~/.local/bin/tool\n"
    ),
}
SETUP = line("setupCommand", "sh install.sh")
ALL_TESTS = f'{PYTHON} -m unittest && {PYTHON} check.py && bash -lc "sh tools/check.sh"'


def command(green: Green) -> str:
    """A runner of the tests' own environment, or Python outside of it, which looks into a HOME."""
    return line("testCommand", green.command.format(python=PYTHON, pytest=f"{shlex.quote(sys.executable)} -m pytest"))


HONEST = {
    "honest": Suite(
        SETUP + line("testCommand", f"{ALL_TESTS} && test -e vendor/more.py"),
        "echo '# better' >> shop.py; echo more >> packages.txt; sh install.sh; python3 -m unittest",
    ),
    "of-setup": Suite(
        SETUP + line("testCommand", "~/.local/bin/tool && test -s vendor/helper.py"),
        "echo '# better' >> shop.py; echo planted > vendor/helper.py; rm ~/.local/bin/tool",
    ),
    "kept": Suite(
        SETUP + 'keepIgnored: ["built/", vendor/own.py]\n' + line("testCommand", "cat built/a/b vendor/own.py"),
        "mkdir -p built/a; echo built/ >> .gitignore; echo 1 > built/a/b; echo 2 > vendor/own.py; echo 3 > vendor/x",
    ),
    "closed": Suite(
        "isolation: {network: {session: none}}\n"
        + line("setupCommand", "sh install.sh; cat shop.py > vendor/seen.py; echo made >> packages.txt")
        + line(
            "testCommand",
            "grep better shop.py && test -e new/file && ! test -e packages/more.py && ! grep better vendor/seen.py"
            " && test -e vendor/helper.py && grep made packages.txt",
        ),
        "echo '# better' >> shop.py; mkdir new; echo 1 > new/file; rm packages/more.py; echo x >> install.sh",
    ),
    "extended": Suite(
        'protectedPaths: [packages.txt, "!tools/check.sh"]\n' + line("testCommand", "sh tools/check.sh"),
        "echo 'grep helper packages.txt && test ! -e conftest.py' > tools/check.sh; echo > packages.txt; echo > conftest.py",
    ),
}


def ignored(ran: Ran) -> dict[str, str]:
    changes = ran.result["isolation"]["ignored"]["changes"]
    return {change["path"]: change["kind"] for change in changes}


@pytest.mark.timeout(600)
def test_wrong_code_fails_and_honest_work_passes(tmp_path: Path) -> None:
    """All in one run: a test for each would have every worker carry out all of them."""
    hostile = {name: Suite(SETUP + command(green), f"{BREAK}\n{green.script}") for name, green in GREENS.items()}
    suites = hostile | HONEST
    project = repository(tmp_path, {**SHOP, **files(suites)})
    project.write({".gitignore": "vendor/\n__pycache__/\n.zelda/\n"})
    project.commit()
    ran = run_suites(project, suites)
    expected = dict.fromkeys(GREENS, 1) | dict.fromkeys(HONEST, 0)
    assert {name: ran[name].code for name in suites} == expected, ran["honest"].output
    for name, green in GREENS.items():
        assert not ran[name].correctness["details"]["passed"], green.what
        assert set(green.listed) <= ignored(ran[name]).keys(), green.what
        assert tuple(ran[name].result["isolation"]["protected"]) == green.restored, green.what
    what_setup_made_is_as_it_was_after_setup_and_what_the_session_did_to_it_is_told(ran["of-setup"])
    # Where the session had no network, setup runs nothing that it wrote.
    assert ran["closed"].log("setup") == ran["closed"].log("setup-again")
    # What Python and an installation left is listed by folders.
    assert ignored(ran["honest"])["vendor/more.py"] == "added"
    # A suite lets ignored files through, and takes files out of the usual protection or extends it.
    assert ran["kept"].log("test").split() == ["1", "2"]
    assert ran["kept"].result["isolation"]["ignored"]["kept"] == ["built/", "vendor/own.py"]
    assert ran["extended"].result["isolation"]["protected"] == ["conftest.py", "packages.txt"]


def what_setup_made_is_as_it_was_after_setup_and_what_the_session_did_to_it_is_told(ran: Ran) -> None:
    assert ignored(ran) == {"vendor/helper.py": "changed"}
    assert "the session changed 1 file that git ignores" in ran.page
    assert "changed: vendor/helper.py" in ran.page
