"""What of closed folders is shown to a run's own user, by which steps."""

from pathlib import Path

import pytest

from zelda_ci.sandbox import closed_folders
from zelda_ci.sandbox.readable_paths import PathPolicy


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A closed one below folders that are open."""
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001:
            pytest.skip(f"needs temporary folders that every user may enter: {folder}")
    made = tmp_path / "home"
    for name in ("tools/bin", "tools/versions/3", ".ssh"):
        (made / name).mkdir(parents=True)
    (made / "tools/bin/tool").write_text("")
    made.chmod(0o700)
    return made


def steps(read: list[Path], *ways: Path, written: tuple[Path, ...] = (), opened: Path | None = None) -> list[object]:
    return [*closed_folders.cover(read, written, [*read, *ways], opened)]


def test_an_empty_folder_takes_the_place_and_what_may_be_read_is_put_into_it(home: Path) -> None:
    assert steps([home / "tools", Path("/usr")]) == [("empty", f"{home}", ""), ("read", f"{home}/tools", "")]
    assert closed_folders.barrier(home / "tools") == home
    home.chmod(0o711)
    assert steps([home / "tools", Path("/usr")]) == []
    assert closed_folders.barrier(home / "tools") is None


def test_what_is_closed_by_itself_is_shown_entry_by_entry(home: Path) -> None:
    (home / "tools/latest").symlink_to("versions/3")
    (home / "tools/versions").chmod(0o700)
    (home / "tools").chmod(0o700)
    assert steps([home / "tools"], home / "tools/versions/3") == [
        ("empty", f"{home}", ""),
        ("read", f"{home}/tools/bin", ""),
        ("link", f"{home}/tools/latest", "versions/3"),
        ("read", f"{home}/tools/versions/3", ""),
    ]


def test_a_closed_folder_within_one_that_is_shown_gets_a_cover_of_its_own(home: Path) -> None:
    (home / "tools/versions").chmod(0o700)
    assert steps([home / "tools"], home / "tools/versions/3") == [
        ("empty", f"{home}", ""),
        ("read", f"{home}/tools", ""),
        ("empty", f"{home}/tools/versions", ""),
        ("read", f"{home}/tools/versions/3", ""),
    ]


def test_links_on_the_way_are_made_anew_and_loops_end(home: Path, tmp_path: Path) -> None:
    (home / "now").symlink_to("tools")
    (home / "round").symlink_to("round")
    (tmp_path / "alias").symlink_to("home")
    assert steps([home / "tools/bin"], tmp_path / "alias/now/bin/tool", home / "round") == [
        ("empty", f"{home}", ""),
        ("link", f"{home}/now", "tools"),
        ("read", f"{home}/tools/bin", ""),
    ]


def test_workspaces_are_written_and_opened_by_zelda_itself(home: Path) -> None:
    run = home / "zelda/1/run"
    run.mkdir(parents=True)
    (home / "zelda").chmod(0o700)
    found = steps([home / "tools"], written=(run,), opened=home / "zelda")
    assert found == [("empty", f"{home}", ""), ("read", f"{home}/tools", ""), ("write", f"{run}", "")]


def test_a_path_is_within_reach_where_it_is_open_or_shown(home: Path, tmp_path: Path) -> None:
    grounds = PathPolicy(tmp_path / "project", home, tmp_path / "base")
    for path, covers, expected in (
        (Path("/usr/bin"), False, True), (home / "tools/bin", False, False), (home / "tools/bin", True, True),
        (home, True, False),
    ):  # fmt: skip
        assert closed_folders.is_within_reach(path, grounds, covers=covers) == expected
