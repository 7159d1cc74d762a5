"""Stored trials that may be counted together, and what is said of them."""

from typing import Literal

from pydantic import AwareDatetime

from zelda_ci.domain.base import Record
from zelda_ci.domain.fingerprint import Fingerprint
from zelda_ci.domain.run import RunResult


class Pool(Record):
    """What a run stores beside its own results: the trials of earlier runs, so that one artifact has them all."""

    schema_version: Literal[1] = 1
    suites: dict[str, Fingerprint] = {}
    """Every suite of the tested commit, also those that were not run."""
    trials: tuple[RunResult, ...] = ()
    """Of earlier runs; those of the run itself are its results."""


class PoolSummary(Record):
    """What a pool rests on."""

    trials: int
    per_suite: int
    """Most trials that any suite has."""
    runs: int
    """Invocations that made the trials."""
    newest_at: AwareDatetime
    oldest_at: AwareDatetime
