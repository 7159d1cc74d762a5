"""`zelda demo`: what a newcomer sees first."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.support.command import zelda
from tests.support.projects import Project, folder


def demo(project: Project, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A newcomer's machine: no key, and no way out (nothing listens where the network is said to be)."""
    closed = dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "ANTHROPIC_BASE_URL"), "http://127.0.0.1:9")
    temporary = tmp_path / "temporary folder"
    temporary.mkdir()
    return zelda(project, "demo", *arguments, **closed, TMPDIR=str(temporary), COLUMNS="120")


def test_the_demo_runs_two_suites_without_key_and_network_and_leaves_nothing(tmp_path: Path) -> None:
    project = folder(tmp_path)
    before = project.fingerprint()
    done = demo(project, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert "Skill(changelog) 1" in done.stdout
    assert "6 of 6 tests passed." in done.stdout
    assert "PASS · " in done.stdout
    assert "unittest (closing summary)" in done.stdout
    assert project.fingerprint() == before
    (page,) = re.findall(r"where they part: (.+)", done.stdout)
    # The report stays, and nothing beside it.
    assert [file for file in (tmp_path / "temporary folder").rglob("*") if file.is_file()] == [Path(page)]
    assert not project.leftovers()
    shown = Path(page).read_text()
    for place in (done.stdout, shown):
        assert ".claude/rules/money.md (removed)" in place
    assert "Here they write other text" in shown
    assert "no float is used on the way" in shown


def test_what_the_demo_keeps_can_be_looked_at_and_its_tests_pass(tmp_path: Path) -> None:
    done = demo(folder(tmp_path), tmp_path, "--keep")
    assert done.returncode == 0, done.stdout + done.stderr
    (kept,) = re.findall(r"are kept in (.+)", done.stdout)
    shop = Path(kept)
    found = [json.loads(file.read_bytes()) for file in sorted(shop.glob(".zelda/runs/*/result.json"))]
    assert [(run["suite"], run["status"], run["replayed"]) for run in found] == [
        ("discount-code", "completed", True),
        ("discount-code", "completed", True),
        ("receipt-tax", "completed", True),
    ]
    assert [run["evaluations"]["functionalCorrectness"]["score"] for run in found] == [100, 100, 100]
    assert [run["evaluations"]["requirementFulfillment"]["score"] for run in found] == [100, 50, 100]
    assert len(list(shop.glob(".zelda/runs/*/test.log"))) == 3
    assert (shop / ".zelda" / "report.html").is_file()
    elsewhere = folder(tmp_path / "elsewhere")
    for more in ((), ("--markdown",)):
        compared = zelda(elsewhere, "compare", "--project", kept, *more).stdout
        assert ".claude/rules/money.md (removed)" in compared.replace("\\", ""), compared
    for run in (found[0], found[2]):
        patch = shop / ".zelda" / "runs" / run["runId"] / "changes.patch"
        subprocess.run(["git", "apply", str(patch)], cwd=shop, check=True)
        subprocess.run([sys.executable, "-m", "unittest"], cwd=shop, check=True, capture_output=True)
    assert "apply_code" in (shop / "shop" / "cart.py").read_text()
