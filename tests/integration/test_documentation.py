"""The pages: what is generated is current, and every command and sample in them is tried."""

import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def reference(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    script = [sys.executable, str(REPOSITORY / "scripts/reference.py"), *map(str, arguments)]
    return subprocess.run(script, capture_output=True, text=True, check=False)


def test_the_pages_of_commands_and_errors_are_current() -> None:
    done = reference("--check")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0), "make reference"


def test_a_page_that_is_not_current_is_named_and_written_anew(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "docs", tmp_path / "docs")
    page = tmp_path / "docs/cli.md"
    page.write_text(page.read_text("utf-8").replace("--last-failed", "--last-broken"), "utf-8")
    stale = reference("--check", tmp_path)
    assert (stale.stdout, stale.returncode) == ("stale: docs/cli.md\n", 1)
    assert reference(tmp_path).returncode == 0
    assert page.read_bytes() == (REPOSITORY / "docs/cli.md").read_bytes()
