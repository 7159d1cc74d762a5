"""Folders in which others make and remove files while they are listed: one that vanishes hides none of the rest."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from zelda_ci.process import removal
from zelda_ci.sandbox import users


def of_user(folder: Path) -> Iterator[str]:
    return users.entries_of(folder, os.getuid())


def old(folder: Path) -> Iterator[str]:
    return (entry.name for entry in removal.older_than(folder, -1))


@pytest.mark.parametrize("listed", [of_user, old])
def test_what_is_still_there_is_found(tmp_path: Path, listed: object) -> None:
    assert callable(listed)
    names = {f"file-{number}" for number in range(9)}
    for name in names:
        (tmp_path / name).touch()
    found = listed(tmp_path)
    first = next(found)
    kept = max(names - {first})
    for name in names - {kept}:
        (tmp_path / name).unlink()
    assert set(found) == {kept}
