"""The search for the part of a change that made a suite worse: what to take back next, and what that showed. Pure.

A hypothesis says how much of the change a session feels when some of its units are taken back. What sessions do with
and without it is not known: it is integrated out, with the trials of the comparison, which found the suite worse, as
data. After Flake Aware Culprit Finding (Google, ICST 2023), with sets of units instead of commits.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, combinations, groupby, pairwise
from math import exp, fsum, inf, lgamma, log, pi, sqrt
from operator import attrgetter, mul
from statistics import NormalDist, geometric_mean
from typing import Literal, NamedTuple

from zelda_ci.compare.sides import mean
from zelda_ci.domain.attribution import MAX_SESSIONS, Suspicion

# How likely must be: a unit to be confirmed, that it is none of them, a unit to be named, and two to be named together.
SUSPECTED, LIKELY, CONFIRMED, BETWEEN = 0.40, 0.80, 0.995, 0.90
SIDE_BY_SIDE, CONFIRMING = 4, 6
# How likely it is, of a comparison that found something, that it was wrong, that the cause lies elsewhere, that of
# a measure it is the length, and of a criterion two units that act only together, or each by itself.
CHANCE, ELSEWHERE, LENGTH, TOGETHER, EITHER = 0.25, 0.05, 0.2, 0.1, 0.03
# Hypotheses that are less likely, as a share of an average unit, do not matter for what is next.
NEGLIGIBLE = 0.01
# Rates that sessions may pass at, all equally likely beforehand.
_RATES = [(step + 0.5) / 20 for step in range(20)]
_PAIRS = len(_RATES) * (len(_RATES) - 1) / 2
# A criterion that did not change is one that sessions mostly meet.
_MOSTLY = [3 * rate**2 / len(_RATES) for rate in _RATES]
# Of logarithms, as if one value more had been seen: a measure that never varies proves nothing by itself.
SPREAD = 0.05

Kind = Literal["unit", "length", "none"]
Arm = frozenset[int]
"""The units that are taken back in a session."""
Trial = tuple[float, float]
"""Share of the change that a session felt, and its outcome."""


class Fit(NamedTuple):
    evidence: float
    """Logarithm of the likelihood of all outcomes."""
    good: Callable[[float], float]
    """Chance that a session which feels a share of the change is like those of the base."""


def fit_rates(trials: Sequence[Trial], *, is_equal: bool) -> Fit:
    """Fit pass rates without the change and, lower, with it, or one for both, on a grid."""
    without, having = ([outcome == 100 for felt, outcome in trials if felt == side] for side in (0.0, 1.0))
    return _fit_counts((sum(without), len(without)), (sum(having), len(having)), is_equal=is_equal)


@lru_cache(maxsize=10_000)
def _fit_counts(without: tuple[int, int], having: tuple[int, int], *, is_equal: bool) -> Fit:
    """Fit as `fit_rates`, by how many passed of how many; many hypotheses say the same."""
    sides = (without, having)
    healthy, broken = ([rate**passed * (1 - rate) ** (of - passed) for rate in _RATES] for passed, of in sides)
    # Of each rate without the change, those with it that are lower.
    partners = list(map(mul, broken, _MOSTLY)) if is_equal else [0.0, *accumulate(broken[:-1])]
    likely = list(map(mul, healthy, partners))
    total = fsum(likely)
    rate = lower = fsum(map(mul, likely, _RATES)) / total
    if not is_equal:
        lower = fsum(map(mul, healthy, accumulate(map(mul, broken[:-1], _RATES), initial=0.0))) / total
    return Fit(log(total if is_equal else total / _PAIRS), lambda felt: lower if felt else rate)


def fit_measure(trials: Sequence[Trial], *, is_equal: bool, better_than: float) -> Fit:
    """Fit logarithms of a measure that lie on a line over what was felt, or around one value, with unknown spread."""
    felt, values = [it for it, _ in trials], [log(it) for _, it in trials]
    n, center, middle = len(trials), mean(values), mean(felt)
    width = fsum((it - middle) ** 2 for it in felt)
    slope = 0.0 if is_equal else fsum((x - middle) * y for x, y in zip(felt, values, strict=True)) / width
    fitted = 1 if is_equal else 2
    rest = fsum((y - center - slope * (x - middle)) ** 2 for x, y in zip(felt, values, strict=True)) + SPREAD**2
    freedom = n - fitted + 1
    evidence = lgamma(freedom / 2) - freedom / 2 * log(pi * rest) - log(n * (1 if is_equal else width)) / 2
    spread = sqrt(rest / freedom)
    return Fit(evidence, lambda share: NormalDist(center + slope * (share - middle), spread).cdf(log(better_than)))


@dataclass(frozen=True)
class _Hypothesis:
    kind: Kind
    prior: float
    felt: Callable[[Arm], float]
    """Share of the change that a session feels without some units."""
    enough: tuple[int, ...] = ()
    """Units of which each, taken back by itself, is the end of it."""
    both: tuple[int, ...] = ()
    """Units of which none is enough, but all together."""
    is_equal: bool = False


class _Weighed(NamedTuple):
    answer: tuple[Kind, tuple[int, ...]]
    """Kind, and the units that it blames."""
    fit: Fit
    felt: Callable[[Arm], float]
    probability: float


class Search:
    """Says what to take back next, until it is known which unit it is, or that more sessions would not tell."""

    def __init__(
        self, units: int, *, base: Sequence[float], head: Sequence[float], lengths: Sequence[int] | None = None
    ) -> None:
        """Begin with the outcomes of the comparison: of a criterion 100 or 0, of a measure positive numbers."""
        # Of a measure, `lengths` says how many characters each unit adds.
        self.units = units
        self._compared: list[Trial] = [*((0.0, it) for it in base), *((1.0, it) for it in head)]
        self._levels = mean(base or [100.0]), mean(head)
        self._hypotheses = tuple(_suppose(units, lengths or ()))
        self._fit: Callable[..., Fit] = fit_rates
        if lengths:
            self._fit = partial(fit_measure, better_than=sqrt(geometric_mean(base) * geometric_mean(head)))
        # Somebody asks because the sides differ: that they do speaks against chance no more than `CHANCE` says.
        self._before = [self._fit(self._compared, is_equal=it).evidence for it in (False, True)]
        self._sessions: list[tuple[Arm, float]] = []
        self.confirming: int | None = None
        """The unit that sessions are to confirm, or have."""
        self.confirmations: list[float] = []
        self._weigh()

    def next_arms(self) -> tuple[Arm, ...]:
        """What to take back in the next sessions, which may run side by side; nothing where the search is over."""
        if self.verdict not in ("between", "undecided") or len(self._sessions) >= MAX_SESSIONS:
            return ()
        tried = len(self.confirmations)
        if self.confirming is not None and (tried < CONFIRMING or self.suspicions()[0].probability >= CONFIRMED):
            return (frozenset({self.confirming}),) * (CONFIRMING - tried % CONFIRMING)
        return tuple(self._plan())

    def observe(self, arms: Sequence[Arm], outcomes: Sequence[float | None]) -> None:
        """Learn from sessions; one without an outcome says nothing."""
        known = [(arm, it) for arm, it in zip(arms, outcomes, strict=True) if it is not None]
        self._sessions += known
        self.confirmations += [it for arm, it in known if arm == {self.confirming}]
        self._weigh()
        likeliest = self.suspicions()[0]
        is_named = likeliest.hypothesis == "unit" and likeliest.probability >= SUSPECTED
        if not is_named or likeliest.unit != self.confirming:
            self.confirming, self.confirmations = likeliest.unit if is_named else None, []

    def suspicions(self) -> tuple[Suspicion, ...]:
        """How likely each hypothesis is by now, the likeliest first."""
        likely = dict[tuple[Kind, int | None], float]()
        for (kind, units), *_, probability in self._weighed:
            for unit in units or (None,):
                likely[kind, unit] = likely.get((kind, unit), 0.0) + probability / (len(units) or 1)
        ordered = sorted(likely.items(), key=lambda it: -it[1])
        return tuple(Suspicion(hypothesis=kind, unit=unit, probability=it) for (kind, unit), it in ordered)

    @property
    def verdict(self) -> Literal["named", "between", "length", "none", "only", "undecided"]:
        """What is known by now; only of `between` and `undecided` may more sessions know more."""
        if self.units == 1:
            return "only"
        first, second, *_ = self.suspicions()
        if first.hypothesis != "unit" and first.probability >= LIKELY:
            return first.hypothesis
        if first.probability >= CONFIRMED and self._is_confirmed:
            return "named"
        both = first.hypothesis == second.hypothesis == "unit" and first.probability + second.probability >= BETWEEN
        return "between" if both else "undecided"

    @property
    def _is_confirmed(self) -> bool:
        """Whether sessions without the unit are nearer to the base than to the head: two units may do the same."""
        base, head = self._levels
        seen = mean(self.confirmations) if len(self.confirmations) >= CONFIRMING else head
        return abs(seen - base) < abs(seen - head)

    def _weigh(self) -> None:
        """Fit each hypothesis to all outcomes, and say how likely it is by them."""
        seen = (
            [*self._compared, *((it.felt(arm), outcome) for arm, outcome in self._sessions)] for it in self._hypotheses
        )
        fits = [self._fit(each, is_equal=it.is_equal) for it, each in zip(self._hypotheses, seen, strict=True)]
        gained = [fit.evidence - self._before[it.is_equal] for it, fit in zip(self._hypotheses, fits, strict=True)]
        weights = [it.prior * exp(gain - max(gained)) for it, gain in zip(self._hypotheses, gained, strict=True)]
        total, enough = fsum(weights), [0.0] * self.units
        for it, weight in zip(self._hypotheses, weights, strict=True):
            for unit in it.enough:
                enough[unit] += weight
        # Of two that act together, the likelier one is enough.
        blamed = (it.both or tuple(sorted(it.enough, key=enough.__getitem__)[-1:]) for it in self._hypotheses)
        self._weighed = [
            _Weighed((it.kind, units), fit, it.felt, weight / total)
            for it, units, fit, weight in zip(self._hypotheses, blamed, fits, weights, strict=True)
        ]

    def _plan(self) -> Iterator[Arm]:
        """Choose arms one after the other, each so that all of them together leave the least uncertainty."""
        counted = (it for it in self._weighed if it.probability * self.units >= NEGLIGIBLE)
        likely = sorted(counted, key=attrgetter("answer"))
        ends = [*accumulate((len([*group]) for _, group in groupby(likely, key=attrgetter("answer"))), initial=0)]
        outlook = [[it.probability for it in likely]]
        ordered = [it.unit for it in self.suspicions() if it.unit is not None]

        def after(arm: Arm) -> list[list[float]]:
            """The chances of hypotheses and outcomes together, with one session more that may be good or bad."""
            good = [it.fit.good(it.felt(arm)) for it in likely]
            both = good, [1 - it for it in good]
            return [[*map(mul, weights, chances)] for weights in outlook for chances in both]

        for _ in range(SIDE_BY_SIDE):
            arm, doubt = frozenset[int](), inf
            for more in (frozenset[int](), *(frozenset({it}) for it in ordered)):
                if (less := _doubt(after(arm | more), ends)) < doubt - 1e-9:
                    arm, doubt = arm | more, less
            outlook = after(arm)
            yield arm


def _suppose(units: int, lengths: Sequence[int]) -> Iterator[_Hypothesis]:
    total = sum(lengths)
    # Where the text got shorter, its length made nothing worse.
    length = LENGTH if total > 0 else 0.0
    pairs = [] if lengths else [*combinations(range(units), 2)]
    together, either = (TOGETHER, EITHER) if pairs else (0.0, 0.0)
    prior = 1 - CHANCE - ELSEWHERE - length - together - either
    for unit in range(units):
        yield _Hypothesis("unit", prior / units, frozenset({unit}).isdisjoint, (unit,))
    for pair in pairs:
        yield _Hypothesis("unit", together / len(pairs), frozenset(pair).isdisjoint, pair)
        yield _Hypothesis("unit", either / len(pairs), partial(_has_more, frozenset(pair)), both=pair)
    if length:
        yield _Hypothesis("length", length, lambda arm: 1 - sum(lengths[unit] for unit in arm) / total)
    yield _Hypothesis("none", ELSEWHERE, lambda _: 1.0)
    yield _Hypothesis("none", CHANCE, lambda _: 0.0, is_equal=True)


def _has_more(units: Arm, arm: Arm) -> bool:
    return not units <= arm


def _doubt(outlook: Iterable[Sequence[float]], ends: Sequence[int]) -> float:
    """Expected entropy of the answers, of which each has the hypotheses from one end to the next, over the outcomes."""
    total = 0.0
    for weights in outlook:
        some = [it for start, end in pairwise(ends) if (it := sum(weights[start:end])) > 0]
        total -= sum(it * log(it) for it in some) - (every := sum(some)) * log(every)
    return total
