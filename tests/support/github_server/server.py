"""The server: what was asked, what may be asked, and who answers it."""

import tempfile
import threading
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.github_server.answering import Answering
from tests.support.github_server.failures import Failure
from tests.support.github_server.replies import Reply, not_found
from tests.support.github_server.seen import Seen
from tests.support.github_server.service import Service
from tests.support.github_server.storage import Storage
from tests.support.github_server.tokens import runtime_token
from tests.support.github_server.wire import Listener
from tests.support.github_server.world import BOT, Repository, Run

TOKEN = "ghs_fakeTokenOfTheWorkflow"
RANKS = {"none": 0, "read": 1, "write": 2}


class GitHubServer:
    """GitHub, as a context manager.

    Args:
        enterprise: A GitHub Enterprise Server: API below `/api/v3`, no artifact service.
    """

    def __init__(self, *, enterprise: bool = False) -> None:
        self.enterprise = enterprise
        self.token = TOKEN
        self.login = BOT
        """Whose the token is."""
        self.permissions = {"actions": "read", "contents": "read", "pull_requests": "write"}
        """Of the token, as under `permissions` in a workflow; a repository that is not private may be read anyway."""
        self.requests: list[Seen] = []
        self.violations: list[str] = []
        """What was wrong with requests and answers; the test fails if there is something in the end."""
        """Entries of a tree that are told; of a longer one, GitHub says that it is truncated."""
        self.closing = threading.Event()
        self.lock = threading.RLock()
        self.failures: list[Failure] = []
        self.repositories: list[Repository] = []
        self.repository = self.add_repository("octo/zelda")
        self._folder = tempfile.TemporaryDirectory(prefix="github-server-")
        self._listener = Listener(Answering(self))
        self.storage = Storage(self.url, Path(self._folder.name))
        self.service = Service(self)

    @property
    def url(self) -> str:
        """Of the whole server; also `ACTIONS_RESULTS_URL`."""
        return self._listener.url

    @property
    def api_url(self) -> str:
        return f"{self.url}/api/v3" if self.enterprise else self.url

    @property
    def graphql_url(self) -> str:
        return f"{self.url}/api/graphql" if self.enterprise else f"{self.url}/graphql"

    @property
    def server_url(self) -> str:
        """Where GitHub's pages would be; nothing answers there."""
        return "https://github.example.com" if self.enterprise else "https://github.com"

    def add_repository(self, name: str, *, fork_of: Repository | None = None, private: bool = True) -> Repository:
        """One more repository; a fork shares its commits with the one it was made of."""
        repository = Repository(name, fork_of, private)
        self.repositories.append(repository)
        return repository

    def repository_called(self, name: str) -> Repository:
        for each in self.repositories:
            if each.full_name.lower() == name.lower():
                return each
        raise not_found()

    def script_failures(self, failures: Iterable[Failure]) -> None:
        """What goes wrong next; each failure waits for the first request that it fits and happens once."""
        with self.lock:
            self.failures += failures

    def calls(self, pattern: str = "*") -> list[str]:
        """`METHOD /path` of the requests so far that begin with or match a pattern; storage's have random paths."""
        asked = [seen.asked for seen in self.requests]
        return [each for each in asked if each.startswith(pattern) or fnmatchcase(each, pattern)]

    def environment(self, run: Run | None = None, *, job: str = "job") -> dict[str, str]:
        """What the runner tells an action about this server, and about the run it works for.

        Without a run, GITHUB_RUN_ID and the runtime token are missing. The event, the ref and the SHA are not here.
        """
        repository = run.repository if run else self.repository
        told = {
            # The user's proxy does not lead to the loopback address.
            "NO_PROXY": "127.0.0.1",
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.api_url,
            "GITHUB_GRAPHQL_URL": self.graphql_url,
            "GITHUB_SERVER_URL": self.server_url,
            "GITHUB_REPOSITORY": repository.full_name,
            "GITHUB_REPOSITORY_ID": str(repository.id),
            "GITHUB_REPOSITORY_OWNER": repository.owner,
            "GITHUB_RETENTION_DAYS": "90",
            "INPUT_GITHUB-TOKEN": self.token,
        }
        return {**told, **(self._of_run(run, job) if run else {})}

    def _of_run(self, run: Run, job: str) -> dict[str, str]:
        return {
            "GITHUB_RUN_ID": str(run.id),
            "GITHUB_RUN_ATTEMPT": str(run.attempt),
            "GITHUB_EVENT_NAME": run.event,
            "GITHUB_WORKFLOW_REF": f"{run.repository.full_name}/.github/workflows/{run.workflow}@refs/heads/main",
            "GITHUB_JOB": job,
            "ACTIONS_RUNTIME_TOKEN": runtime_token(run.backend_id, f"{job}-{run.attempt}"),
            "ACTIONS_RESULTS_URL": f"{self.url}/results/",
        }

    def may(self, accepted: str) -> bool:
        """Whether the token has one of the permissions, as in `issues=write; pull_requests=write`."""
        wanted = [part.strip().split("=") for part in accepted.split(";") if part.strip()]
        has = self.permissions
        return not wanted or any(RANKS[has.get(name, "none")] >= RANKS[rank] for name, rank in wanted)

    def take_failure(self, asked: str) -> Failure | None:
        with self.lock:
            found = next((each for each in self.failures if each.fits(asked)), None)
            if found:
                self.failures.remove(found)
            return found

    def note(self, seen: Seen) -> None:
        with self.lock:
            self.requests.append(seen)

    def violated(self, problems: list[str]) -> Reply:
        self.violations += problems
        return Reply(599, {"message": "; ".join(problems)})

    def __enter__(self) -> Self:
        self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._listener.stop()
        self._folder.cleanup()
        if kind is None and self.violations:
            raise AssertionError("GitHub's description is violated: " + "; ".join(dict.fromkeys(self.violations)))
