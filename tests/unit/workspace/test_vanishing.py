"""A folder in which others make and remove files while it is listed."""

from pathlib import Path

from zelda_ci.process import removal


def test_an_entry_that_vanishes_hides_none_of_the_rest(tmp_path: Path) -> None:
    names = {f"file-{number}" for number in range(9)}
    for name in names:
        (tmp_path / name).touch()
    found = removal.older_than(tmp_path, -1)
    kept = max(names - {next(found).name})
    for name in names - {kept}:
        (tmp_path / name).unlink()
    assert [entry.name for entry in found] == [kept]
