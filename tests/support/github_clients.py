"""Zelda's clients for GitHub, pointed at the server of the tests."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.support.github_server import GitHubServer, Run
from zelda_ci.github.api import Api, Http
from zelda_ci.github.artifacts import ArtifactService
from zelda_ci.redact import Secret


@dataclass
class Sleeper:
    """Does not sleep, but notes how long it should have; time passes on its clock as if it had."""

    seconds: float = 0
    now: float = 1_800_000_000

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.now += seconds

    def clock(self) -> float:
        return self.now


def patient_http(
    sleeper: Sleeper | None = None, *, patience_seconds: float = 300, mask: Callable[[str], None] = lambda _: None
) -> Http:
    """An `Http` that waits for nothing."""
    sleeper = sleeper or Sleeper()
    return Http(sleep=sleeper.sleep, clock=sleeper.clock, patience_seconds=patience_seconds, mask=mask)


def api_of(github: GitHubServer, http: Http | None = None) -> Api:
    token, repository = Secret(github.token), github.repository.full_name
    return Api(http or patient_http(), github.api_url, github.graphql_url, token, repository)


def artifacts_of(github: GitHubServer, run: Run, *, job: str = "job", http: Http | None = None) -> ArtifactService:
    return ArtifactService(github.environment(run, job=job), http or patient_http())
