"""Pieces of sentences about suites, sides and sessions that headline, causes and table have in common."""

from collections.abc import Callable, Iterable, Sequence

from zelda_ci.domain import numbers
from zelda_ci.domain.ci import CiReport
from zelda_ci.domain.comparison import MeasureDelta, TrialStatistics
from zelda_ci.domain.measure_spec import written
from zelda_ci.domain.measures import MEASURES
from zelda_ci.report.model import Line, Phrase
from zelda_ci.report.text import sentence, visible

MAX_NAMED = 3
MAX_NAME_LENGTH = 60
MAX_BRANCH_LENGTH = 80


def text(words: str) -> Phrase:
    """Plain words."""
    return Phrase(words)


def name(suite: str) -> Phrase:
    """A suite's, in bold."""
    return Phrase(visible(suite, MAX_NAME_LENGTH), bold=True)


def key(setting: str) -> Phrase:
    """A key of the configuration, or another name that is typed as it is."""
    return Phrase(visible(setting, MAX_NAME_LENGTH), whole=True)


def names(suites: Sequence[str]) -> Line:
    """`**a**, **b** and 3 more`."""
    shown: list[Phrase] = []
    more = len(suites) - MAX_NAMED
    for place, suite in enumerate(suites[:MAX_NAMED]):
        is_last = more <= 0 and place == len(suites) - 1
        shown += [text(" and " if is_last else ", ")] * bool(place) + [name(suite)]
    return (*shown, text(f" and {numbers.whole(more)} more")) if more > 0 else tuple(shown)


def base(report: CiReport) -> Phrase:
    """What the results are compared with, as people call it."""
    branch = report.baseline.branch
    return Phrase(visible(branch, MAX_BRANCH_LENGTH), whole=True) if branch else Phrase("the base")


def joined(lines: Iterable[Line], between: str) -> Line:
    """Several lines as one."""
    pieces: list[Phrase] = []
    for line in lines:
        pieces += [text(between)] * bool(pieces) + list(line)
    return tuple(pieces)


def quoted(words: str, limit: int) -> str:
    """Somebody else's words."""
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
    return f"between {write(least)} and {write(most)} {'worse' if low < 0 else 'better'}"


def points(value: float) -> str:
    """`51 points`, of a pass rate."""
    return f"{value:.0f} points"


def change_words(delta: MeasureDelta) -> str:
    """`cost went from $0.18 to $0.31`: in the number's own unit; a score is in points of 100."""
    spec = MEASURES[delta.measure]
    sides = [written(spec.write, side.mean) for side in (delta.baseline, delta.candidate) if side]
    return f"{spec.label} went from {' to '.join(sides)}{' points of 100' if spec.limit else ''}"
