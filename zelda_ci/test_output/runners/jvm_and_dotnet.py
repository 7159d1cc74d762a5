"""Maven Surefire, Gradle and `dotnet test`."""

from collections.abc import Iterable, Iterator
from typing import Any

import re2

from zelda_ci.test_output.tally import Lines, Tally, first_names, following, matches, number

_RESULTS = re2.compile(r"(?:\[\w+\] )?Results ?:$")
_COUNTS = re2.compile(
    r"(?:\[\w+\] )?Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)(?:, Flakes: (\d+))?$"
)
_SECTION = re2.compile(r"(?:\[\w+\] )?(Failures|Errors|Flakes|Failed tests|Tests in error): *(\S.*)?$")
_ENTRY = re2.compile(r"(?:\[\w+\] )?  ?(?:Run \d+: )?([\w.$]+(?:\[.*?\])?)[:>» ]")

_COMPLETED = re2.compile(r"(\d+) tests? completed(?:, (\d+) failed)?(?:, (\d+) skipped)?$")
_GRADLE_NAME = re2.compile(r"(\S+ > .+) FAILED$")

_ASSEMBLY = re2.compile(
    r" *(?:Passed|Failed|Skipped|No test is available)! +- +"
    r"Failed: +(\d+), Passed: +(\d+), Skipped: +(\d+), Total: +(\d+)"
)
_TOTAL = re2.compile(r"Total tests: (\d+)$")
_PART = re2.compile(r" *(Passed|Failed|Skipped): (\d+)$")
_NEW = re2.compile(r"Test summary: total: (\d+), failed: (\d+), succeeded: (\d+), skipped: (\d+)")
_PLATFORM = re2.compile(r"Test run summary: ")
_PLATFORM_PART = re2.compile(r" +(total|failed|succeeded|skipped): (\d+)$")
_DOTNET_NAME = re2.compile(r"  Failed (\S.*?) \[[<\d].*\]$|failed (\S.*?) \(\d.*\)$")


def read_surefire(lines: Lines) -> Iterable[Tally]:
    """One tally per module: the counts under `Results`, not those of the classes above it."""
    for first, _ in matches(lines, _RESULTS):
        for index in range(first + 1, min(len(lines), first + 5_000)):
            if match := _COUNTS.match(lines[index]):
                yield _surefire(lines, first, index, match)
                break
            if _RESULTS.match(lines[index]):
                break


def _surefire(lines: Lines, first: int, index: int, match: Any) -> Tally:
    total, failed, errored, skipped, flaky = (number(match, group) for group in (1, 2, 3, 4, 5))
    return Tally(
        "Maven Surefire", max(0, total - failed - errored - skipped), failed, errored, skipped, flaky,
        first_names(_surefire_names(lines[first:index])), first=first, last=index,
    )  # fmt: skip


def _surefire_names(lines: Lines) -> Iterator[str]:
    section = ""
    for line in lines:
        if match := _SECTION.match(line):
            section = match[1]
        elif section and section != "Flakes" and (match := _ENTRY.match(line)):
            yield match[1]


def read_gradle(lines: Lines) -> Iterable[Tally]:
    """One tally per `N tests completed`, which Gradle prints only when a test failed."""
    start = 0
    for index, match in matches(lines, _COMPLETED):
        failed, skipped = number(match, 2), number(match, 3)
        names = (name[1] for _, name in matches(lines[start:index], _GRADLE_NAME))
        yield Tally(
            "Gradle", max(0, number(match, 1) - failed - skipped), failed, skipped=skipped,
            failures=first_names(names), first=start, last=index,
        )  # fmt: skip
        start = index + 1


def read_dotnet(lines: Lines) -> Iterable[Tally]:
    """One tally per assembly, or per closing summary where no assembly has a line of its own."""
    counted = list(_assemblies(lines)) or list(_summaries(lines))
    if counted:
        names = first_names(name[1] or name[2] for _, name in matches(lines, _DOTNET_NAME))
        passed, failed, skipped = (sum(counts[part] for _, counts in counted) for part in range(3))
        span = counted[0][0], counted[-1][0]
        yield Tally(".NET", passed, failed, skipped=skipped, failures=names, first=span[0], last=span[1])


# Passed, failed and skipped.
Counts = tuple[int, int, int]


def _assemblies(lines: Lines) -> Iterator[tuple[int, Counts]]:
    for index, match in matches(lines, _ASSEMBLY):
        yield index, (number(match, 2), number(match, 1), number(match, 3))


def _summaries(lines: Lines) -> Iterator[tuple[int, Counts]]:
    for index, line in enumerate(lines):
        if not line.startswith(("Test ", "Total ")):
            continue
        if match := _NEW.match(line):
            yield index, (number(match, 3), number(match, 2), number(match, 4))
        elif _PLATFORM.match(line):
            parts = _parts(lines, index, _PLATFORM_PART)
            yield index, (parts.get("succeeded", 0), parts.get("failed", 0), parts.get("skipped", 0))
        elif match := _TOTAL.match(line):
            parts = _parts(lines, index, _PART)
            if sum(parts.values()) == number(match, 1):
                yield index, (parts.get("Passed", 0), parts.get("Failed", 0), parts.get("Skipped", 0))


def _parts(lines: Lines, index: int, pattern: Any) -> dict[str, int]:
    parts: dict[str, int] = {}
    for _, line in following(lines, index + 1, 6):
        if part := pattern.match(line):
            parts[part[1]] = number(part, 2)
    return parts
