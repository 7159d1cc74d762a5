"""Stored results on the GitHub of a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.builders import result
from tests.support.github_server import Artifact, GitHubServer, Repository, Run
from zelda_ci.ci.stored import PROVENANCE, RESULTS
from zelda_ci.domain.comparison import Provenance
from zelda_ci.domain.run import batch_of
from zelda_ci.report.text import json_of

NAME = "zelda-results"
STORED_AS = f"{NAME}.zelda.1"
NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
STORED_AT = datetime(2026, 11, 19, 8, tzinfo=UTC)


@dataclass(frozen=True)
class World:
    """Five commits on main, the oldest first, and the run of a pull request on top of them."""

    github: GitHubServer
    commits: list[str]
    own: Run

    @property
    def repository(self) -> Repository:
        """That of the commits."""
        return self.github.repository

    def fork(self) -> Repository:
        """Somebody else's copy of it."""
        return Repository("mallory/zelda", fork_of=self.repository)


@contextmanager
def five_commits() -> Iterator[World]:
    """A server with all of it."""
    with GitHubServer() as github:
        commits = github.repository.add_commits(5)
        head = github.repository.add_commit(parents=[commits[-1]], branch="feature")
        own = github.repository.add_run(head, branch="feature", event="pull_request")
        yield World(github, commits, own)


def provenance(run: Run, **lies: Any) -> bytes:
    """What an artifact tells of itself."""
    told = Provenance(
        repository=run.repository.full_name,
        repository_id=run.repository.id,
        sha=run.head_sha,
        head_sha=run.head_sha,
        event=run.event,
        run_id=run.id,
        batch_id="batch",
        created_at=STORED_AT,
        workflow=f".github/workflows/{run.workflow}",
        job="zelda",
        artifact=NAME,
        folder=".",
    )
    return told.model_copy(update=lies).model_dump_json(by_alias=True, exclude_none=True).encode()


def store(run: Run, results: str = "results", lies: dict[str, Any] | None = None, **more: Any) -> Artifact:
    """What a run stores; `results` names them, `more` are fields of the artifact, and its `name`."""
    members = {
        PROVENANCE: provenance(run, **(lies or {})),
        RESULTS: json_of(batch_of([result(results)])).encode(),
        "runs/one/transcript.json": b"{}",
    }
    name = more.pop("name", STORED_AS)
    return run.repository.add_artifact(name, members, run=run, **{"created_at": STORED_AT, **more})
