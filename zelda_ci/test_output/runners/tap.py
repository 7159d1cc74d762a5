"""The Test Anything Protocol, versions 12 to 14, with subtests."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import re2

from zelda_ci.test_output.tally import GAP, Lines, Tally

# A test, or what Testem writes for a skipped one.
_TEST = re2.compile(r"( *)(not )?ok(?: (\d{1,9}))?(?: -)?( .*)?$|skip (\d{1,9}) .*$")
# What ends a test's name: a directive or a time.
_MARK = re2.compile(r"(?i)(?:^|[^\\])(# *(?:(todo|skip)|time=))")
_PLAN = re2.compile(r"1\.\.(\d{1,9})(?: *#.*)?$")
_VERSION = re2.compile(r"TAP version 1[234]$")
_SUBTEST = re2.compile(r"( *)# Subtest: (.*)$")
_COUNT = re2.compile(r"# (tests|pass|fail|cancelled|skipped|skip|todo) +(\d{1,9})$")
_MAX_DEPTH = 40


@dataclass
class _Level:
    """One depth of subtests: its last number, whether a test failed, and its title."""

    last: int = 0
    failed: bool = False
    title: str = ""


@dataclass
class _Document:
    first: int
    last: int
    plan: int | None = None
    plan_line: int = -1
    levels: list[_Level] = field(default_factory=lambda: [_Level()])
    outcomes: list[tuple[str, str]] = field(default_factory=list)
    comments: Counter[str] = field(default_factory=Counter[str])
    gap: int | None = None
    version: bool = False
    bailed: bool = False

    def ends_before(self, line: str) -> bool:
        """Whether a line can only belong to the next document."""
        if _VERSION.match(line):
            return bool(self.outcomes or self.plan is not None)
        if self.plan is None or self.levels[0].last < self.plan or not (self.outcomes or self.plan == 0):
            return False
        match = _TEST.match(line)
        return line.startswith("1..") or bool(match and not match[1] and match[3] == "1" and self.levels[0].last)

    def feed(self, index: int, line: str) -> None:
        """Take in a line, if it says something."""
        if line == GAP or self.bailed:
            self.gap = index if line == GAP else self.gap
        elif match := _TEST.match(line):
            # Four blanks per level of subtests; anything else is printed by a test.
            depth, odd = divmod(len(match[1] or ""), 4)
            if not odd and depth <= _MAX_DEPTH:
                self._test(index, depth, match)
        elif match := _PLAN.match(line):
            if self.plan is None:
                self.plan, self.plan_line, self.last = int(match[1]), index, index
        elif match := _COUNT.match(line):
            self.comments[match[1]] = int(match[2])
            self.last = index
        elif match := _SUBTEST.match(line):
            self._level(min(len(match[1]) // 4 + 1, _MAX_DEPTH)).title = match[2]
        elif line.startswith("Bail out!"):
            self.last, self.bailed = index, True

    def _level(self, depth: int) -> _Level:
        self.levels += [_Level() for _ in range(depth + 1 - len(self.levels))]
        return self.levels[depth]

    def _test(self, index: int, depth: int, match: Any) -> None:
        level, rest, number = self._level(depth), match[4] or "", match[3] or match[5]
        if number and int(number) != level.last + 1:
            return  # out of sequence: something that a test printed
        level.last, self.last = level.last + 1, index
        marks = list(_MARK.finditer(rest))
        skipped = match[5] or any(mark[2] for mark in marks)
        failed = bool(match[2]) and not skipped
        deeper = self._level(depth + 1)
        # Subtests count themselves, and their parent only where it failed on its own.
        if not deeper.last or (failed and not deeper.failed):
            name = (rest[: marks[0].start(1)] if marks else rest).strip() or number or ""
            titles = [one.title for one in self.levels[1 : depth + 1] if one.title]
            kind = "skipped" if skipped else "failed" if failed else "passed"
            self.outcomes.append((kind, " > ".join([*titles, name])))
        level.failed = level.failed or failed
        del self.levels[depth + 1 :]

    def tally(self) -> Tally | None:
        if not (self.plan == 0 or (self.outcomes and (self.version or self.plan is not None))):
            return None
        missing = max(int(self.bailed), (self.plan or 0) - self.levels[0].last)
        doubt = "" if self.plan is not None or self.bailed else "a TAP stream ends without its plan"
        whole = replace(
            Tally.of("TAP", self.outcomes, first=self.first, last=self.last, proven=True, doubt=doubt), errored=missing
        )
        if self.gap is None or self.gap > self.last:
            return whole
        # Test lines are missing, so only the closing comments can tell, and only if the plan says the same.
        counts = self.comments
        skipped = (counts["skipped"] or counts["skip"]) + counts["todo"]
        total = counts["pass"] + counts["fail"] + counts["cancelled"] + skipped
        return Tally(
            "TAP", counts["pass"], counts["fail"], counts["cancelled"], skipped,
            failures=whole.failures, first=self.first, last=self.last,
            complete=self.plan_line < self.gap and self.plan == total and "tests" in counts,
        )  # fmt: skip


def read_tap(lines: Lines) -> Iterator[Tally]:
    """One tally per document; subtests count themselves, and their parent only where it failed on its own."""
    document: _Document | None = None
    yaml: int | None = None
    for index, line in enumerate(lines):
        stripped = line.strip(" ")
        indent = len(line) - len(line.lstrip(" "))
        if yaml is not None:
            # A block of details, which stands right under its test.
            ended = stripped == "..."
            yaml = None if ended or (stripped and indent < yaml) else yaml
            if yaml is not None or ended:
                continue
        if stripped == "---" and document and indent % 4 == 2 and document.last == index - 1:
            yaml = indent
        elif stripped and stripped[0] in "onT1#Bs\0":
            if document and document.ends_before(line):
                yield from filter(None, [document.tally()])
                document = None
            if document is None and (_TEST.match(line) or _PLAN.match(line) or _VERSION.match(line)):
                document = _Document(index, index, version=line.startswith("TAP"))
            if document:
                document.feed(index, line)
    yield from filter(None, [document.tally()] if document else [])
