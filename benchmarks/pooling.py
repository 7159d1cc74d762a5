"""Pooling stored trials: 200 suites with 200 trials each, from ten artifacts that overlap by half.

They are of ten states, each with another text of a skill that no suite calls.

Usage: python -m benchmarks.pooling [SUITES TRIALS]
"""

import sys
from datetime import UTC, datetime, timedelta
from time import process_time

from zelda_ci.compare.pool import pool_of, summarize_pool
from zelda_ci.domain.fingerprint import Fingerprint, SteeringState
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.run import RunResult, Versions
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.steering import Unit, UnitUse
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import PoolSettings
from zelda_ci.redact import EMPTY, Redactor

NOW = datetime(2026, 11, 22, tzinfo=UTC)
STATES, SKILLS = 10, 20
safe = Redactor()
PATHS = [safe(f".claude/skills/skill-{number}/SKILL.md") for number in range(SKILLS)]
TOUCHED = tuple(safe(f"src/file-{number}.py") for number in range(20))


def state(number: int) -> Fingerprint:
    """Steering files of which the text of one skill is that of the number."""
    texts = {path: f"{number if path == PATHS[0] else 0}" for path in PATHS}
    steering = SteeringState(folder=EMPTY, always="a", drawn="d", texts=texts)
    return Fingerprint(outcome=f"o{number}", platform="p", tree="t", parts={"cli": "2"}, steering=steering)


OWN = state(0)
SECONDS = 1.0
ARTIFACTS = 10


def trials(suites: int, count: int) -> list[RunResult]:
    """Stored trials; every third of other code."""
    versions = Versions(zelda="0", agent_sdk="0", python="3")
    owns = [state(number) for number in range(STATES)]
    others = [own.replace(tree="else") for own in owns]
    uses = tuple(UnitUse(unit=Unit(kind=ItemKind.SKILL, path=path, name=path), loaded=True) for path in PATHS)
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
            fingerprint=(owns if number % 3 else others)[number % STATES],
            steering=uses,
            touched=TOUCHED,
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
    began = process_time()
    pool = pool_of(groups, lambda _: settings, NOW)
    names = dict.fromkeys(run.suite for run in runs)
    summary = summarize_pool(run for name in names for run in pool.stored(name, OWN, OWN, settings))
    seconds = process_time() - began
    read = sum(map(len, groups))
    print(f"{read:,} trials of {len(names)} suites, {len(pool.trials):,} pooled: {seconds:.2f} s (at most {SECONDS} s)")
    assert summary
    assert len(pool.trials) == suites * count
    assert summary.per_suite == count
    return 0 if seconds <= SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
