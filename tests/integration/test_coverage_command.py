"""`zelda coverage`: units and suites over stored trials, for people and for programs."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.builders import START, result, safe, suite
from tests.support.command import zelda
from tests.support.projects import Project, repository
from tests.support.schemas import checker
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import Unit, UnitUse
from zelda_ci.domain.run import RunResult
from zelda_ci.storage import codec


def use(kind: ItemKind, name: str, path: str = "", **how: Any) -> UnitUse:
    return UnitUse(unit=Unit(kind=kind, name=safe(name), path=safe(path or name)), **how)


def trial(name: str, number: int, *uses: UnitUse, known: bool = True) -> RunResult:
    run_id = f"{name}-2026-02-13T14-30-{number:02}"
    always = (
        use(ItemKind.MEMORY, "CLAUDE.md", loaded=True),
        use(ItemKind.SKILL, "idle", ".claude/skills/idle/SKILL.md", loaded=True),
    )
    return result(
        run_id,
        suite=name,
        trial=number,
        config=suite(name),
        started_at=START + timedelta(seconds=number),
        steering=(*always, *uses) if known else None,
    )


def stored(tmp_path: Path) -> Project:
    project = repository(tmp_path, {"zelda/test-a.yaml": "prompt: Do.\n"})
    deploy = ".claude/skills/deploy/SKILL.md"
    trials = [
        trial("a", 1, use(ItemKind.SKILL, "deploy", deploy, loaded=True, used=True)),
        trial("a", 2, use(ItemKind.SKILL, "deploy", deploy, loaded=True, missed=True)),
        trial("b", 3, use(ItemKind.SKILL, "deploy", deploy, loaded=True)),
        trial("old", 4, known=False),
    ]
    store(project, trials)
    return project


def store(project: Project, trials: list[RunResult]) -> None:
    for run in trials:
        folder = project.results / "runs" / run.run_id
        folder.mkdir(parents=True)
        (folder / "result.json").write_bytes(codec.encode(run, indent=2))


def test_people_get_a_table_and_programs_json_by_its_schema(tmp_path: Path) -> None:
    project = stored(tmp_path)
    done = zelda(project, "coverage", COLUMNS="100")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["Name", "Kind", "a", "(2)", "b", "(1)"]
    # What nobody touches comes first.
    assert [line[0] for line in lines[1:]] == ["idle", "CLAUDE.md", "deploy"]
    assert lines[3] == ["deploy", "skill", "used", "1,", "missed", "1", "loaded"]
    for words in ("No suite touches 1 unit", "Suites that use nothing of it: b.", "No stored session of old says"):
        assert words in done.stderr
    done = zelda(project, "coverage", "--json", "--suite", "a")
    assert done.returncode == 0, done.stderr
    tree = json.loads(done.stdout)
    checker("zelda.coverage.schema.json").validate(tree)
    assert [it["suite"] for it in tree["suites"]] == ["a"]
    (deploy,) = [it for it in tree["units"] if it["unit"]["name"] == "deploy"]
    assert deploy["suites"] == [{"suite": "a", "loaded": 2, "used": 1, "missed": 1, "broken": 0}]
    assert [it["touched"] for it in tree["units"]] == [False, True, True]


def test_an_artifact_is_read_from_its_folder(tmp_path: Path) -> None:
    project = stored(tmp_path)
    runs = [trial("ci", 1)]
    batch = {"schemaVersion": 1, "batchId": "x", "startedAt": START.isoformat(), "finishedAt": START.isoformat()}
    folder = project.path / "artifact"
    folder.mkdir()
    batch["runs"] = [json.loads(codec.encode(run, indent=2)) for run in runs]
    (folder / "zelda-results.json").write_text(json.dumps(batch))
    done = zelda(project, "coverage", "artifact")
    assert "ci (1)" in done.stdout, done.stderr
    done = zelda(project, "coverage", "zelda")
    assert done.returncode == 2
    assert "zelda holds no zelda-results.json" in done.stderr
