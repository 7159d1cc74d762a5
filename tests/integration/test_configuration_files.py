"""Files of the configuration in which other programs have a say: git, and the script of the schemas."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.config.folder import make, problems

REPOSITORY = Path(__file__).parents[2]
UNTRACKED = "is not tracked by git, and what a session gets must be: commit it, or write the text under prompt"


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)


@pytest.mark.parametrize("place", [".", "apps/shop"])
def test_a_prompt_is_a_file_that_git_tracks(place, tmp_path):
    """What lies about beside the commit, a .env above all, does not reach the model; nor does what git keeps itself."""
    suites = {"a": "../.env", "b": "../link/.env", "c": "../.git/config", "d": "new.md", "e": "../hard.md", "f": "x.md"}
    root = make(tmp_path / place, **{f"test_{name}": f"promptFile: {file}\n" for name, file in suites.items()})
    (root / ".env").write_text("PASSPHRASE=fake\n")
    (root / "link").symlink_to(root)
    (root / "hard.md").hardlink_to(root / ".env")
    (root / "zelda/new.md").write_text("x")
    (root / "zelda/x.md").write_text("x")
    git(tmp_path, "init", "-q")
    if place != ".":
        git(root, "init", "-q")
    git(root, "add", "zelda/x.md", "link", *(f"zelda/test-{name}.yaml" for name in suites))
    names = {"a": ".env", "b": "link/.env", "c": ".git/config", "d": "zelda/new.md", "e": "hard.md"}
    told = [f"zelda/test-{suite}.yaml:1:13: promptFile {name} {UNTRACKED}" for suite, name in names.items()]
    assert problems(root) == told
    git(root, "add", "zelda/new.md")
    assert [line for line in problems(root) if "test-d" in line] == []
    # Where git cannot tell, nothing is tracked.
    (root / ".git/index").write_bytes(b"DIRC damaged")
    assert len(problems(root)) == len(suites)


def schemas(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    script = [sys.executable, str(REPOSITORY / "scripts/schemas"), *map(str, arguments)]
    return subprocess.run(script, capture_output=True, text=True, check=False)


def test_schemas_and_tables_of_keys_are_current_and_the_script_notices_what_is_not(tmp_path):
    """What it writes anew is seen where a setting is added."""
    done = schemas("--check")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    for folder in ("schemas", "docs", "runner", ".github/workflows"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    action = (REPOSITORY / "action.yml").read_text()
    (tmp_path / "action.yml").write_text(action.replace("  max-cost-usd:\n", "  max-cost:\n"))
    document = tmp_path / "docs/configuration.md"
    document.write_text(document.read_text().replace("`execution.maxTurns`", "`execution.maxTurn`"))
    (tmp_path / "schemas/zelda.suite.schema.json").unlink()
    stale = schemas("--check", tmp_path)
    found = ("schemas/zelda.suite.schema.json", "docs/configuration.md", "action.yml")
    assert (stale.returncode, stale.stdout.splitlines()) == (1, [f"stale: {file}" for file in found])
