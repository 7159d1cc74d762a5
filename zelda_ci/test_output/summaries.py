"""Reads printed summaries by the table of grammars: counts are derived, checked against each other, and named."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import re2

from zelda_ci.test_output.grammars import GRAMMARS, Grammar, compiled
from zelda_ci.test_output.tally import MAX_LIST_LENGTH, Lines, Tally, first_names, matches, preceding
from zelda_ci.test_output.words import MAX_COUNT, counts_in, kind_of

_KINDS = {"t": "total", "r": "ran", "p": "passed", "f": "failed", "e": "errored", "s": "skipped"}
# A tick, a progress mark or a number: the line of a test, whose title may be anything.
_TITLE = re2.compile(
    r"^(?: {4,}|\d+ [Ss]cenarios? \(|\s*(?:"
    r"[\x{2713}\x{2714}\x{221a}\x{2717}\x{2716}\x{2718}\xd7\x{25cf}\x{2192}\x{25b6}\x{2139}+#>]"
    r"|[.FEsx*]+\d|ok \d|not ok \d|\d+[).]))"
)
Counts = Counter[str]


@cache
def _index() -> tuple[Any, list[tuple[int, bool]]]:
    """All lines of the table as one automaton, and which row (and whether its start) each belongs to."""
    automaton = re2.Set.MatchSet()
    owners: list[tuple[int, bool]] = []
    for number, grammar in enumerate(GRAMMARS):
        automaton.Add(compiled(grammar.line).pattern)
        owners.append((number, False))
        if grammar.start:
            automaton.Add(compiled(grammar.start).pattern)
            owners.append((number, True))
    automaton.Compile()
    return automaton, owners


def read_summaries(lines: Lines) -> Iterator[Tally]:
    """A tally for every summary that the table knows; and one for each run that began and never ended."""
    automaton, owners = _index()
    found: list[tuple[Grammar, Tally]] = []
    starts: dict[str, list[int]] = {}
    done = -1
    for index, line in enumerate(lines):
        rows = sorted(owners[number] for number in automaton.Match(line) or ())
        for number, begins in rows:
            if begins:
                begun = starts.setdefault(GRAMMARS[number].format, [])
                begun += [index] if index not in begun[-1:] else []
        read = next((entry for number, begins in rows if not begins and index > done
                     and (entry := _entry(GRAMMARS[number], lines, index, starts))), None)  # fmt: skip
        if read:
            found.append(read)
            done = read[1].last
    yield from _named(lines, _joined(found), starts)


def _entry(grammar: Grammar, lines: Lines, index: int, starts: Mapping[str, list[int]]) -> tuple[Grammar, Tally] | None:
    match = compiled(grammar.line).match(lines[index])
    if not match or (not grammar.certain and _TITLE.match(lines[index])):
        return None
    if grammar.above and not any(map(compiled(grammar.above).match, preceding(lines, index, 2))):
        return None
    # A line that only begins the block of others counts nothing itself.
    begins = (grammar.parts or grammar.below) and not compiled(grammar.line).groupindex
    counts = _counts(match) or (Counter() if begins else None)
    last = None if counts is None else _more(grammar, lines, index, counts)
    if counts is None or last is None:
        return None
    if compiled(grammar.start).groupindex and starts.get(grammar.format):
        counts["total"] = int(compiled(grammar.start).match(lines[starts[grammar.format][-1]])["t"])
    _complete(grammar, counts)
    if not grammar.certain and (bool(grammar.rows) != (last > index) or not _telling(counts)):
        return None
    tally = derive(grammar.format, counts)
    if tally is None:
        return None
    return grammar, replace(tally, first=index, last=last, head=index, certain=grammar.certain, holds=grammar.holds)


def _more(grammar: Grammar, lines: Lines, index: int, counts: Counts) -> int | None:
    """Add what the lines below say; the last of them, or None where the one that must be there is not."""
    last = index
    if grammar.below:
        last, line = next(_below(lines, index, 1), (index, ""))
        under = compiled(grammar.below).match(line)
        more = _counts(under) if under and compiled(grammar.below).groupindex else Counter()
        if not under or more is None:
            return None
        counts.update(more)
    if grammar.parts:
        return _parts(grammar, lines, last, counts)
    for end, line in _below(lines, last, grammar.rows):
        row = counts_in(line)
        if row is None or (not grammar.certain and counts.keys() & row.keys() - _SEVERAL):
            break
        counts.update(row)
        last = end
    return last


def _parts(grammar: Grammar, lines: Lines, first: int, counts: Counts) -> int:
    last = first
    for end in range(first + 1, min(len(lines), first + MAX_PARTS)):
        if compiled(grammar.line).match(lines[end]):
            break
        if part := compiled(grammar.parts).match(lines[end]):
            counts.update(_named_counts(part))
            last = end
    return last


# Kinds that labelled lines may count in several parts: time-outs and crashes, pending and disabled tests.
_SEVERAL = frozenset({"remark", "skipped", "errored"})
# Lines below an anchor in which its parts are looked for.
MAX_PARTS = 60


def _complete(grammar: Grammar, counts: Counts) -> None:
    """What the total says about the kind that no number names, and what it leaves out."""
    if grammar.outside:
        counts["total"] += counts[grammar.outside]
    known = counts["ran"] or counts["passed"] + counts["failed"] + counts["errored"] + counts["skipped"]
    if grammar.rest and not counts[grammar.rest] and "total" in counts:
        counts[grammar.rest] = max(0, counts["total"] - known) if counts["ran"] or grammar.rest != "skipped" else 0


def _below(lines: Lines, index: int, rows: int) -> Iterator[tuple[int, str]]:
    blank = 0
    for end in range(index + 1, min(len(lines), index + 1 + 2 * rows)):
        if lines[end].strip():
            blank = 0
            yield end, lines[end]
        elif (blank := blank + 1) > 1:
            return


def _counts(match: Any) -> Counts | None:
    groups = match.groupdict()
    if "l" not in groups and groups:
        return _named_counts(match)
    listed = counts_in(groups.get("l", match[0]) or "")
    # Words that are not understood make the whole line unknown; so does a list that begins with steps or files.
    if not listed or next(iter(listed)) == "remark":
        return None
    counts = Counter(listed)
    if groups.get("t"):
        counts["total"] = int(groups["t"])
    return counts


def _named_counts(match: Any) -> Counts:
    # What the shape of the line leaves room for, and is not there, is none.
    groups = match.groupdict()
    counts: Counts = Counter({_KINDS[name[0]]: 0 for name in groups if name[0] in "fes"})
    for name, text in groups.items():
        if text is not None:
            counts[_KINDS[name[0]]] += int(text) if text.isdecimal() else 0
    return counts


def _telling(counts: Counts) -> bool:
    """Whether counts without a runner's name say how tests ended."""
    whole = "total" in counts or "ran" in counts
    bad = bool(counts.keys() & {"failed", "errored"})
    return ("passed" in counts and (bad or "total" in counts)) or (whole and "failed" in counts)


def derive(form: str, counts: Counts) -> Tally | None:
    """A tally of counts that fit each other; None where they do not, or where none of them can be derived."""
    if any(count > MAX_COUNT for count in counts.values()):
        return None
    whole = counts.get("total", counts.get("ran"))
    failed, errored, skipped = counts["failed"], counts["errored"], counts["skipped"]
    if "ran" in counts and "total" in counts and counts["ran"] not in {counts["total"], counts["total"] - skipped}:
        return None
    if "passed" not in counts:
        # A total alone says nothing about how its tests ended.
        if whole is None or whole < failed + errored + skipped or not counts.keys() & {"failed", "errored"}:
            return None
        return Tally(form, whole - failed - errored - skipped, failed, errored, skipped)
    passed = counts["passed"]
    # Some leave what was skipped out of the total.
    if whole is not None and whole not in {passed + failed + errored + skipped, passed + failed + errored}:
        return None
    return Tally(form, passed, failed, errored, skipped)


def _joined(found: Sequence[tuple[Grammar, Tally]]) -> list[tuple[Grammar, Tally]]:
    """Without parts whose total stands below them, and without what was progress only."""
    kept: list[tuple[Grammar, Tally]] = []
    for grammar, tally in found:
        if grammar.repeat == "progress":
            kept = [item for item in kept if item[0].format != grammar.format or item[0].repeat != "progress"]
        elif grammar.repeat == "nested" or not grammar.certain:
            kept = _without_parts(kept, grammar, tally)
        kept.append((grammar, tally))
    return kept


def _without_parts(kept: list[tuple[Grammar, Tally]], grammar: Grammar, whole: Tally) -> list[tuple[Grammar, Tally]]:
    sums = (0, 0, 0, 0)
    for position in range(len(kept) - 1, -1, -1):
        other, part = kept[position]
        if other.format != grammar.format:
            break
        sums = (sums[0] + part.passed, sums[1] + part.failed, sums[2] + part.errored, sums[3] + part.skipped)
        # One part alone is the same as its total; without a runner's name it may be another run.
        if sums == (whole.passed, whole.failed, whole.errored, whole.skipped) and (
            grammar.certain or len(kept) - position > 1
        ):
            return kept[:position]
    return kept


def _named(lines: Lines, found: Sequence[tuple[Grammar, Tally]], starts: dict[str, list[int]]) -> Iterator[Tally]:
    previous: dict[str, int] = {}
    for grammar, tally in found:
        form = grammar.format
        after = previous.get(form, -1)
        begun = [start for start in starts.get(form, ()) if after < start <= tally.last]
        starts[form] = [start for start in starts.get(form, ()) if start > tally.last]
        previous[form] = tally.last
        first = begun[-1] if begun else after + 1
        listed = lines[tally.last if grammar.listed_below else first : tally.last + MAX_LIST_LENGTH]
        yield replace(_failures(listed, grammar, tally), first=first, proven=bool(begun))
        yield from (_unended(form, start) for start in begun[:-1])
    for form, open_starts in starts.items():
        yield from (_unended(form, start) for start in open_starts)


# Runners that print each test and no summary: their lines, with name and outcome.
_MARKS = (
    ("Nim unittest", r"^ *\[(?P<o>OK|FAILED|SKIPPED)\] (?P<n>\S.*)$"),
    ("bash_unit", r"^\s*Running (?P<n>\S+)\s*\.\.\. ?(?P<o>SUCCESS|FAILURE|SKIPPED)\b"),
    ("autopkgtest", r"^(?P<n>\w\S*) +(?P<o>PASS|FAIL|SKIP|FLAKY)(?: .*)?$"),
    ("Pants", r"^\W* (?P<n>\S+:\S+) (?P<o>succeeded|failed|skipped) in [\d.]+s"),
    ("cfn-guard", r"^(?P<o>PASS|FAIL|SKIP) (?P<n>(?:Expected )?Rule = .*)$"),
)

MARKED = frozenset(form for form, _ in _MARKS)


def read_marks(lines: Lines) -> Iterator[Tally]:
    """A tally of the lines of tests, for runners that end without a summary."""
    for form, line in _MARKS:
        tests = list(matches(lines, re2.compile(line)))
        outcomes = [(kind_of(match["o"]) or "errored", match["n"]) for _, match in tests]
        if outcomes and (len(outcomes) > 1 or outcomes[0][0] == "passed"):
            first, last = tests[0][0], tests[-1][0]
            yield Tally.of(form, outcomes, first=first, last=last, head=first, certain=False)


_HEADING = re2.compile(r"^Test Summary: +\|((?: +(?:Pass|Fail|Error|Broken|Total|Time))+)\s*$")
_JULIA = {"Pass": "passed", "Fail": "failed", "Error": "errored", "Broken": "skipped"}


def read_julia(lines: Lines) -> Iterator[Tally]:
    """One tally per table: the rows that are not indented, by the columns that its heading names."""
    for index, heading in matches(lines, _HEADING):
        columns = {word: heading[0].rindex(word) + len(word) for word in heading[1].split() if word in _JULIA}
        counts: Counts = Counter()
        last = index
        for row, line in _below(lines, index, MAX_LIST_LENGTH):
            if "|" not in line or _HEADING.match(line):
                break
            last = row
            if not line.startswith(" "):
                for word, end in columns.items():
                    number = line[:end].rpartition(" ")[2]
                    counts[_JULIA[word]] += int(number) if number.isdecimal() and len(number) < 10 else 0
        if counts:
            yield Tally(
                "Julia",
                counts["passed"],
                counts["failed"],
                counts["errored"],
                counts["skipped"],
                first=index,
                last=last,
            )


def _unended(form: str, start: int) -> Tally:
    return Tally(form, first=start, last=start, head=start, doubt=f"a run of {form} began and did not end")


def _failures(lines: Lines, grammar: Grammar, tally: Tally) -> Tally:
    """With the names of failing tests, which count where the summary counts assertions."""
    if not (grammar.names or grammar.by_names) or not tally.failed + tally.errored:
        return tally
    found = map(re2.compile(grammar.names).search, lines) if grammar.names else ()
    names = dict.fromkeys(match[1] for match in found if match)
    if grammar.by_names:
        total = tally.total
        if not names and tally.failed == 1:
            return tally
        if not names or len(names) > total:
            return replace(tally, doubt=f"{grammar.format} counts failed assertions, and their tests are not named")
        return replace(
            tally, passed=total - len(names) - tally.skipped, failed=len(names), errored=0, failures=first_names(names)
        )
    # What else is listed in the same way, pending tests say, stands below the failures.
    return replace(tally, failures=first_names(names)[: tally.failed + tally.errored])
