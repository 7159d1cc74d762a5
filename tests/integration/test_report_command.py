"""`zelda report`: which runs, where to, and what is said."""

import stat
from pathlib import Path

from tests.support.command import zelda
from tests.support.history import store, store_sides
from tests.support.page_structure import content, structure
from tests.support.projects import Project, folder


def project_with(tmp_path: Path) -> Project:
    return folder(tmp_path, {"zelda.config.yaml": "resultsDir: .zelda\n"})


def report(project: Project, *arguments: str) -> str:
    done = zelda(project, "report", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def shown(file: Path) -> str:
    return structure(content(file)).text


def test_two_batches_are_compared_and_their_sessions_shown(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    old, new = store_sides(project.path / ".zelda")
    said = report(project, old, new)
    assert said.startswith(".zelda/report.html (")
    ids = structure(content(project.path / ".zelda" / "report.html")).ids
    assert {"suite-alpha", "sides-alpha", "alpha-head-1", "alpha-base-1", "suite-gamma"} <= set(ids)
    assert "worse in 1 of 3 suites" in shown(project.path / ".zelda" / "report.html")
    assert "+new\\x1b[31m" in shown(project.path / ".zelda" / "report.html")


def test_without_a_name_the_newest_batch_is_shown_alone(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    store_sides(project.path / ".zelda", trials=1)
    report(project, "-o", "page.html", "--no-transcripts")
    page = structure(content(project.path / "page.html"))
    assert {"suite-alpha", "suite-beta", "suite-gamma", "alpha-head-1"} <= set(page.ids)
    assert "sides-alpha" not in page.ids
    suites = [name for name in page.ids if name in {"suite-alpha", "suite-beta", "suite-gamma"}]
    assert suites == ["suite-alpha", "suite-beta", "suite-gamma"]
    assert "1 of 3 suites passes, 1 measured" in page.text
    assert "made without transcripts and patches" in page.text


def test_what_cannot_be_done_is_said_in_a_sentence(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    none = zelda(project, "report")
    assert (none.returncode, "There is no stored run yet." in none.stderr) == (2, True)
    store(project.path / ".zelda")
    nowhere = zelda(project, "report", "-o", "missing/page.html")
    assert (nowhere.returncode, "The folder missing does not exist." in nowhere.stderr) == (2, True)


def test_the_browser_that_the_user_has_chosen_is_started(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    store(project.path / ".zelda")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {tmp_path}/opened\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    done = zelda(project, "report", "--open", BROWSER=str(browser))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "opened").read_text() == (project.path / ".zelda" / "report.html").resolve().as_uri()
