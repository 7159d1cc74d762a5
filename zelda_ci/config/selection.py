"""Which of a project's suites a command means."""

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from zelda_ci.config.keys import nearest
from zelda_ci.config.problems import printable, shown
from zelda_ci.config.resolver import LoadedSuite
from zelda_ci.errors import ConfigError


def select(suites: Sequence[LoadedSuite], names: Iterable[str], tags: Iterable[str] = ()) -> tuple[LoadedSuite, ...]:
    """The suites with one of the names and one of the tags, in the order of their files.

    Args:
        suites: All there are.
        names: Names of suites or paths of their files; none means all.
        tags: Of which a suite must have one; none means any.

    Raises:
        ConfigError: a name or tag that no suite has, or nothing is left.
    """
    names, tags = list(names), list(tags)
    strangers = [_stranger(name, suites) for name in names if not any(_is_meant(name, suite) for suite in suites)]
    strangers += [_unknown_tag(tag, suites) for tag in tags if not any(tag in it.resolved.tags for it in suites)]
    if strangers:
        hint = "`zelda validate` shows every suite." if suites else None
        raise ConfigError("\n".join(dict.fromkeys(strangers)), hint=hint, code="UNKNOWN_SUITE")
    chosen = tuple(suite for suite in suites if _is_chosen(suite, names, tags))
    if not chosen:
        raise ConfigError("None of the named suites has one of the tags.", code="NO_SUITE_SELECTED")
    return chosen


def _is_chosen(suite: LoadedSuite, names: list[str], tags: list[str]) -> bool:
    named = not names or any(_is_meant(name, suite) for name in names)
    return named and (not tags or bool(set(tags) & set(suite.resolved.tags)))


def _is_meant(name: str, suite: LoadedSuite) -> bool:
    return name == suite.resolved.name or _is_file(name, suite.resolved.file)


def _is_file(name: str, file: str) -> bool:
    """Whether a path, relative to any folder or absolute, ends like the suite's file."""
    given = [part for part in PurePath(name).parts if part not in {".", ".."}]
    parts = file.split("/")
    common = min(len(given), len(parts))
    return common > 0 and given[-common:] == parts[-common:]


def _stranger(name: str, suites: Sequence[LoadedSuite]) -> str:
    near = nearest(name, [suite.resolved.name for suite in suites] + [suite.resolved.file for suite in suites])
    guess = f" (did you mean {near}?)" if near else ""
    return f'No suite is called "{printable(shown(name))}"{guess}.'


def _unknown_tag(tag: str, suites: Sequence[LoadedSuite]) -> str:
    known = sorted({tag for suite in suites for tag in suite.resolved.tags})
    there = f"; there are {', '.join(known)}" if known else "; no suite has tags"
    return f'No suite has the tag "{printable(shown(tag))}"{there}.'
