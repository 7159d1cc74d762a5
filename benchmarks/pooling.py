"""Pooling stored trials: 200 suites with 200 trials each, from ten artifacts that overlap by half.

Usage: python -m benchmarks.pooling [SUITES TRIALS]
"""

import sys
from datetime import UTC, datetime, timedelta
from time import perf_counter

from zelda_ci.compare.pool import Reference, pool_of, summarize_pool
from zelda_ci.domain.fingerprint import Fingerprint
from zelda_ci.domain.run import RunResult, Versions
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import PoolSettings

NOW = datetime(2026, 11, 22, tzinfo=UTC)
OWN = Fingerprint(outcome="o", platform="p", tree="t")
SECONDS = 1.0
ARTIFACTS = 10


def trials(suites: int, count: int) -> list[RunResult]:
    """Stored trials; every third of other code."""
    versions = Versions(zelda="0", agent_sdk="0", python="3")
    other = OWN.replace(tree="else")
    configs = [ResolvedSuite(name=f"suite-{suite}", file="f", prompt="p") for suite in range(suites)]
    return [
        RunResult(
            run_id=f"{config.name}-{number}",
            batch_id=f"batch-{number // 3}",
            suite=config.name,
            status=SessionStatus.COMPLETED,
            started_at=NOW,
            finished_at=NOW - timedelta(minutes=number),
            versions=versions,
            config=config,
            fingerprint=OWN if number % 3 else other,
        )
        for config in configs
        for number in range(count)
    ]


def main() -> int:
    suites, count = map(int, sys.argv[1:] or ("200", "200"))
    runs = trials(suites, count)
    part = len(runs) // ARTIFACTS
    groups = [runs[start * part : (start + 2) * part] for start in range(ARTIFACTS)]
    settings = PoolSettings(max_trials=count)
    began = perf_counter()
    pool = pool_of(groups, lambda _: settings, NOW)
    names = dict.fromkeys(run.suite for run in runs)
    splits = [pool.split(name, Reference(OWN), OWN, settings) for name in names]
    summary = summarize_pool(run for split in splits for run in split.test)
    seconds = perf_counter() - began
    read = sum(map(len, groups))
    print(f"{read:,} trials of {len(names)} suites, {len(pool.trials):,} pooled: {seconds:.2f} s (at most {SECONDS} s)")
    assert summary
    assert len(pool.trials) == suites * count
    return 0 if seconds <= SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
