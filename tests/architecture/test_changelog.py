"""CHANGELOG.md has what a release takes from it: a section of this version with a date, and links at the end."""

import re
from datetime import date
from itertools import pairwise
from pathlib import Path

from zelda_ci import __version__

TEXT = (Path(__file__).parents[2] / "CHANGELOG.md").read_text("utf-8")
ADDRESS = "https://github.com/zelda-ci/zelda-ci"
HEADINGS = re.findall(r"^## \[([^]]+)\](?: - (.*))?$", TEXT, re.MULTILINE)
LINKS = dict(re.findall(r"^\[([^]]+)\]: (\S+)$", TEXT, re.MULTILINE))


def test_this_version_has_the_first_section_behind_what_is_not_released() -> None:
    assert [name for name, _ in HEADINGS][:2] == ["Unreleased", __version__]


def test_every_version_has_a_date_none_is_older_than_the_next() -> None:
    days = [date.fromisoformat(day) for _, day in HEADINGS[1:]]
    assert days == sorted(days, reverse=True)


def test_every_section_has_its_link() -> None:
    versions = [name for name, _ in HEADINGS[1:]]
    before = dict(pairwise(versions))
    assert LINKS["Unreleased"] == f"{ADDRESS}/compare/v{versions[0]}...HEAD"
    assert set(versions) <= set(LINKS)
    for version in versions:
        compared = f"{ADDRESS}/compare/v{before[version]}...v{version}" if version in before else ""
        assert LINKS[version] in {compared, f"{ADDRESS}/releases/tag/v{version}"}
