"""A run that several machines share: who runs what, and what one of them hands in."""

import re
from typing import Annotated

from pydantic import Field

from zelda_ci.domain.base import Document, Record
from zelda_ci.domain.run import RunResult, StoredTrials

# More than any repository has jobs to spare: GitHub starts 256 of a matrix at most.
MAX_SHARDS = 256

ShardNumber = Annotated[int, Field(ge=1, le=MAX_SHARDS)]


class ShardOf(Record):
    """One of several shards, `2/4`."""

    number: ShardNumber
    shards: ShardNumber

    def __str__(self) -> str:
        return f"{self.number}/{self.shards}"

    @property
    def file_stem(self) -> str:
        """Name of its part, without an ending."""
        return f"shard-{self.number}-of-{self.shards}"


def shard_of(text: str) -> ShardOf:
    """The shard that a text like `2/4` means; a ValueError says what is allowed."""
    found = re.fullmatch(r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})", text.strip())
    number, shards = (int(part) for part in found.groups()) if found else (0, 0)
    if not 1 <= number <= shards <= MAX_SHARDS:
        raise ValueError(f"allowed are a number and how many there are, such as 2/4, up to {MAX_SHARDS}")
    return ShardOf(number=number, shards=shards)


class PlannedSuite(Record):
    """A suite of a plan, and which shard runs it."""

    name: str
    shard: ShardNumber
    trials: int
    """The fewest that will run."""
    seconds: float
    """Seconds that these are expected to take, one after the other."""
    settings: str
    """SHA-256 of the suite as it runs."""
    stored: str = ""
    """SHA-256 of the stored trials that count for it; empty without any."""


class ShardPlan(Document):
    """Plan of who runs what: the shards of one run have equal plans."""

    zelda: str
    """Version."""
    commit: str | None = None
    """Tested commit; absent outside git."""
    shards: ShardNumber
    budget_usd: float | None = None
    """Budget of all shards together."""
    suites: tuple[PlannedSuite, ...]
    """Suites in the order in which they are reported."""

    def suites_of(self, shard: int) -> tuple[PlannedSuite, ...]:
        return tuple(suite for suite in self.suites if suite.shard == shard)

    def names_of(self, shard: int) -> tuple[str, ...]:
        return tuple(suite.name for suite in self.suites_of(shard))


class ShardPart(Document):
    """Part that a shard hands in beside its results: enough to know where it belongs."""

    shard: ShardNumber
    plan: ShardPlan
    platform: str
    """Platform on which it ran, such as `debian 13 x86_64`."""
    earlier: tuple[RunResult, ...] = ()
    """Trials of the shard's earlier attempts on GitHub, which count like its own."""
    counted: dict[str, StoredTrials] = {}
    """Stored trials by suite; outside of GitHub, where nobody else knows them."""
