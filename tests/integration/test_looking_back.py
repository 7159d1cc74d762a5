"""Looking back through the real command: lists by verdict, batches by name, comparisons of all that was measured."""

import json
from pathlib import Path

import pytest

from tests.support.command import zelda
from tests.support.history import store
from tests.support.projects import Project, folder
from tests.unit.compare.runs import efficiency, fulfillment
from zelda_ci.domain.session import SessionStatus


def project_with(tmp_path: Path) -> Project:
    return folder(tmp_path)


def three_batches(project: Project) -> None:
    """`alpha` alone, then `alpha` twice and `beta`, then `beta` alone."""
    store(project.results, "alpha", 0, [efficiency(cost=0.1), fulfillment("PP")], batch="2026-02-13T14-30-00-aaaa")
    for trial in (1, 2):
        evaluations = [efficiency(cost=0.2), fulfillment("PF")]
        store(project.results, "alpha", 10, evaluations, batch="2026-02-13T14-40-00-bbbb", trial=trial)
    store(project.results, "beta", 10, [efficiency()], batch="2026-02-13T14-40-00-bbbb")
    store(project.results, "beta", 20, [efficiency()], batch="2026-02-13T14-50-00-cccc", status=SessionStatus.FAILED)


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_a_list_begins_with_the_verdict_and_names_trial_batch_and_commit(tmp_path: Path, columns: str) -> None:
    project = project_with(tmp_path)
    three_batches(project)
    heading, *lines = zelda(project, "list", COLUMNS=columns).stdout.splitlines()
    assert heading.split()[:6] == ["Verdict", "Run", "Suite", "Trial", "Batch", "Commit"]
    assert [line.split()[0] for line in lines] == ["ERROR", "MEASURED", "FAIL", "FAIL", "PASS"]
    assert lines[2].split()[2:6] == ["alpha", "2", "2026-02-13T14-40-00-bbbb", "c0ffee"]


@pytest.mark.parametrize(
    ("reference", "run"),
    [
        ("latest", "beta-2026-02-13T14-50-00"),
        ("latest~1", "beta-2026-02-13T14-40-00"),
        ("latest:alpha", "alpha-2026-02-13T14-40-00-2"),
        ("latest:alpha~2", "alpha-2026-02-13T14-30-00"),
    ],
)
def test_runs_are_counted_back_from_the_latest(tmp_path: Path, reference: str, run: str) -> None:
    project = project_with(tmp_path)
    three_batches(project)
    shown = zelda(project, "show", reference, "--json")
    assert json.loads(shown.stdout)["runId"] == run, shown.stderr


@pytest.mark.parametrize("reference", ["2026-02-13T14-40-00-bbbb", "2026-02-13T14-40"])
def test_a_batch_is_shown_as_a_whole(tmp_path: Path, reference: str) -> None:
    project = project_with(tmp_path)
    three_batches(project)
    shown = zelda(project, "show", reference)
    assert shown.returncode == 0, shown.stderr
    for part in ("alpha", "trial 1", "trial 2", "beta", "2026-02-13T14-40-00-bbbb", "Summary"):
        assert part in shown.stdout, part
    assert len(json.loads(zelda(project, "show", reference, "--json").stdout)["runs"]) == 3
    refused = zelda(project, "show", reference, "--patch")
    assert refused.returncode == 2
    assert "alpha-2026-02-13T14-40-00-2" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "sides"),
    [
        ([], [["beta", "alpha"], ["beta"]]),
        (["latest:alpha~1", "latest:alpha"], [["alpha"], ["alpha"]]),
        (["latest~2", "latest~1"], [["alpha"], ["alpha", "beta"]]),
        (["2026-02-13T14-30"], [["alpha"], ["beta"]]),
    ],
)
def test_the_newest_batch_is_compared_with_the_one_before(
    tmp_path: Path, arguments: list[str], sides: list[list[str]]
) -> None:
    project = project_with(tmp_path)
    three_batches(project)
    compared = json.loads(zelda(project, "compare", *arguments, "--json").stdout)
    for side, suites in zip(("baseline", "candidate"), sides, strict=True):
        assert sorted(suite["suite"] for suite in compared["suites"] if side in suite) == sorted(suites)


def test_all_trials_of_a_batch_stand_on_a_side(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    three_batches(project)
    compared = json.loads(zelda(project, "compare", "latest:alpha~1", "latest:alpha", "--json").stdout)
    (alpha,) = compared["suites"]
    assert (alpha["baseline"]["valid"], alpha["candidate"]["valid"]) == (1, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare"], "There is one stored batch, so there is no latest~1."),
        (["compare", "latest:alpha~1"], "There is one stored batch of the suite alpha, so there is no latest:alpha~1."),
        (["show", "latest~3"], "There is one stored run, so there is no latest~3."),
        (["show", "latest:alfa"], "Did you mean latest:alpha?"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(tmp_path: Path, arguments: list[str], message: str) -> None:
    project = project_with(tmp_path)
    store(project.results, "alpha", 0, [efficiency()])
    done = zelda(project, *arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
