"""Pieces of sentences about suites, sides and sessions that headline, causes and table have in common."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import MeasureDelta, PoolSummary, TrialStatistics
from zelda_ci.domain.measures import MEASURES
from zelda_ci.domain.outcome import Outcome, correctness_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.report.model import Cell, Line
from zelda_ci.report.text import sentence, visible, written

MAX_NAMED = 3
MAX_NAME_LENGTH = 60


def line(words: str, *parts: str | Cell | Line) -> Line:
    """Our own words, with what comes from elsewhere, as one line, or is more than words in the place of each `{}`."""
    first, *rest = words.split("{}")
    pieces = [Cell(first)]
    for part, following in zip(parts, rest, strict=True):
        pieces += [Cell(sentence(part))] if isinstance(part, str) else [part] if isinstance(part, Cell) else part
        pieces.append(Cell(following))
    return tuple(piece for piece in pieces if piece.text)


def name(suite: str) -> Cell:
    """A suite's, in bold."""
    return Cell(visible(suite, MAX_NAME_LENGTH), bold=True)


def key(setting: str) -> Cell:
    """A key of the configuration, or another name that is typed as it is."""
    return Cell(visible(setting, MAX_NAME_LENGTH), whole=True)


def listed(items: Sequence[Cell | Line], most: int = MAX_NAMED, noun: str = "") -> Line:
    """`a, b and c`, or `a, b, c and 3 more`, of which the noun says what they are."""
    shown = [*items[:most]]
    if more := len(items) - len(shown):
        shown.append(Cell(numbers.format_count(more, f"more {noun}") if noun else f"{numbers.whole(more)} more"))
    *first, last = shown
    return line("{} and {}", join(first, ", "), last) if first else line("{}", last)


def join(lines: Iterable[Cell | Line], between: str) -> Line:
    lines = tuple(lines)
    return line(between.join("{}" for _ in lines), *lines)


TOOL = re.compile(r"(Skill|Agent)\((.+)\)", re.DOTALL)


def tool_words(tool: str) -> tuple[str, str]:
    """What a tool is, and its name: `Skill(changelog)` is the skill changelog."""
    if found := TOOL.fullmatch(tool):
        return {"Skill": "the skill", "Agent": "the sub-agent"}[found[1]], found[2]
    return "the tool", tool


def capital(words: str) -> str:
    """As a sentence of its own."""
    words = words.strip()
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith('.') else '.'}"


def verb(subjects: Sequence[object], one: str, many: str) -> str:
    """The form that agrees with how many do it."""
    return one if len(subjects) == 1 else many


def quoted(words: str, limit: int) -> str:
    return f"\u201c{sentence(words, limit)}\u201d"


def passed(statistics: TrialStatistics) -> int:
    """Of a pass rate, the sessions in which it was met."""
    return round(statistics.mean * statistics.trials / 100)


def interval_words(interval: tuple[float, float], write: Callable[[float], str], better: str = "higher") -> str:
    """`between 51 points worse and 11 points better`: the ends of an interval of a change, each without its sign."""
    low, high = interval if better == "higher" else (-interval[1], -interval[0])
    if low < 0 < high:
        return f"between {write(-low)} worse and {write(high)} better"
    least, most = sorted((abs(low), abs(high)))
    first = write(least).removesuffix(" points")
    return f"between {first} and {write(most)} {'worse' if low < 0 else 'better'}"


def points(value: float) -> str:
    """`51 points`, of a pass rate."""
    return f"{value:.0f} points"


def change_words(delta: MeasureDelta) -> str:
    """`cost went from $0.18 to $0.31`: in the number's own unit; a score is in points of 100."""
    spec = MEASURES[delta.measure]
    sides = [written(spec.unit.write, side.mean) for side in (delta.baseline, delta.candidate) if side]
    return f"{spec.label} went from {' to '.join(sides)}{' points of 100' if spec.limit else ''}"


def commit_name(branch: str | None, commit: str | None) -> str:
    """`main@abc1234`."""
    return "@".join(filter(None, (visible(branch or "", 100), visible((commit or "")[:7]))))


def age_words(age: timedelta) -> str:
    """Like `2 days old`: in the largest unit of which there are two or more."""
    seconds = age.total_seconds()
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{numbers.format_count(int(seconds // size), unit)} old"
    return "just stored"


def pool_words(pool: PoolSummary, now: datetime) -> str:
    """`20 trials from 6 runs, newest 14 hours old`."""
    one = pool.per_suite == pool.trials
    count = numbers.format_count(pool.trials, "trial") if one else f"up to {pool.per_suite} trials per suite"
    return f"{count} from {numbers.format_count(pool.runs, 'run')}, newest {age_words(now - pool.newest_at)}"


def measured_words(runs: Iterable[RunResult]) -> str:
    """Words for runs that only measured: tests that were there before do not say that the task is done."""
    return "your tests pass" if Outcome.PASSED in map(correctness_outcome, runs) else "nothing was checked"


def measured(runs: Iterable[RunResult]) -> str:
    """What is known where no suite has criteria."""
    return f"The suites are measured: none has criteria, and {measured_words(runs)}."
