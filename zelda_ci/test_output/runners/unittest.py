"""unittest, and those that print as it does: nose2 and Django."""

import re
from collections.abc import Iterable

from zelda_ci.test_output.tally import Lines, Tally, first_names, following, matches, number, preceding

_RAN = re.compile(r"Ran (\d+) tests? in [\d.]+s")
_RESULT = re.compile(r"(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$")
_HEADING = re.compile(r"(FAIL|ERROR|UNEXPECTED SUCCESS): (\S.*)$")
_OUTSIDE = re.compile(r"(?:setUp|tearDown)(?:Class|Module) ")
_WHOLE_TEST = re.compile(r"\S+ \([^)]*\)")
_DJANGO = re.compile(r"Found \d+ test\(s\)\.$|Destroying test database for alias")
_RULE = "-" * 50


def read(lines: Lines) -> Iterable[Tally]:
    """One tally per `Ran … tests` that stands under a rule, as runners print it and tests seldom do."""
    start = 0
    for at, ran in matches(lines, _RAN):
        if any(line.startswith(_RULE) for line in preceding(lines, at, 2)):
            result = next(
                ((end, found) for end, line in following(lines, at + 1, 3) if (found := _RESULT.match(line))), None
            )
            if result:
                yield _tally(lines, (start, at), result[0], (number(ran, 1), _reasons(result[1])))
                start = result[0] + 1


def _reasons(found: re.Match[str]) -> dict[str, int]:
    pairs = (part.rpartition("=") for part in (found[1] or "").split(", "))
    return {word: int(count) for word, _, count in pairs if count.isdecimal() and len(count) < 10}


def _tally(lines: Lines, span: tuple[int, int], last: int, said: tuple[int, dict[str, int]]) -> Tally:
    ran, reasons = said
    failing, outside, names = _headings(lines[span[0] : span[1]])
    errored = {test for kind, test in failing if kind == "ERROR"}
    failed = {test for kind, test in failing if kind == "FAIL"} - errored
    listed = reasons.get("failures", 0) + reasons.get("errors", 0)
    if len(names) < listed:
        failures, errors, outside = reasons.get("failures", 0), reasons.get("errors", 0), 0
    else:
        failures, errors = len(failed), len(errored)
    unexpected = reasons.get("unexpected successes", 0)
    skipped = reasons.get("skipped", 0) + reasons.get("expected failures", 0)
    return Tally(
        "Django" if _is_django(lines, span[0], last) else "unittest",
        passed=max(0, ran - failures - errors - unexpected - skipped),
        failed=failures + unexpected,
        errored=errors + outside,
        skipped=skipped,
        failures=first_names(names),
        first=span[0],
        last=last,
    )


def _headings(lines: Lines) -> tuple[set[tuple[str, str]], int, list[str]]:
    """Failing tests without their subtests, the number of failures outside of tests, and all names."""
    failing: set[tuple[str, str]] = set()
    outside = 0
    names: list[str] = []
    for at, found in matches(lines, _HEADING):
        if not any(line.startswith("=" * 50) for line in preceding(lines, at, 1)):
            continue
        names.append(found[2])
        if _OUTSIDE.match(found[2]):
            outside += 1
        elif found[1] != "UNEXPECTED SUCCESS":
            failing.add((found[1], _test(found[2])))
    return failing, outside, names


def _test(name: str) -> str:
    """`test (module.Class.test) (number=1)` is a subtest of `test (module.Class.test)`."""
    found = _WHOLE_TEST.match(name)
    return found[0] if found else name


def _is_django(lines: Lines, first: int, last: int) -> bool:
    return any(_DJANGO.match(line) for line in lines[max(0, first - 20) : last + 30])
