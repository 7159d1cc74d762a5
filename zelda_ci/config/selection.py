"""Which suites a command means: by name, file, folder, glob, tag, text, and how they ended last time."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

import re2

from zelda_ci.config.messages import nearest, printable, shown
from zelda_ci.config.suite_file import LoadedSuite
from zelda_ci.errors import ConfigError
from zelda_ci.files import globs

_GLOB = re.compile(r"[*?\[{]")


def select(
    suites: Sequence[LoadedSuite], names: Iterable[str], tags: Iterable[str] = (), notices: Iterable[str] = ()
) -> tuple[LoadedSuite, ...]:
    """The suites that one of the names means and that have one of the tags, in the order of their files.

    Without names all are meant, and without tags any. `notices` were said of the files, such as of one that looks like
    a suite and is none. Raises ConfigError where no suite has a name or tag, or nothing is left.
    """
    names, tags = list(names), list(tags)
    # Where a suite has this very name, no folder and no file of that name is meant.
    exact = {suite.resolved.name for suite in suites}
    resolved = [suite.resolved for suite in suites]
    meant = [
        {name} if name in exact else {it.name for it in resolved if is_meant(name, it.name, it.file)} for name in names
    ]
    strangers = [_unknown_suite(name, suites) for name, found in zip(names, meant, strict=True) if not found]
    if strangers:
        strangers += [f"{told}." for told in notices if any(PurePosixPath(name).stem in told for name in names)]
    known = sorted({tag for suite in suites for tag in suite.resolved.tags})
    there = f"; there are {', '.join(known)}" if known else "; no suite has tags"
    strangers += [f'No suite has the tag "{printable(shown(tag))}"{there}.' for tag in tags if tag not in known]
    if strangers:
        hint = "`zelda validate` shows every suite." if suites else None
        raise ConfigError("\n".join(dict.fromkeys(strangers)), hint=hint, code="UNKNOWN_SUITE")
    wanted = exact if not names else set[str]().union(*meant)
    tagged = (it for it in suites if not tags or set(tags) & set(it.resolved.tags))
    chosen = tuple(it for it in tagged if it.resolved.name in wanted)
    if not chosen:
        raise ConfigError("None of the named suites has one of the tags.", code="NO_SUITE_SELECTED")
    return chosen


def containing(suites: Sequence[LoadedSuite], pattern: str) -> tuple[LoadedSuite, ...]:
    """The suites of which name, description, tags, prompt or criteria hold what a regular expression matches."""
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        expression = re2.compile(pattern, options)
    except re2.error as problem:
        message, hint = f"--grep {shown(pattern)} is no regular expression: {problem}.", "Put a backslash before signs"
        raise ConfigError(message, hint=f"{hint} that are meant as they are.", code="USAGE") from None
    chosen = tuple(
        suite
        for suite in suites
        for it in (suite.resolved,)
        if any(map(expression.search, (it.name, it.description or "", *it.tags, it.prompt, *it.criteria)))
    )
    if not chosen:
        message = f"No suite contains {shown(pattern)}: names, descriptions, tags, prompts and criteria were searched."
        raise ConfigError(message, code="NO_SUITE_SELECTED")
    return chosen


def last_failed(suites: Sequence[LoadedSuite], passed: Mapping[str, bool]) -> tuple[LoadedSuite, ...]:
    """The suites that did not pass when they were run last; raises where there is none: zero suites is never green."""
    chosen = tuple(suite for suite in suites if passed.get(suite.resolved.name) is False)
    if not chosen:
        known = any(suite.resolved.name in passed for suite in suites)
        why = "Every suite passed when it was last run" if known else "No suite has been run yet"
        hint = "Leave --last-failed out to run all of them."
        raise ConfigError(f"{why}: nothing to run.", hint=hint, code="NO_SUITE_SELECTED")
    return chosen


def is_meant(name: str, suite: str, file: str) -> bool:
    """Whether a name that was given means the suite of this name, in this file: by name, path, folder or glob."""
    path = PurePosixPath(file)
    # `api/list` for `zelda/api/test-list.yaml`, wherever the folder of suites lies.
    files = (path, path.parent / usual_name(file))
    given = "/".join(part for part in PurePosixPath(name).parts if part not in {".", "..", "/"})
    folders = path.parents[:-1]
    is_path = given in _tails(*files, *folders) - {usual_name(file)}
    is_longer = any(f"/{given}".endswith(f"/{place}") for place in (path, *folders))
    # A matrix puts its values behind the suite's name.
    if name == suite or suite.startswith(f"{name}.") or is_path or is_longer:
        return True
    spelled = [suite, *(each for each in _tails(*files) if "/" in name or "/" not in each)]
    return bool(_GLOB.search(name)) and any(globs.matches([name.removeprefix("./")], each) for each in spelled)


def _tails(*paths: PurePosixPath) -> set[str]:
    """Paths as they are called from each folder on the way to them."""
    return {"/".join(path.parts[start:]) for path in paths for start in range(len(path.parts))}


def usual_name(file: str) -> str:
    """A suite's name where its file gives none."""
    return PurePosixPath(file).stem.removeprefix("test-")


def _unknown_suite(name: str, suites: Sequence[LoadedSuite]) -> str:
    if _GLOB.search(name):
        return f'No suite matches "{printable(shown(name))}".'
    near = nearest(name, [suite.resolved.name for suite in suites] + [suite.resolved.file for suite in suites])
    guess = f" (did you mean {near}?)" if near else ""
    return f'No suite is called "{printable(shown(name))}"{guess}.'
