"""Which suites a command means: by name, file, folder, glob, tag, text, and how they ended last time."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import re2

from zelda_ci.config.merge import LoadedSuite
from zelda_ci.config.messages import nearest, printable, shown
from zelda_ci.domain import globs
from zelda_ci.errors import ConfigError

_GLOB = re.compile(r"[*?\[{]")


def select(
    suites: Sequence[LoadedSuite], names: Iterable[str], tags: Iterable[str] = (), notices: Iterable[str] = ()
) -> tuple[LoadedSuite, ...]:
    """The suites with one of the names and one of the tags, in the order of their files.

    Args:
        suites: All there are.
        names: Names of suites, paths of their files or folders, or globs of these; none means all.
        tags: Of which a suite must have one; none means any.
        notices: What was said of the files, such as of one that looks like a suite and is none.

    Raises:
        ConfigError: a name or tag that no suite has, or nothing is left.
    """
    names, tags = list(names), list(tags)
    # Where a suite has this very name, no folder and no file of that name is meant.
    exact = {suite.resolved.name for suite in suites}
    meant = [{it.resolved.name for it in suites if _is_named(name, it, exact)} for name in names]
    strangers = [_unknown_suite(name, suites) for name, found in zip(names, meant, strict=True) if not found]
    if strangers:
        strangers += [f"{told}." for told in notices if any(PurePosixPath(name).stem in told for name in names)]
    strangers += [_unknown_tag(tag, suites) for tag in tags if not any(tag in it.resolved.tags for it in suites)]
    if strangers:
        hint = "`zelda validate` shows every suite." if suites else None
        raise ConfigError("\n".join(dict.fromkeys(strangers)), hint=hint, code="UNKNOWN_SUITE")
    wanted = exact if not names else set[str]().union(*meant)
    chosen = tuple(
        it for it in suites if it.resolved.name in wanted and (not tags or set(tags) & set(it.resolved.tags))
    )
    if not chosen:
        raise ConfigError("None of the named suites has one of the tags.", code="NO_SUITE_SELECTED")
    return chosen


def containing(suites: Sequence[LoadedSuite], pattern: str) -> tuple[LoadedSuite, ...]:
    """The suites of which name, description, tags, prompt or criteria hold what a regular expression matches.

    Raises:
        ConfigError: It is no regular expression, or nothing is left.
    """
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        expression = re2.compile(pattern, options)
    except re2.error as problem:
        message = f"--grep {shown(pattern)} is no regular expression: {problem}."
        raise ConfigError(
            message, hint="Put a backslash before signs that are meant as they are.", code="USAGE"
        ) from None
    chosen = tuple(suite for suite in suites if any(map(expression.search, _texts(suite))))
    if not chosen:
        message = f"No suite contains {shown(pattern)}: names, descriptions, tags, prompts and criteria were searched."
        raise ConfigError(message, code="NO_SUITE_SELECTED")
    return chosen


def last_failed(suites: Sequence[LoadedSuite], passed: Mapping[str, bool]) -> tuple[LoadedSuite, ...]:
    """The suites that did not pass when they were run last.

    Args:
        suites: All that may be meant.
        passed: By suite, whether its last run was good; suites that were never run are missing.

    Raises:
        ConfigError: There is none: zero suites is never green.
    """
    chosen = tuple(suite for suite in suites if passed.get(suite.resolved.name) is False)
    if not chosen:
        known = any(suite.resolved.name in passed for suite in suites)
        why = "Every suite passed when it was last run" if known else "No suite has been run yet"
        hint = "Leave --last-failed out to run all of them."
        raise ConfigError(f"{why}: nothing to run.", hint=hint, code="NO_SUITE_SELECTED")
    return chosen


def is_meant(name: str, suite: str, file: str) -> bool:
    """Whether a name that was given means the suite of this name, in this file."""
    *folders, _ = (str(path) for path in reversed([PurePosixPath(file), *PurePosixPath(file).parents[:-1]]))
    path = "/".join(part for part in PurePosixPath(name).parts if part not in {".", "..", "/"})
    # A matrix puts its values behind the suite's name.
    is_named = name == suite or suite.startswith(f"{name}.")
    if is_named or (path and any(_end_alike(path, each) for each in (file, *folders))):
        return True
    # `api/list` for `zelda/api/test-list.yaml`, wherever the folder of suites lies.
    named = [file, str(PurePosixPath(file).with_name(usual_name(file)))]
    tails = [tail for each in named for tail in _tails(each) if "/" in name or "/" not in tail]
    if "/" in name and name in tails:
        return True
    return bool(_GLOB.search(name)) and any(globs.matches([name.removeprefix("./")], it) for it in (suite, *tails))


def _tails(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[start:]) for start in range(len(parts)))


def _end_alike(one: str, other: str) -> bool:
    """Whether the shorter of two paths is the end of the longer one."""
    return f"/{one}".endswith(f"/{other}") or f"/{other}".endswith(f"/{one}")


def usual_name(file: str) -> str:
    """A suite's name where its file gives none."""
    return PurePosixPath(file).stem.removeprefix("test-")


def _texts(suite: LoadedSuite) -> Iterable[str]:
    it = suite.resolved
    return (it.name, it.description or "", *it.tags, it.prompt, *it.criteria)


def _is_named(name: str, suite: LoadedSuite, exact: set[str]) -> bool:
    if name in exact:
        return name == suite.resolved.name
    return is_meant(name, suite.resolved.name, suite.resolved.file)


def _unknown_suite(name: str, suites: Sequence[LoadedSuite]) -> str:
    if set("*?{") & set(name):
        return f'No suite matches "{printable(shown(name))}".'
    near = nearest(name, [suite.resolved.name for suite in suites] + [suite.resolved.file for suite in suites])
    guess = f" (did you mean {near}?)" if near else ""
    return f'No suite is called "{printable(shown(name))}"{guess}.'


def _unknown_tag(tag: str, suites: Sequence[LoadedSuite]) -> str:
    tags = sorted({tag for suite in suites for tag in suite.resolved.tags})
    there = f"; there are {', '.join(tags)}" if tags else "; no suite has tags"
    return f'No suite has the tag "{printable(shown(tag))}"{there}.'
