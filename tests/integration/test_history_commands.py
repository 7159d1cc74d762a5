"""`zelda list`, `show` and `compare` from the developer's chair: real processes, stored runs."""

import json
import os
import pty
from pathlib import Path

import pytest

from tests.builders import safe, session
from tests.support.command import environment, zelda
from tests.support.history import PATCH, store, store_sides
from tests.support.patience import PATIENCE
from tests.support.projects import Project, folder
from tests.support.schemas import checker
from tests.support.warm import Process
from tests.unit.compare.runs import efficiency, fulfillment
from zelda_ci.domain.workspace import ChangeSummary
from zelda_ci.storage.result_store import ResultStore

SUITE = "prompt: Do it.\n"
RUN = "alpha-2026-02-13T14-30-00"


def project_with(tmp_path: Path, **suites: str) -> Project:
    files: dict[str, str | bytes] = {f"zelda/test-{name}.yaml": text for name, text in suites.items()}
    return folder(tmp_path, files or None)


def seen_on_a_terminal(project: Project, *arguments: str) -> str:
    """Everything that a terminal gets to show."""
    main, end = pty.openpty()
    command = Process(arguments, project.path, environment(project, TERM="xterm"), (end, end, end))
    os.close(end)
    shown = b""
    try:
        while chunk := os.read(main, 65536):
            shown += chunk
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(main)
    assert command.wait(timeout=PATIENCE) == 0
    return shown.decode()


def test_without_runs_there_is_a_helpful_sentence(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    done = zelda(project, "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "zelda run" in done.stderr
    listed = json.loads(zelda(project, "list", "--json").stdout)
    assert listed == {
        "schemaVersion": 1,
        "runs": [],
        "skipped": [],
        "unfinished": 0,
    }


def test_runs_are_listed_and_chosen_by_suite_time_and_number(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    for minute, suite in enumerate(["alpha", "beta", "alpha"]):
        store(project.results, suite, minute, [efficiency(), fulfillment("PF")])
    done = zelda(project, "list", COLUMNS="60")
    heading, *lines = done.stdout.splitlines()
    columns = "Verdict Run Suite Trial Batch Commit Session Fulfil % Tools % Correct % Cost Turns"
    assert " ".join(heading.split()) == columns
    assert [line.split()[1] for line in lines] == [
        "alpha-2026-02-13T14-32-00",
        "beta-2026-02-13T14-31-00",
        "alpha-2026-02-13T14-30-00",
    ]
    chosen = zelda(project, "list", "--suite", "alpha", "--limit", "1", "--json")
    checker("zelda.list.schema.json").validate(json.loads(chosen.stdout))
    (run,) = json.loads(chosen.stdout)["runs"]
    assert (run["runId"], run["scores"]["requirementFulfillment"]) == ("alpha-2026-02-13T14-32-00", 50.0)
    assert len(json.loads(zelda(project, "list", "--since", "2026-02-13T14:31", "--json").stdout)["runs"]) == 2
    recent = zelda(project, "list", "--since", "7d")
    assert (recent.stdout, "`zelda list` shows all 3." in recent.stderr) == ("", True)
    refused = zelda(project, "list", "--since", "yesterday")
    assert (refused.returncode, "7d" in refused.stderr) == (2, True)


def test_a_patch_goes_to_programs_as_it_is_and_to_people_harmless(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    made = store(project.results).replace(changes=ChangeSummary(files=(safe("x"),)))
    ResultStore(project.results).run(RUN).rewrite(made)
    assert zelda(project, "show", RUN, "--patch").stdout == PATCH
    shown = seen_on_a_terminal(project, "show", RUN, "--patch")
    assert "new\\x1b[31m" in shown
    assert "\x1b[32m+new" in shown
    (project.results / "runs" / RUN / "changes.patch").unlink()
    assert "left no patch: its file is gone" in zelda(project, "show", RUN, "--patch").stderr


ACTING = "".join(map(chr, [0x7F, *range(0x80, 0xA0), 0x202E, 0x2028, 0xE0001]))
"""U+009B is what ESC [ is, in one character; the others hide or turn round what follows."""


@pytest.mark.parametrize(
    "arguments",
    [
        *(["show", RUN, option] for option in ("--json", "--transcript")),
        ["list"],
        ["compare", RUN, RUN],
    ],
    ids=" ".join,
)
def test_no_character_of_a_session_acts_where_it_is_shown(tmp_path: Path, arguments: list[str]) -> None:
    project = project_with(tmp_path)
    evil = f"{ACTING}31mowned"
    said = session(f"Bash {evil} -> {evil}", json.dumps(evil))
    store(project.results, evaluations=[efficiency(tools={evil: 3})], transcript=said)
    done = zelda(project, *arguments)
    assert done.returncode in {0, 1}, done.stderr
    shown = done.stdout + done.stderr + seen_on_a_terminal(project, *arguments)
    assert [hex(ord(char)) for char in ACTING if char in shown] == []
    if "--json" in arguments and "show" in arguments:
        assert evil in json.dumps(json.loads(done.stdout), ensure_ascii=False)


def test_what_cannot_be_done_is_said_in_a_sentence(tmp_path: Path) -> None:
    project = project_with(tmp_path, alpha=SUITE)
    store(project.results)
    for arguments, sentence in (
        (["show", "latest", "--json", "--patch"], "exclude each other"),
        (["compare", "alpha", "gone.json"], "gone.json cannot be read"),
    ):
        done = zelda(project, *arguments)
        assert (done.returncode, done.stdout, sentence in done.stderr) == (2, "", True)
        assert "Traceback" not in done.stderr


def test_two_batches_are_compared_and_the_gate_gives_the_exit_code(tmp_path: Path) -> None:
    project = project_with(tmp_path, alpha=SUITE)
    old, new = store_sides(project.results)
    done = zelda(project, "compare", old, new)
    assert done.returncode == 1
    for part in (
        "alpha  worse",
        "criterion 2",
        "5 of 5",
        "0 of 5",
        "-100 points",
        "mcp__db__query",
        "All suites",
        "gamma",
        "N/A",
    ):
        assert part in done.stdout, part
    assert zelda(project, "compare", old, old).returncode == 0


def test_the_gate_is_that_of_the_project_as_it_is_now(tmp_path: Path) -> None:
    project = project_with(tmp_path, alpha=SUITE + "gate: {failOn: []}\n", beta=SUITE, gamma=SUITE)
    old, new = store_sides(project.results)
    done = zelda(project, "compare", old, new)
    reasons = [line for line in done.stdout.splitlines() if line.strip().startswith(("Regression", "Evaluation"))]
    assert not [line for line in reasons if "alpha:" in line]
    project.write({"zelda/test-alpha.yaml": SUITE + "gate: {minScore: {requirementFulfillment: 90}}\n"})
    strict = zelda(project, "compare", old, new, "--json")
    found = json.loads(strict.stdout)
    checker("zelda.comparison.schema.json").validate(found)
    assert (strict.returncode, found["verdict"]) == (1, "regressed")
    assert "gate: alpha: requirement fulfillment is 66.7, and at least 90.0 is required" in strict.stderr


def test_prune_removes_whole_old_batches_only_where_it_is_told_to(tmp_path: Path) -> None:
    project = project_with(tmp_path, alpha=SUITE)
    for minute, batch in enumerate(("old", "old", "middle", "new")):
        store(project.results, minute=minute, batch=batch)

    def kept() -> list[str]:
        return [run.batch_id for run in ResultStore(project.results).overview().runs]

    assert (
        zelda(project, "prune").stdout == "3 runs of 2 batches would be removed, of 4 stored. Remove them: add --yes.\n"
    )
    assert (
        zelda(project, "prune", "--before", "2026-02-13", "--yes").stdout == "Removed 0 runs of 0 batches; 4 stored.\n"
    )
    assert kept() == ["new", "middle", "old", "old"]
    unusable = zelda(project, "prune", "--keep", "2", "--yes", ZELDA_WORKSPACES=str(project.path))
    assert (unusable.returncode, len(kept())) == (2, 4), unusable.stderr
    done = zelda(project, "prune", "--keep", "2", "--yes")
    assert (done.returncode, done.stdout) == (0, "Removed 2 runs of 1 batch; 2 stored.\n"), done.stderr
    assert kept() == ["new", "middle"]
    assert zelda(project, "prune", "--keep", "0", "--yes").returncode == 0
    assert [*(project.results / "runs").glob("alpha-*")] == []
