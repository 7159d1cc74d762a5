"""Coverage as runners and tools print it."""

import re
from collections.abc import Callable, Iterator

from zelda_ci.test_output.coverage.measure import Coverage, Share, percent
from zelda_ci.test_output.tally import Lines, following, matches

_TABLE = re.compile(r"\|? *All files *\|([\d. |-]*)")
_HEADER = re.compile(r"\|? *File *\|(.*)$")
_SUMMARY = re.compile(r"(Statements|Branches|Lines) *: ([\d.]+)% \( (\d+)/(\d+) \)")
_TOTAL = re.compile(r"TOTAL +([\d ]+?) +(\d+(?:\.\d+)?)%(?: |$)")
_GO_PACKAGE = re.compile(r"ok  \t\S+\t(?:[\d.]+s|\(cached\))\tcoverage: ([\d.]+)% of statements")
_GO_TOTAL = re.compile(r"total:\s+\(statements\)\s+([\d.]+)%$")
_NODE = re.compile(r"(?:\u2139|#) all files +\| +([\d.]+) \| +([\d.]+) \|")
_PHP = re.compile(r"  Lines: +([\d.]+)% \( *(\d+)/ *(\d+)\)")
_SIMPLECOV = re.compile(r"(Line|Branch) [Cc]overage: ([\d.]+)% \((\d+) / (\d+)\)")
_LCOV = re.compile(r" *(lines|branches)\.+: ([\d.]+)% \((\d+) of (\d+) ")
_TARPAULIN = re.compile(r"([\d.]+)% coverage, (\d+)/(\d+) lines covered")
_COVERLET = re.compile(r"\| Total +\| ([\d.]+)% +\| ([\d.]+)%")
_PLAIN = re.compile(
    r" *(?:Total )?(Lines|Line coverage|Statements|Coverage|Total coverage) *: *([\d.]+) ?%", re.IGNORECASE
)


def find(lines: Lines) -> list[Coverage]:
    """What the most telling format that occurs says, once for every time it occurs."""
    text = "\n".join(lines)
    for hallmark, form in FORMATS:
        found = list(form(lines)) if hallmark in text else []
        if found:
            return found
    return []


def _table(lines: Lines) -> Iterator[Coverage]:
    """Istanbul's and Deno's table; its heading names the columns."""
    columns: list[str] = []
    for line in lines:
        if found := _HEADER.match(line):
            columns = [name.strip(" %").lower() for name in found[1].split("|")]
        elif (found := _TABLE.match(line)) and columns:
            row = dict(zip(columns, (percent(cell) for cell in found[1].split("|")), strict=False))
            share = row.get("lines") or row.get("line")
            if share:
                yield Coverage("Istanbul text", share, row.get("branch"))


def _summary(lines: Lines) -> Iterator[Coverage]:
    found: dict[str, Share] = {}
    for _, match in matches(lines, _SUMMARY):
        share = Share.of(int(match[3][:9]), int(match[4][:9]))
        if share:
            found[match[1]] = share
        if match[1] == "Lines" and "Lines" in found:
            yield Coverage("Istanbul text", found["Lines"], found.get("Branches"))
            found = {}


def _coverage_py(lines: Lines) -> Iterator[Coverage]:
    """With branches the printed percentage mixes them with lines, so it is computed from the columns."""
    for _, found in matches(lines, _TOTAL):
        columns = [int(cell[:9]) for cell in found[1].split()]
        share = Share.of(columns[0] - columns[1], columns[0]) if len(columns) in {2, 4} else None
        if share:
            yield Coverage("coverage.py text", share)


def _go(lines: Lines) -> Iterator[Coverage]:
    totals = [share for _, found in matches(lines, _GO_TOTAL) if (share := percent(found[1]))]
    packages = [share for _, found in matches(lines, _GO_PACKAGE) if (share := percent(found[1]))]
    for share in totals[-1:] or packages:
        yield Coverage("Go", share)


def _node(lines: Lines) -> Iterator[Coverage]:
    for _, found in matches(lines, _NODE):
        share = percent(found[1])
        if share:
            yield Coverage("node:test coverage", share, percent(found[2]))


def _counted(form: str, pattern: re.Pattern[str], group: int = 2) -> Callable[[Lines], Iterator[Coverage]]:
    """A format with one line that says `covered of valid`."""

    def read(lines: Lines) -> Iterator[Coverage]:
        for _, found in matches(lines, pattern):
            share = Share.of(int(found[group][:9]), int(found[group + 1][:9]))
            if share:
                yield Coverage(form, share)

    return read


def _kinds(form: str, pattern: re.Pattern[str]) -> Callable[[Lines], Iterator[Coverage]]:
    """A format with a line for lines, and right below it perhaps one for branches."""

    def read(lines: Lines) -> Iterator[Coverage]:
        for at, found in matches(lines, pattern):
            share = Share.of(int(found[3][:9]), int(found[4][:9]))
            if share and found[1].lower().startswith("line"):
                below = [pattern.match(line) for _, line in following(lines, at + 1, 2)]
                branch = next((match for match in below if match and match[1].lower().startswith("branch")), None)
                branches = Share.of(int(branch[3][:9]), int(branch[4][:9])) if branch else None
                yield Coverage(form, share, branches)

    return read


def _coverlet(lines: Lines) -> Iterator[Coverage]:
    for _, found in matches(lines, _COVERLET):
        share = percent(found[1])
        if share:
            yield Coverage("coverlet", share, percent(found[2]))


def _plain(lines: Lines) -> Iterator[Coverage]:
    """`Lines: 85%`, `Statements: 85%` or `Coverage: 85%`: the last of the most exact kind."""
    found: dict[str, Share] = {}
    for _, match in matches(lines, _PLAIN):
        share = percent(match[2])
        if share:
            found[match[1].lower()] = share
    for name in ("lines", "line coverage", "statements", "coverage", "total coverage"):
        if name in found:
            yield Coverage("text", found[name])
            return


FORMATS: tuple[tuple[str, Callable[[Lines], Iterator[Coverage]]], ...] = (
    ("All files", _table),
    ("% ( ", _summary),
    ("TOTAL ", _coverage_py),
    ("statements", _go),
    (" all files ", _node),
    ("  Lines: ", _counted("PHPUnit text", _PHP)),
    ("overage: ", _kinds("SimpleCov", _SIMPLECOV)),
    ("...: ", _kinds("lcov summary", _LCOV)),
    ("% coverage, ", _counted("tarpaulin", _TARPAULIN)),
    ("| Total", _coverlet),
    ("%", _plain),
)
"""The most exact first, each with the words without which it cannot be there."""
