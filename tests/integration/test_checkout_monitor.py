"""The check of the checkout: whatever happens to the developer's tree is reported, however it was done."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from zelda_ci.domain.workspace import CheckoutReport
from zelda_ci.redact import Redactor
from zelda_ci.workspace.checkout_monitor import MAX_LISTED, WatchedCheckout

REDACT = Redactor(())


def tree(tmp_path: Path) -> Path:
    project = tmp_path / "the project"
    (project / "src" / "deep").mkdir(parents=True)
    (project / "src" / "deep" / "code.py").write_text("x = 1\n")
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "link").symlink_to("run.sh")
    (project / ".zelda" / "runs").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", project], check=True)
    return project


def after(project: Path, action: Callable[[Path], object]) -> CheckoutReport:
    watched = WatchedCheckout([project], without=[project / ".zelda"])
    # So that a change of the same clock tick cannot be missed: the kernel's file times move every few milliseconds.
    time.sleep(0.02)
    action(project)
    return watched.compare(REDACT)


def told(found: CheckoutReport) -> list[tuple[str, str]]:
    return [(change.path, change.kind) for change in found.changes]


def rewrite_and_set_the_time_back(project: Path) -> None:
    file = project / "src" / "deep" / "code.py"
    status = file.stat()
    file.write_text("x = 2\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def link_twice(project: Path) -> None:
    os.link(project / "run.sh", project / "src" / "twin")


def relink(project: Path) -> None:
    (project / "new").symlink_to("src")
    (project / "new").rename(project / "link")


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (lambda _: None, []),
        (lambda project: (project / "src" / "deep" / "code.py").read_text(), []),
        (lambda project: (project / ".zelda" / "runs" / "new").write_text("ours"), []),
        (rewrite_and_set_the_time_back, [("src/deep/code.py", "changed")]),
        (lambda project: (project / "run.sh").chmod(0o755), [("run.sh", "changed")]),
        (lambda project: os.utime(project / "src"), [("src", "changed")]),
        (lambda project: (project / "src").chmod(0o700), [("src", "changed")]),
        (lambda project: (project / "run.sh").unlink(), [("run.sh", "removed")]),
        (lambda project: (project / ".git" / "index.lock").touch(), [(".git/index.lock", "added")]),
        (lambda project: os.mkfifo(project / "src" / "pipe"), [("src/pipe", "added")]),
        (link_twice, [("run.sh", "changed"), ("src/twin", "added")]),
        (relink, [("link", "changed")]),
    ],
)  # fmt: skip
def test_every_change_is_told_and_reading_is_none(tmp_path, action, expected):
    assert told(after(tree(tmp_path), action)) == expected


def test_a_folder_that_is_gone_or_cannot_be_entered_is_told_and_ends_nothing(tmp_path):
    project = tree(tmp_path)
    found = after(project, lambda project: (project / "src").rename(tmp_path / "elsewhere"))
    assert told(found) == [("src", "removed"), ("src/deep", "removed"), ("src/deep/code.py", "removed")]


def test_names_that_are_no_text_and_very_deep_trees_are_looked_at(tmp_path):
    project = tree(tmp_path)
    place = os.open(project, os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    found = after(project, lambda project: Path(os.fsdecode(os.fsencode(project) + b"/\xff\n")).touch())
    assert found.entries > 1_000
    assert [change.kind for change in found.changes] == ["added"]
    subprocess.run(["rm", "-rf", project / "d"], check=True)


def test_of_many_changes_the_first_are_listed_and_the_others_counted(tmp_path):
    def scatter(project: Path) -> None:
        for number in range(MAX_LISTED + 7):
            (project / f"new-{number:03}").touch()

    found = after(tree(tmp_path), scatter)
    assert (len(found.changes), found.more) == (MAX_LISTED, 7)


def test_a_repository_that_lies_elsewhere_is_watched_as_well(tmp_path):
    project, common = tree(tmp_path), tmp_path / "common"
    common.mkdir()
    watched = WatchedCheckout([project, common], without=[])
    (common / "HEAD").write_text("ref: refs/heads/evil\n")
    assert told(watched.compare(REDACT)) == [(str(common / "HEAD"), "added")]


def test_folders_within_folders_are_looked_at_once(tmp_path):
    project = tree(tmp_path)
    assert (
        WatchedCheckout([project, project / ".git"], without=[]).compare(REDACT).entries
        == after(project, str).entries + 2
    )
