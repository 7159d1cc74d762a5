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


def test_the_demo_runs_two_suites_without_key_and_network_and_what_it_keeps_can_be_looked_at(tmp_path: Path) -> None:
    """What it leaves without --keep: `test_isolation_word`."""
    project = folder(tmp_path)
    before = project.fingerprint()
    done = demo(project, tmp_path, "--keep")
    assert done.returncode == 0, done.stdout + done.stderr
    for told in (
        "2 passed",
        "Skill(changelog) 1",
        "6 of 6 tests passed.",
        "PASS · ",
        "unittest (closing summary)",
    ):
        assert told in done.stdout
    assert project.fingerprint() == before
    assert not project.leftovers()
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
    shown = (shop / ".zelda" / "report.html").read_text()
    for place in (done.stdout, shown):
        assert ".claude/rules/money.md (removed)" in place
    assert "Here they write other text" in shown
    assert "no float is used on the way" in shown
    elsewhere = folder(tmp_path / "elsewhere")
    for more in ((), ("--markdown",)):
        compared = zelda(elsewhere, "compare", "--project", kept, *more).stdout
        assert ".claude/rules/money.md (removed)" in compared.replace("\\", ""), compared
    for run in (found[0], found[2]):
        patch = shop / ".zelda" / "runs" / run["runId"] / "changes.patch"
        subprocess.run(["git", "apply", str(patch)], cwd=shop, check=True)
        subprocess.run([sys.executable, "-m", "unittest"], cwd=shop, check=True, capture_output=True)
    assert "apply_code" in (shop / "shop" / "cart.py").read_text()
