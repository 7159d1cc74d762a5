"""`zelda history` from the developer's chair: real processes, stored runs, unpacked artifacts."""

import json
from pathlib import Path
from typing import Any

from tests.support.command import zelda
from tests.support.history import store
from tests.support.projects import Project, folder
from tests.unit.compare.nights import history_of, night
from tests.unit.compare.runs import correctness, fulfillment
from zelda_ci.domain.run import Fingerprint
from zelda_ci.storage import codec

DAY = 24 * 60


def kept(
    project: Project, number: int, letters: str, *, suite: str = "alpha", side: str = "head", **parts: str
) -> None:
    state = Fingerprint(outcome="state", platform="x", tree="t", parts={"cli": "2.1.0", **parts})
    found = [fulfillment(letters), correctness()]
    made = store(
        project.path / ".zelda",
        suite,
        DAY * number + (side == "base"),
        found,
        batch=f"2026-02-{number + 10}T14-30-00-b",
    )
    file = project.path / ".zelda" / "runs" / made.run_id / "result.json"
    tree = json.loads(file.read_bytes())
    tree["fingerprint"] = json.loads(state.model_dump_json(by_alias=True))
    file.write_text(json.dumps({**tree, "side": side}))


def project_with_runs(tmp_path: Path) -> Project:
    project = folder(tmp_path, {"zelda/test-alpha.yaml": "prompt: Do it.\n"})
    for number in range(6):
        kept(project, number, "PP")
    kept(project, 6, "PF", cli="2.1.9")
    kept(project, 6, "P", suite="beta")
    return project


def test_a_suite_is_shown_over_time_with_what_changed(tmp_path: Path) -> None:
    project = project_with_runs(tmp_path)
    done = zelda(project, "history", "alpha")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 8
    assert lines[0].split() == ["When", "Trials", "Passed", "Checks", "Cost", "Commit", "Changed"]
    assert "2026-02-19 14:31" in lines[1]
    assert "0/1" in lines[1]
    assert "2/3" in lines[1]
    assert lines[1].endswith("Claude Code 2.1.9")
    assert "alpha: ██████¦" in done.stderr
    assert "that takes 12 rows" in done.stderr
    assert len(zelda(project, "history", "alpha", "--limit", "2").stdout.splitlines()) == 3


def test_without_anything_to_show_there_is_a_helpful_sentence(tmp_path: Path) -> None:
    empty, full = folder(tmp_path / "empty"), project_with_runs(tmp_path / "full")
    store(full.path / ".zelda", "old", DAY * 9, [fulfillment("P")])
    for project, words, said in (
        (empty, ["alpha"], "There is no stored run yet."),
        (empty, ["alpha", "--from", "."], "There are no results of nights or runs below ."),
        (full, ["alhpa"], "There are no results of the suite 'alhpa'. Did you mean alpha?"),
        (full, ["x"], "There are results of alpha, beta, old."),
        (full, ["old"], "without a fingerprint"),
        (full, ["x\x1b[31m"], "There are results of alpha"),
    ):
        done = zelda(project, "history", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert "\x1b" not in done.stderr


def test_unpacked_artifacts_are_read_each_night_once_and_what_is_damaged_is_named(tmp_path: Path) -> None:
    nights: list[Any] = [night(number, {"alpha": {"c": (3, 3)}}) for number in range(12)]
    nights += [night(number, {"alpha": {"c": (0, 3)}}) for number in range(12, 17)]
    for number, part in enumerate((nights[:9], nights[4:])):
        place = tmp_path / "artifacts" / str(number)
        place.mkdir(parents=True)
        (place / "history.json").write_bytes(codec.encode_within(history_of(part), 10**7))
    (tmp_path / "artifacts" / "history.json").write_text('{"schemaVersion": 1, "nights": "\\u001b[31m"}')
    done = zelda(folder(tmp_path / "project"), "history", "alpha", "--from", str(tmp_path / "artifacts"))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 18
    assert "Fell: alpha, c 36/36 → 0/15 since 2026-03-13" in done.stderr
    assert "Left out" in done.stderr
    assert "\x1b" not in done.stderr
