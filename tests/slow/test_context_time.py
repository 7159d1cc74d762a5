"""`zelda context` on a large project takes no longer than people wait for it."""

import json
import time
from pathlib import Path

from tests.support.command import zelda
from tests.support.projects import repository
from tests.support.steered import head

MAX_SECONDS = 10
DESCRIPTION = "It does useful things in the project, with care. " * 8


def test_200_skills_and_50_rules_are_listed_within_ten_seconds(tmp_path: Path) -> None:
    skills = {
        f".claude/skills/s{n}/SKILL.md": head("Do this. " * 200, description=f"{n}. {DESCRIPTION}") for n in range(200)
    }
    rules = {
        f".claude/rules/r{n}.md": head(f"Rule {n}. " * 50, **({"paths": "src/**"} if n % 2 else {"owner": "us"}))
        for n in range(50)
    }
    project = repository(tmp_path, {"CLAUDE.md": "Be careful.\n", "src/main.py": "", **skills, **rules})
    began = time.monotonic()
    done = zelda(project, "context", "--json")
    seconds = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    items = json.loads(done.stdout)["head"]["items"]
    kinds = [item["kind"] for item in items]
    assert (kinds.count("skill"), kinds.count("rule")) == (200, 50)
    assert sum(item["kind"] == "rule" and item["always"] > 0 for item in items) == 25
    # The listing is full: not all of them keep their description.
    assert any(item["cut"] for item in items)
    assert seconds < MAX_SECONDS, seconds
