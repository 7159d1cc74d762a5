"""The Test Anything Protocol, versions 12 to 14, with subtests; and runners of shell tests."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import re2

from zelda_ci.test_output.tally import GAP, Lines, Tally, first_names, matches, number

_TEST = re2.compile(r"( *)(not )?ok(?: (\d{1,9}))?(?: -)?( .*)?$")
_DIRECTIVE = re2.compile(r"(?i)(?:^|[^\\])(# *(?:todo|skip))")
_TIME = re2.compile(r"(?:^|[^\\])(# time=)")
_PLAN = re2.compile(r"( *)1\.\.(\d{1,9})(?: *#.*)?$")
_VERSION = re2.compile(r"TAP version 1[234]$")
# Testem writes skipped tests so.
_SKIPPED_TEST = re2.compile(r"skip \d+ ")
_SUBTEST = re2.compile(r" *# Subtest: (.*)$")
_COUNT = re2.compile(r"# (tests|pass|fail|cancelled|skipped|skip|todo) +(\d{1,9})$")
_MAX_DEPTH = 40
# First characters of lines that mean something.
_FIRST_CHARACTERS = "onT1#B-s" + GAP[0]


@dataclass
class _Level:
    """One depth of subtests: how far its numbers are, and what its finished children were."""

    last: int = 0
    children: int = 0
    child_failed: bool = False
    title: str = ""


@dataclass
class _Document:
    first: int
    last: int
    plan: int | None = None
    plan_line: int = -1
    levels: list[_Level] = field(default_factory=lambda: [_Level()])
    outcomes: list[tuple[str, str]] = field(default_factory=list)
    comments: dict[str, int] = field(default_factory=dict)
    gap: int | None = None
    version: bool = False
    bailed: bool = False

    @property
    def is_tap(self) -> bool:
        return (bool(self.outcomes) and (self.version or self.plan is not None)) or self.plan == 0

    @property
    def finished(self) -> bool:
        return self.plan is not None and self.levels[0].last >= self.plan and bool(self.outcomes or self.plan == 0)


def read_tap(lines: Lines) -> Iterable[Tally]:
    """One tally per document; subtests count themselves, and their parent only where it failed on its own."""
    document: _Document | None = None
    yaml: int | None = None
    for index, line in enumerate(map(_as_test, lines)):
        stripped = line.lstrip(" ")
        if yaml is not None:
            ended = stripped.rstrip() == "..."
            yaml = None if ended or (stripped and len(line) - len(stripped) < yaml) else yaml
            if yaml is not None or ended:
                continue
        if not stripped or stripped[0] not in _FIRST_CHARACTERS:
            continue
        if stripped.rstrip() == "---":
            yaml = _yaml(document, index, len(line) - len(stripped))
            continue
        if document and _begins(document, line):
            yield from _tallies(document)
            document = None
        document = _feed(document, index, line)
    yield from _tallies(document)


def _as_test(line: str) -> str:
    return f"ok{line[4:]} # SKIP" if line.startswith("skip ") and _SKIPPED_TEST.match(line) else line


def _yaml(document: _Document | None, index: int, indent: int) -> int | None:
    """The indent of a block of details, which stands right under its test."""
    return indent if document and indent % 4 == 2 and document.last == index - 1 else None


def _begins(document: _Document, line: str) -> bool:
    """Whether a line can only belong to the next document."""
    if line.startswith("TAP version"):
        return bool(document.outcomes or document.plan is not None)
    if not document.finished:
        return False
    match = _TEST.match(line)
    return line.startswith("1..") or bool(match and not match[1] and match[3] == "1" and document.levels[0].last)


def _feed(document: _Document | None, index: int, line: str) -> _Document | None:
    if document and (line == GAP or document.bailed):
        document.gap = index if line == GAP else document.gap
        return document
    stripped = line.lstrip(" ")
    if stripped.startswith(("ok", "not ok")):
        return _test(document, index, line)
    if stripped.startswith("1.."):
        return _plan(document, index, line)
    if line.startswith("TAP version") and _VERSION.match(line):
        return _Document(index, index, version=True)
    if document and stripped.startswith("#"):
        _comment(document, index, line)
    elif document and line.startswith("Bail out!"):
        document.last, document.bailed = index, True
    return document


def _test(document: _Document | None, index: int, line: str) -> _Document | None:
    match = _TEST.match(line)
    # Four blanks per level of subtests; anything else is printed by a test.
    depth, odd = divmod(len(match[1]), 4) if match else (0, 1)
    if not match or odd or depth > _MAX_DEPTH:
        return document
    document = document or _Document(index, index)
    while len(document.levels) <= depth:
        document.levels.append(_Level())
    level = document.levels[depth]
    if match[3] and int(match[3]) != level.last + 1:
        return document  # out of sequence: something that a test printed
    level.last += 1
    document.last = index
    _record(document, depth, match)
    return document


def _record(document: _Document, depth: int, match: Any) -> None:
    deeper = document.levels[depth + 1] if len(document.levels) > depth + 1 else _Level()
    del document.levels[depth + 1 :]
    rest = match[4] or ""
    directive, time = _DIRECTIVE.search(rest), _TIME.search(rest)
    name = rest[: min(mark.start(1) if mark else len(rest) for mark in (directive, time))].strip() or match[3] or ""
    failed = bool(match[2]) and not directive
    if not deeper.last or (failed and not deeper.child_failed):
        titles = [level.title for level in document.levels[1 : depth + 1]]
        kind = "skipped" if directive else "failed" if failed else "passed"
        document.outcomes.append((kind, " > ".join([*filter(None, titles), name])))
    level = document.levels[depth]
    level.child_failed = level.child_failed or failed


def _plan(document: _Document | None, index: int, line: str) -> _Document | None:
    match = _PLAN.match(line)
    if match and not match[1]:
        document = document or _Document(index, index)
        if document.plan is None:
            document.plan, document.plan_line, document.last = int(match[2]), index, index
    return document


def _comment(document: _Document, index: int, line: str) -> None:
    if match := _COUNT.match(line):
        document.comments[match[1]] = int(match[2])
        document.last = index
    elif match := _SUBTEST.match(line):
        depth = (len(line) - len(line.lstrip(" "))) // 4 + 1
        while len(document.levels) <= depth <= _MAX_DEPTH:
            document.levels.append(_Level())
        if depth < len(document.levels):
            document.levels[depth].title = match[1]


def _tallies(document: _Document | None) -> Iterator[Tally]:
    if document is None or not document.is_tap:
        return
    if document.gap is not None and document.gap < document.last:
        yield from _across_gap(document)
        return
    missing = max(int(document.bailed), (document.plan or 0) - document.levels[0].last)
    doubt = "" if document.plan is not None or document.bailed else "a TAP stream ends without its plan"
    span = {"first": document.first, "last": document.last}
    yield replace(Tally.of("TAP", document.outcomes, **span, proven=True, doubt=doubt), errored=missing)


def _across_gap(document: _Document) -> Iterator[Tally]:
    """Test lines are missing, so only the closing comments can tell, and only if the plan says the same."""
    counts = document.comments
    if {"tests", "pass", "fail"} <= counts.keys():
        skipped = counts.get("skipped", counts.get("skip", 0)) + counts.get("todo", 0)
        names = first_names(name for kind, name in document.outcomes if kind == "failed")
        early = document.plan if document.gap is not None and document.plan_line < document.gap else None
        yield Tally(
            "TAP", counts["pass"], counts["fail"], counts.get("cancelled", 0), skipped, failures=names,
            first=document.first, last=document.last, announced=early,
        )  # fmt: skip
    else:
        yield Tally("TAP", first=document.first, last=document.last)


_BATS = re2.compile(r"(\d+) tests?, (\d+) failures?(?:, (\d+) not run)?(?:, (\d+) skipped)?(?: in [\d.]+ seconds?)?$")
_BATS_NAME = re2.compile(r" \x{2717} (\S.*?)(?: \[\d+\])?$")
_BATS_CHECK = re2.compile(r" [\x{2713}\x{2717}] ")

_FILES = re2.compile(r"Files=(\d+), Tests=(\d+), ")
_VERDICT = re2.compile(r"Result: (?:PASS|FAIL|NOTESTS)$")
_SCRIPT = re2.compile(r"(\S+) +\(Wstat: \d+.* Tests: (\d+) Failed: (\d+)\)$")
_NUMBERS = re2.compile(r"  Failed tests?: +([\d, -]+)$")
_SHELL_PLAN = re2.compile(r".*Bad plan\.  You planned (\d+) tests? but ran (\d+)\.")
_DOTTED = re2.compile(r"(\S+) \.{2,} ?(?:(?:ok|skipped|Failed|Dubious|All|No subtests|\d+/\d+)\b.*)?$")
_SKIPPED = re2.compile(r" *ok \d+.*# (?:skip|SKIP)\b")


def read_bats(lines: Lines) -> Iterable[Tally]:
    """One tally per closing line that ticked tests stand above."""
    start = ticks = 0
    for index, line in enumerate(lines):
        ticks += line[:1] == " " and bool(_BATS_CHECK.match(line))
        match = _BATS.match(line) if " failure" in line else None
        if not match:
            continue
        failed, missing, skipped = number(match, 2), number(match, 3), number(match, 4)
        if ticks == number(match, 1) - skipped - missing:
            names = (name[1] for _, name in matches(lines[start:index], _BATS_NAME))
            yield Tally(
                "Bats", max(0, number(match, 1) - failed - missing - skipped), failed, missing, skipped,
                failures=first_names(names), first=start, last=index,
            )  # fmt: skip
            start, ticks = index + 1, 0


def read_prove(lines: Lines) -> Iterable[Tally]:
    """One tally per `Files=…, Tests=…` with its verdict; a test that was planned and never ran is an error."""
    start = 0
    for index, match in matches(lines, _FILES):
        if index + 1 < len(lines) and _VERDICT.match(lines[index + 1]):
            first = _first_script(lines, start, index, number(match, 1))
            yield _prove(lines[first:index], first, index + 1, number(match, 2))
            start = index + 2


def _first_script(lines: Lines, start: int, end: int, files: int) -> int:
    """The line of the first of so many scripts; lines before it are another runner's, for progress has dots as well."""
    scripts: dict[str, int] = {}
    for index, match in reversed(list(matches(lines[start:end], _DOTTED))):
        if match[1] not in scripts and len(scripts) == files:
            break
        scripts[match[1]] = start + index
    return min(scripts.values(), default=end)


def _prove(within: Lines, first: int, last: int, total: int) -> Tally:
    failed = sum(number(match, 3) for _, match in matches(within, _SCRIPT))
    missing = sum(max(0, number(match, 1) - number(match, 2)) for _, match in matches(within, _SHELL_PLAN))
    skipped = sum(1 for _ in matches(within, _SKIPPED))
    return Tally(
        "prove", max(0, total - failed - skipped), failed, missing, skipped,
        failures=first_names(_prove_names(within)), first=first, last=last, quotes=True,
    )  # fmt: skip


def _prove_names(lines: Lines) -> Iterator[str]:
    script = ""
    for line in lines:
        if match := _SCRIPT.match(line):
            script = match[1]
        elif script and (match := _NUMBERS.match(line)):
            yield f"{script} {match[1]}"
