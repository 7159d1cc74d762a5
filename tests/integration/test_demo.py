"""`zelda demo`: what a newcomer sees first."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.hostile import developer
from tests.hostile.world import SEARCHED
from tests.support.command import zelda
from tests.support.patience import PATIENCE
from tests.support.projects import folder


def demo(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """A newcomer's machine: no key, and no way out (nothing listens where the network is said to be).

    Where it can be had, an ordinary user's in a container, with weak isolation that nobody has accepted.
    """
    closed = dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "ANTHROPIC_BASE_URL"), "http://127.0.0.1:9")
    temporary = tmp_path / "temporary folder"
    temporary.mkdir()
    given = {**closed, "TMPDIR": str(temporary), "COLUMNS": "80"}
    who = developer.unprivileged()
    if not who.prefix:
        return zelda(folder(tmp_path), "demo", **given)
    for place in (tmp_path, temporary):
        os.chown(place, who.uid, who.gid)
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.like_docker", *who.zelda("demo")],
        cwd=tmp_path,
        env={**who.variables(), "PATH": os.pathsep.join(SEARCHED), "HOME": str(tmp_path), **given},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    printed = " ".join((done.stdout + done.stderr).split())
    assert "At isolation level landlock session and commands run as your user" in printed
    assert "it goes on all the same, because the project is Zelda's own" in printed
    subprocess.run(["chown", "-R", "0:0", tmp_path], check=True)
    return done


def test_the_demo_proves_what_a_removed_rule_breaks_and_what_it_keeps_runs_again_without_a_key(tmp_path: Path) -> None:
    done = demo(tmp_path)
    # Lines of the log, warnings and paths are whole, however long they are.
    log = re.compile(r" [✓✗·!] | warning |   (Not met|discount-code)")
    told = [line for line in done.stdout.splitlines() if len(line) > 80 and "/" not in line and not log.match(line)]
    assert told == []
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not exactly what was recorded" not in done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert "Skill(changelog) 1" in done.stdout
    assert "6 of 6 tests passed." in done.stdout
    assert re.search(r"Changed +\.claude/rules/money\.md \(removed\)", done.stdout)
    assert "Zelda: worse in 1 of 1 suite" in " ".join(done.stdout.split())
    assert "replayed, and nothing was spent" in " ".join(done.stdout.split())
    assert done.stdout.endswith("\nNow yours: `zelda init` in your project.\n")
    (kept,) = re.findall(r"results are in (.+)", done.stdout)
    shop = Path(kept)
    shown = (shop / ".zelda" / "report.html").read_text()
    for words in (
        ".claude/rules/money.md (removed)",
        "From here the two sessions differ",
        "no float is used on the way",
    ):
        assert words in shown
    (again,) = re.findall(r"without a key: zelda (.+)", done.stdout)
    elsewhere = folder(tmp_path / "elsewhere")
    assert "worse in 1 of 1 suite" in zelda(elsewhere, "compare", "--project", kept).stdout
    files = shop.glob(".zelda/runs/discount-code*/result.json")
    base = next(file for file in files if json.loads(file.read_bytes())["side"] == "base")
    subprocess.run(["git", "apply", str(base.with_name("changes.patch"))], cwd=shop, check=True)
    assert "apply_code" in (shop / "shop" / "cart.py").read_text()
    subprocess.run(["git", "checkout", "--quiet", "."], cwd=shop, check=True)
    subprocess.run(["git", "clean", "-fdq"], cwd=shop, check=True)
    repeated = zelda(replace(elsewhere, path=shop), *again.split(), "discount-code")
    assert repeated.returncode == 0, repeated.stdout + repeated.stderr
    assert "1 passed" in repeated.stdout
