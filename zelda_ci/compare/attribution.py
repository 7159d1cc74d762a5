"""The search for the part of a change that made a suite worse: what to take back next, and what that showed. Pure.

A hypothesis says how much of the change a session feels when some of its units are taken back. What sessions do with
and without it is not known: it is integrated out, with the trials of the comparison, which found the suite worse, as
data. After Flake Aware Culprit Finding (Google, ICST 2023), with sets of units instead of commits.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import exp, fsum, lgamma, log, pi, sqrt
from statistics import NormalDist
from typing import Literal

from zelda_ci.compare.sides import mean
from zelda_ci.domain.attribution import Suspicion

# How likely a unit must be before it is confirmed, and after; and two that are named together.
NAMED, CONFIRMED, BETWEEN = 0.85, 0.99, 0.90
SIDE_BY_SIDE = 4
CONFIRMING = 6
# What is not known by then, more sessions would hardly tell.
MAX_SESSIONS = 48

# How likely it is, before the search, that the comparison was wrong, that the cause lies elsewhere, and that of a
# measure it is the length.
CHANCE, ELSEWHERE, LENGTH = 0.4, 0.1, 0.2

# How much likelier by its data, as a logarithm, a change is than chance, where a comparison is just clear enough.
BORDERLINE = 3.5

Arm = frozenset[int]
"""The units that are taken back in a session."""
Trial = tuple[float, float]
"""Share of the change that a session felt, and its outcome."""


@dataclass(frozen=True)
class _Fit:
    evidence: float
    """Logarithm of the likelihood of all outcomes."""
    good: Callable[[float], float]
    """Chance that a session which feels a share of the change is like those of the base."""


@dataclass(frozen=True)
class _Hypothesis:
    kind: Literal["unit", "length", "none"]
    prior: float
    felt: Callable[[Arm], float]
    """Share of the change that a session feels without some units."""
    unit: int | None = None
    is_equal: bool = False
    """Whether there is no change to feel."""


class Search:
    """Says what to take back next, until it is known which unit it is, or that more sessions would not tell."""

    def __init__(
        self, units: int, *, base: Sequence[float], head: Sequence[float], lengths: Sequence[int] | None = None
    ) -> None:
        """Begin with the outcomes of the comparison.

        Of a criterion they are 100 or 0. Of a measure they are positive numbers, and `lengths` says how many characters
        each unit adds.
        """
        self.units = units
        self._compared: list[Trial] = [*((0.0, it) for it in base), *((1.0, it) for it in head)]
        midpoint = exp((mean([log(it) for it in base]) + mean([log(it) for it in head])) / 2) if lengths else 0.0
        self._fit = partial(_fit_measure, better_than=midpoint) if lengths else _fit_rates
        self._hypotheses = tuple(_suppose(units, lengths or ()))
        # The comparison was chosen for its outcome, and speaks for none of them.
        self._before = [self._fit(self._known(it), is_equal=it.is_equal).evidence for it in self._hypotheses]
        if not lengths:
            # Such a comparison is rarely wrong by chance, if it is clear.
            equal, changed = (_fit_rates(self._compared, is_equal=it).evidence for it in (True, False))
            self._before[-1] += max(0.0, changed - equal - BORDERLINE)
        self._sessions: list[tuple[Arm, float]] = []
        self._confirming: int | None = None
        self._confirmations: list[float] = []
        self._weigh()

    def next_arms(self, sessions: int = SIDE_BY_SIDE) -> tuple[Arm, ...]:
        """What to take back in the next sessions, which may run side by side; nothing where the search is over."""
        if self.verdict not in ("between", "undecided") or len(self._sessions) >= MAX_SESSIONS:
            return ()
        if self._confirming is not None and len(self._confirmations) < CONFIRMING:
            return (frozenset({self._confirming}),) * (CONFIRMING - len(self._confirmations))
        return tuple(self._plan(sessions))

    def observe(self, arms: Sequence[Arm], outcomes: Sequence[float | None]) -> None:
        """Learn from sessions; one without an outcome says nothing."""
        known = [(arm, it) for arm, it in zip(arms, outcomes, strict=True) if it is not None]
        self._sessions += known
        self._confirmations += [it for arm, it in known if arm == {self._confirming}]
        self._weigh()
        likeliest = self.suspicions()[0]
        is_named = likeliest.hypothesis == "unit" and likeliest.probability >= NAMED
        if not is_named or likeliest.unit != self._confirming:
            self._confirming, self._confirmations = likeliest.unit if is_named else None, []

    def suspicions(self) -> tuple[Suspicion, ...]:
        """How likely each hypothesis is by now, the likeliest first."""
        likely = dict[tuple[Literal["unit", "length", "none"], int | None], float]()
        for hypothesis, probability in zip(self._hypotheses, self._probabilities, strict=True):
            key = hypothesis.kind, hypothesis.unit
            likely[key] = likely.get(key, 0.0) + probability
        ordered = sorted(likely.items(), key=lambda it: -it[1])
        return tuple(Suspicion(hypothesis=kind, unit=unit, probability=it) for (kind, unit), it in ordered)

    @property
    def confirming(self) -> int | None:
        """The unit that sessions are to confirm, or have."""
        return self._confirming

    @property
    def verdict(self) -> Literal["named", "between", "length", "none", "only", "undecided"]:
        """What is known by now; only of `between` and `undecided` may more sessions know more."""
        if self.units == 1:
            return "only"
        first, second, *_ = self.suspicions()
        if first.hypothesis != "unit" and first.probability >= NAMED:
            return first.hypothesis
        if first.probability >= CONFIRMED and self._is_confirmed:
            return "named"
        both = first.hypothesis == second.hypothesis == "unit" and first.probability + second.probability >= BETWEEN
        return "between" if both else "undecided"

    @property
    def _is_confirmed(self) -> bool:
        """Whether sessions without the unit are nearer to the base than to the head: two units may do the same."""
        base, head = (mean([outcome for felt, outcome in self._compared if felt == side]) for side in (0.0, 1.0))
        seen = mean(self._confirmations) if len(self._confirmations) >= CONFIRMING else head
        return abs(seen - base) < abs(seen - head)

    def _known(self, hypothesis: _Hypothesis) -> list[Trial]:
        """Trials of the comparison that are data for a hypothesis; if it was wrong, they were an odd sample of both."""
        return [] if hypothesis.is_equal and self._fit is _fit_rates else self._compared

    def _weigh(self) -> None:
        """Fit each hypothesis to all outcomes, and say how likely it is by them."""
        self._fits = list[_Fit]()
        for hypothesis in self._hypotheses:
            sessions = [(hypothesis.felt(arm), outcome) for arm, outcome in self._sessions]
            self._fits.append(self._fit([*self._known(hypothesis), *sessions], is_equal=hypothesis.is_equal))
        gained = [fit.evidence - before for fit, before in zip(self._fits, self._before, strict=True)]
        most = max(gained)
        weights = [it.prior * exp(gain - most) for it, gain in zip(self._hypotheses, gained, strict=True)]
        self._probabilities = [weight / fsum(weights) for weight in weights]

    def _plan(self, sessions: int) -> Iterator[Arm]:
        """Choose arms one after the other, each so that all of them together leave the least uncertainty."""
        outlook = [self._probabilities]
        ordered = [it.unit for it in self.suspicions() if it.unit is not None]
        for _ in range(sessions):
            arm, after = frozenset[int](), self._after(outlook, frozenset())
            for unit in ordered:
                its_after = self._after(outlook, arm | {unit})
                if _doubt(its_after) < _doubt(after) - 1e-9:
                    arm, after = arm | {unit}, its_after
            outlook = after
            yield arm

    def _after(self, outlook: Sequence[Sequence[float]], arm: Arm) -> list[list[float]]:
        """The chances of hypotheses and outcomes together, with one session more that may be good or bad."""
        good = [fit.good(it.felt(arm)) for it, fit in zip(self._hypotheses, self._fits, strict=True)]
        return [
            [weight * (chance if is_good else 1 - chance) for weight, chance in zip(weights, good, strict=True)]
            for weights in outlook
            for is_good in (True, False)
        ]


def _suppose(units: int, lengths: Sequence[int]) -> Iterator[_Hypothesis]:
    total = sum(lengths)
    # Where the text got shorter, its length made nothing worse.
    length = LENGTH if total > 0 else 0.0
    for unit in range(units):
        prior = (1 - CHANCE - ELSEWHERE - length) / units
        yield _Hypothesis("unit", prior, partial(_share_without, unit), unit)
    if length:
        yield _Hypothesis("length", length, lambda arm: 1 - sum(lengths[unit] for unit in arm) / total)
    yield _Hypothesis("none", ELSEWHERE, lambda _: 1.0)
    yield _Hypothesis("none", CHANCE, lambda _: 0.0, is_equal=True)


def _share_without(unit: int, arm: Arm) -> float:
    return float(unit not in arm)


def _doubt(outlook: Iterable[Iterable[float]]) -> float:
    """Expected entropy of the hypotheses, over the outcomes."""
    total = 0.0
    for weights in outlook:
        some = [it for it in weights if it > 0]
        total -= sum(it * log(it) for it in some) - (every := sum(some)) * log(every)
    return total


# Rates that sessions may pass at, all equally likely beforehand.
_RATES = [(step + 0.5) / 20 for step in range(20)]
_EQUAL = [(rate, rate) for rate in _RATES]
_LOWER = [(rate, lower) for rate in _RATES for lower in _RATES if lower < rate]


def _fit_rates(trials: Sequence[Trial], *, is_equal: bool) -> _Fit:
    """Fit pass rates without the change and, lower, with it, or one for both, on a grid."""
    without, having = ([outcome for felt, outcome in trials if felt == side] for side in (0.0, 1.0))
    return _fit_counts((sum(without) / 100, len(without)), (sum(having) / 100, len(having)), is_equal=is_equal)


@lru_cache(maxsize=10_000)
def _fit_counts(without: tuple[float, int], having: tuple[float, int], *, is_equal: bool) -> _Fit:
    """Fit as `_fit_rates`, by how many passed of how many; many hypotheses say the same."""
    healthy, broken = (
        {rate: passed * log(rate) + (trials - passed) * log(1 - rate) for rate in _RATES}
        for passed, trials in (without, having)
    )
    pairs = _EQUAL if is_equal else _LOWER
    logarithms = [healthy[rate] + broken[lower] for rate, lower in pairs]
    most = max(logarithms)
    # A criterion that did not change is one that sessions mostly meet.
    priors = [3 * rate**2 if is_equal else 1 for rate, _ in pairs]
    weights = [exp(it - most) * prior for it, prior in zip(logarithms, priors, strict=True)]
    total = fsum(weights)
    rates = [fsum(map(float.__mul__, weights, side)) / total for side in zip(*pairs, strict=True)]
    return _Fit(most + log(total / len(pairs)), lambda felt: rates[felt > 0])


# Of logarithms, as if one value more had been seen: a measure that never varies proves nothing by itself.
SPREAD = 0.05


def _fit_measure(trials: Sequence[Trial], *, is_equal: bool, better_than: float) -> _Fit:
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
    return _Fit(evidence, lambda share: NormalDist(center + slope * (share - middle), spread).cdf(log(better_than)))
