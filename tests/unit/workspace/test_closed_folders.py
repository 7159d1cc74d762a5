"""Which paths a run's own user can get to."""

from pathlib import Path

import pytest

from zelda_ci.sandbox.readable_paths import barrier, is_open, is_within_reach


def test_a_folder_that_others_may_not_enter_is_in_the_way_links_followed(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001:
            pytest.skip(f"needs temporary folders that every user may enter: {folder}")
    home, link, tool = tmp_path / "home", tmp_path / "open/tool", tmp_path / "home/tools/bin/tool"
    for folder in (tool.parent, link.parent):
        folder.mkdir(parents=True)
    tool.touch(0o755)
    link.symlink_to(tool)
    assert barrier(tool) is None
    assert is_open(link)
    home.chmod(0o700)
    assert [barrier(path) for path in (home, tool, link, home / "missing", link.parent)] == [home] * 4 + [None]
    assert not is_open(link)
    assert [is_within_reach(path, home / "tools") for path in (tool, home)] == [True, False]
