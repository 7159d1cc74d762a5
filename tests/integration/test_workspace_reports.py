"""Report files: which count, and what a hostile folder can do about it."""

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE
from tests.support.steered import workspace_in, write
from zelda_ci.workspace import reports
from zelda_ci.workspace.reports import Watch, Written

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


def written(project: Path, act: Act, *, before: Act = ":", patterns: Any = PATTERNS) -> Written:
    """What counts as written by `act`, a shell line or a function of the folder, after what was done before."""
    do(before, project)
    watch = Watch(workspace_in(project), patterns)
    do(act, project)
    return watch.written()


def names(found: Written) -> dict[str, list[str]]:
    return {kind: [file.path for file in files] for kind, files in found.files.items()}


def test_reports_are_found_by_kind_with_their_content(project: Path) -> None:
    found = written(
        project, "mkdir -p reports a/b; echo '<a/>' > reports/a.xml; echo x > a/b/TEST-x.xml; echo y > a/lcov.info"
    )
    assert names(found) == {"test": ["a/b/TEST-x.xml", "reports/a.xml"], "coverage": ["a/lcov.info"]}
    assert found.files["test"][1].raw == b"<a/>\n"
    assert found.notes == ()


def test_a_pattern_without_a_folder_means_the_top_folder_only(project: Path) -> None:
    found = written(
        project, "echo x > sub/junit.xml; echo x > sub/coverage.xml; mkdir s; mkdir s/reports; touch s/reports/a.xml"
    )
    assert names(found) == {"test": [], "coverage": []}


def test_a_pattern_that_names_a_folder_means_what_is_in_it(project: Path) -> None:
    found = written(project, "mkdir -p out/deep; echo x > out/deep/a.xml", patterns={"test": ("out",)})
    assert names(found) == {"test": ["out/deep/a.xml"]}


OLD = "echo '<old/>' > old.xml; touch -d '1 minute ago' old.xml"

STALE: dict[str, tuple[Act, Act]] = {
    "committed": (":", ":"),
    "left by the session": ("echo '<old/>' > junit.xml", ":"),
    "of the future": (f"echo '<old/>' > junit.xml; touch -d @{FAR_AHEAD} junit.xml", ":"),
    "with its mode changed": (f"echo '<old/>' > junit.xml; touch -d @{FAR_AHEAD} junit.xml", "chmod 600 junit.xml"),
    "renamed": (OLD, "mv old.xml junit.xml"),
    "copied with its time": (OLD, "cp -p old.xml junit.xml"),
    "linked": (OLD, "ln -f old.xml junit.xml"),
    "with an old time": (":", "echo '<new/>' > junit.xml; touch -d @1000000000 junit.xml"),
    "removed": ("echo '<old/>' > junit.xml", "rm junit.xml"),
}


@pytest.mark.parametrize("case", STALE)
def test_what_was_not_written_by_the_command_never_counts(project: Path, case: str) -> None:
    before, act = STALE[case]
    assert names(written(project, act, before=before)) == {"test": [], "coverage": []}


FRESH: dict[str, tuple[Act, Act]] = {
    "new": ("rm junit.xml", "echo '<new/>' > junit.xml"),
    "in place of a committed one": (":", "echo '<new/>' > junit.xml"),
    "the same once more": (":", "cat junit.xml > new; cat new > junit.xml"),
    "in place of one from the future": (f"touch -d @{FAR_AHEAD} junit.xml", "echo '<new/>' > junit.xml"),
    "by rename": (":", "echo '<new/>' > new.xml; mv new.xml junit.xml"),
}


@pytest.mark.parametrize("case", FRESH)
def test_what_the_command_wrote_counts(project: Path, case: str) -> None:
    before, act = FRESH[case]
    assert names(written(project, act, before=before))["test"] == ["junit.xml"]


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

    def back(folder: Path) -> None:
        act(folder)
        assert (folder / "TEST-secret.xml").exists()

    assert names(written(project, back)) == {"test": [], "coverage": []}


def test_a_workspace_that_is_gone_has_no_reports(project: Path, tmp_path: Path) -> None:
    assert names(written(project, lambda folder: folder.rename(tmp_path / "away"))) == {"test": [], "coverage": []}


def test_only_plain_files_are_read(project: Path) -> None:
    def act(folder: Path) -> None:
        (folder / "reports").mkdir()
        os.mkfifo(folder / "reports" / "fifo.xml")
        (folder / "reports" / "folder.xml").mkdir()
        with socket.socket(socket.AF_UNIX) as listener:
            os.chdir(folder / "reports")
            listener.bind("socket.xml")
        (folder / "reports" / "plain.xml").write_text("<a/>")

    home = Path.cwd()
    try:
        found = written(project, act)
    finally:
        os.chdir(home)
    assert names(found)["test"] == ["reports/plain.xml"]


def test_git_and_node_modules_are_not_searched_unless_they_are_named(project: Path) -> None:
    act = "mkdir -p node_modules/a .git_/b; echo x > node_modules/a/TEST-a.xml; echo x > .git_/b/TEST-b.xml"
    assert names(written(project, act))["test"] == [".git_/b/TEST-b.xml"]
    named = {"test": ("node_modules/a/TEST-a.xml",)}
    assert names(written(project, act, patterns=named))["test"] == ["node_modules/a/TEST-a.xml"]


def test_a_report_that_is_too_large_is_told_and_spoils_only_its_kind(project: Path) -> None:
    found = written(project, "truncate -s 1G junit.xml; mkdir reports; echo x > reports/a.xml; echo y > lcov.info")
    assert names(found) == {"coverage": ["lcov.info"]}
    assert found.notes == ("The test reports were not used: junit.xml is larger than 32 MB.",)


def test_reports_that_are_too_large_together_are_told(project: Path) -> None:
    found = written(project, "mkdir reports; for n in 1 2 3 4 5; do truncate -s 30M reports/$n.xml; done")
    assert found.notes == ("The test reports were not used: together they are larger than 128 MB.",)


def many(count: int) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        (folder / "reports").mkdir()
        for number in range(count):
            (folder / "reports" / f"{number}.xml").touch()

    return act


def test_too_many_reports_are_told(project: Path) -> None:
    found = written(project, many(reports.MAX_FILES + 1))
    assert found.notes == ("The test reports were not used: there are 10001 of them.",)


def test_a_hundred_thousand_files_and_a_deep_tree_hide_no_report_near_the_top(project: Path) -> None:
    def act(folder: Path) -> None:
        deep = folder
        for _ in range(100):
            deep /= "deeper"
            deep.mkdir()
            (deep / "TEST-a.xml").touch()
        for name in range(10):
            (folder / f"many{name}").mkdir()
            descriptor = os.open(folder / f"many{name}", os.O_RDONLY)
            for number in range(10_000):
                os.close(os.open(f"{number}.txt", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
            os.close(descriptor)
        (folder / "z").mkdir()
        (folder / "z" / "TEST-z.xml").write_text("<a/>")

    found = names(written(project, act))["test"]
    assert "z/TEST-z.xml" in found
    assert len(found) == 1 + reports.MAX_DEPTH


def test_names_of_any_bytes_are_read(project: Path) -> None:
    def act(folder: Path) -> None:
        place = folder / os.fsdecode(b"reports\xff")
        place.mkdir()
        (place / os.fsdecode(b"TEST-\xfe\n.xml")).write_text("<a/>")

    found = written(project, act)
    assert [file.raw for file in found.files["test"]] == [b"<a/>"]


def test_a_folder_that_cannot_be_read_is_passed_over(project: Path) -> None:
    found = written(
        project, "mkdir closed; echo x > closed/TEST-a.xml; chmod 0 closed; mkdir reports; echo x > reports/a.xml"
    )
    assert "reports/a.xml" in names(found)["test"]


def test_where_nothing_is_asked_for_nothing_is_found(project: Path) -> None:
    assert written(project, "echo x > junit.xml", patterns={"test": (), "coverage": ()}) == Written()
