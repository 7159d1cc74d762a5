"""Report files: which count, and what a hostile folder can do about it."""

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE
from tests.support.steered import workspace_in, write
from zelda_ci.test_output.reports import ReportFile
from zelda_ci.workspace import reports
from zelda_ci.workspace.reports import Watch

PATTERNS = {"test": ("junit.xml", "reports/*.xml", "**/TEST-*.xml"), "coverage": ("coverage.xml", "**/lcov.info")}
FAR_AHEAD = 4_000_000_000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder in which a command runs; that of a session's workspace is no other."""
    root = tmp_path / "base" / "ws"
    write(root, {"junit.xml": "<committed/>", "sub/README.md": "hello\n"})
    return root


Act = Callable[[Path], Any] | str


def do(act: Act, folder: Path) -> None:
    if isinstance(act, str):
        subprocess.run(["sh", "-c", act], cwd=folder, check=True, timeout=PATIENCE)
    else:
        act(folder)


Found = tuple[dict[str, tuple[ReportFile, ...]], tuple[str, ...]]


def written(project: Path, act: Act, *, before: Act = ":", patterns: Any = PATTERNS) -> Found:
    """What counts as written by `act`, a shell line or a function of the folder, after what was done before."""
    do(before, project)
    watch = Watch(workspace_in(project), patterns)
    do(act, project)
    return watch.written()


def names(found: Found) -> dict[str, list[str]]:
    return {kind: [file.path for file in files] for kind, files in found[0].items()}


def test_reports_are_found_by_kind_with_their_content(project: Path) -> None:
    found = written(
        project, "mkdir -p reports a/b; echo '<a/>' > reports/a.xml; echo x > a/b/TEST-x.xml; echo y > a/lcov.info"
    )
    assert names(found) == {"test": ["a/b/TEST-x.xml", "reports/a.xml"], "coverage": ["a/lcov.info"]}
    assert found[0]["test"][1].raw == b"<a/>\n"
    assert found[1] == ()


def test_a_pattern_means_the_top_folder_or_what_is_in_the_folder_that_it_names(project: Path) -> None:
    elsewhere = "echo x > sub/junit.xml; echo x > sub/coverage.xml; mkdir -p s/reports; touch s/reports/a.xml"
    assert names(written(project, elsewhere)) == {"test": [], "coverage": []}
    found = written(project, "mkdir -p out/deep; echo x > out/deep/a.xml", patterns={"test": ("out",)})
    assert names(found) == {"test": ["out/deep/a.xml"]}
    assert written(project, "echo x > junit.xml", patterns={"test": (), "coverage": ()}) == ({}, ())


OLD = "echo '<old/>' > old.xml; touch -d '1 minute ago' old.xml"


CASES = {
    "committed": (":", ":", False),
    "left by the session": ("echo '<old/>' > junit.xml", ":", False),
    "with its mode changed": (f"touch -d @{FAR_AHEAD} junit.xml", "chmod 600 junit.xml", False),
    "renamed": (OLD, "mv old.xml junit.xml", False),
    "copied with its time": (OLD, "cp -p old.xml junit.xml", False),
    "linked": (OLD, "ln -f old.xml junit.xml", False),
    "with an old time": (":", "echo '<new/>' > junit.xml; touch -d @1000000000 junit.xml", False),
    "removed": ("echo '<old/>' > junit.xml", "rm junit.xml", False),
    "new": ("rm junit.xml", "echo '<new/>' > junit.xml", True),
    "in place of a committed one": (":", "echo '<new/>' > junit.xml", True),
    "the same once more": (":", "cat junit.xml > new; cat new > junit.xml", True),
    "in place of one from the future": (f"touch -d @{FAR_AHEAD} junit.xml", "echo '<new/>' > junit.xml", True),
    "by rename": (":", "echo '<new/>' > new.xml; mv new.xml junit.xml", True),
}
"""What happens before the command, what the command does, and whether that counts."""


@pytest.mark.parametrize("case", CASES)
def test_only_what_the_command_itself_wrote_counts(project: Path, case: str) -> None:
    before, act, counts = CASES[case]
    assert names(written(project, act, before=before)) == {"test": ["junit.xml"] if counts else [], "coverage": []}


def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "TEST-secret.xml").write_text("<secret/>")
    return folder


def test_no_link_leads_to_a_report(project: Path, tmp_path: Path) -> None:
    secret = outside(tmp_path)

    def act(folder: Path) -> None:
        (folder / "junit.xml").unlink()
        (folder / "junit.xml").symlink_to(secret / "TEST-secret.xml")
        (folder / "reports").symlink_to(secret)
        (folder / "deep").symlink_to(secret)
        (folder / "loop").symlink_to(".")
        (secret / "TEST-secret.xml").write_text("<written meanwhile/>")

    assert names(written(project, act)) == {"test": [], "coverage": []}


def test_a_folder_in_whose_place_a_link_stands_is_empty(project: Path, tmp_path: Path) -> None:
    secret = outside(tmp_path)

    def act(folder: Path) -> None:
        folder.rename(tmp_path / "away")
        folder.symlink_to(secret)
        (secret / "TEST-secret.xml").write_text("<written meanwhile/>")
        assert (folder / "TEST-secret.xml").exists()

    assert names(written(project, act)) == {"test": [], "coverage": []}


def test_only_plain_files_are_read_whatever_bytes_their_names_have(project: Path) -> None:
    def act(folder: Path) -> None:
        place = folder / os.fsdecode(b"reports\xff")
        for made in (folder / "reports" / "folder.xml", folder / "closed", place):
            made.mkdir(parents=True)
        os.mkfifo(folder / "reports" / "fifo.xml")
        os.mknod(folder / "reports" / "socket.xml", stat.S_IFSOCK | 0o600)
        (folder / "reports" / "plain.xml").write_text("<a/>")
        (place / os.fsdecode(b"TEST-\xfe\n.xml")).write_text("<b/>")
        (folder / "closed").chmod(0)

    found = written(project, act)
    assert {file.raw for file in found[0]["test"]} == {b"<a/>", b"<b/>"}


def test_a_report_that_is_too_large_is_told_and_spoils_only_its_kind(project: Path) -> None:
    found = written(project, "truncate -s 1G junit.xml; mkdir reports; echo x > reports/a.xml; echo y > lcov.info")
    assert names(found) == {"coverage": ["lcov.info"]}
    assert found[1] == ("The test reports were not used: junit.xml is larger than 32 MB.",)


def test_reports_that_are_too_large_together_or_too_many_are_told(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = written(project, "mkdir reports; for n in 1 2 3 4 5; do truncate -s 30M reports/$n.xml; done")
    assert found[1] == ("The test reports were not used: together they are larger than 128 MB.",)
    monkeypatch.setattr(reports, "MAX_FILES", 5)
    found = written(project, "rm reports/*; for n in 1 2 3 4 5 6; do touch reports/$n.xml; done")
    assert found[1] == ("The test reports were not used: there are 6 of them.",)


def test_many_files_and_a_deep_tree_hide_no_report_near_the_top(project: Path) -> None:
    def act(folder: Path) -> None:
        deep = folder
        for _ in range(100):
            deep /= "deeper"
            deep.mkdir()
            (deep / "TEST-a.xml").touch()
        (folder / "many").mkdir()
        for number in range(10_000):
            os.close(os.open(folder / "many" / f"{number}.txt", os.O_CREAT | os.O_WRONLY))
        (folder / "z").mkdir()
        (folder / "z" / "TEST-z.xml").write_text("<a/>")

    found = names(written(project, act))["test"]
    assert "z/TEST-z.xml" in found
    assert len(found) == 1 + reports.MAX_DEPTH
