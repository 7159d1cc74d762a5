"""Outputs that no reader was written for: how many are read, and that nothing false is stated about the others."""

from collections import Counter

import pytest

from tests.support.cases import for_each
from tests.support.runner_samples import TRAPS, Half, Sample, Verdict, samples

SAMPLES = samples()

# What is reached so far. It may only get better: lower a limit, or raise the share, with every reader that improves it.
MAX_FALSE_GREENS: dict[Half, int] = {"development": 0, "hold-out": 0}
MAX_WRONG: dict[Half, int] = {"development": 0, "hold-out": 0}
MIN_SHARE_RIGHT: dict[Half, float] = {"development": 261 / 264, "hold-out": 274 / 296}
MAX_BYTES = 600_000


def verdict(sample: Sample) -> Verdict:
    try:
        return sample.verdict(sample.read())
    except (TypeError, ValueError, OverflowError):
        return Verdict.WRONG  # a reader that breaks off has nothing to state


@pytest.mark.parametrize("half", ["development", "hold-out"])
def test_what_is_read_and_stated_of_unseen_output_gets_no_worse(half: Half) -> None:
    found = {sample: verdict(sample) for sample in SAMPLES if sample.half == half}
    counts = Counter(found.values())
    assert counts[Verdict.FALSE_GREEN] <= MAX_FALSE_GREENS[half]
    assert counts[Verdict.WRONG] <= MAX_WRONG[half]
    read = [made for sample, made in found.items() if sample.runner != TRAPS]
    assert read.count(Verdict.RIGHT) / len(read) >= MIN_SHARE_RIGHT[half]


def test_the_samples_are_many_and_small() -> None:
    assert len({sample.runner for sample in SAMPLES}) >= 130
    assert sum(sample.runner == TRAPS for sample in SAMPLES) >= 60
    kept = sum(len(sample.output) + sum(len(report.raw) for report in sample.reports) for sample in SAMPLES)
    assert kept < MAX_BYTES


def test_each_half_has_its_share() -> None:
    halves = Counter(sample.half for sample in SAMPLES)
    assert min(halves.values()) / len(SAMPLES) > 0.4


@for_each(SAMPLES)
def test_a_sample_says_what_may_be_stated_of_it(sample: Sample) -> None:
    assert set(sample.expected) <= {"exit_code", "counts", "may_state", "green", "coverage"}
    assert sample.allowed or sample.expected["counts"] in {"unknown", "none"}
    # Green is what ended well, ran a test if it counted any, and lost none.
    lost = [counts for counts in sample.allowed if counts.lost or not counts.passed]
    assert not sample.green or (sample.exit_code == 0 and not lost)
