"""The server of source archives: an address of its own for each, made by `git archive`, and no token welcome."""

import secrets
from collections.abc import Callable

from tests.support.github_server.replies import Reply
from tests.support.github_server.seen import Received
from tests.support.github_server.world import Repository

PREFIX = "/codeload/"


class Codeload:
    """Archives of commits; `change` makes other bytes of those that are right."""

    def __init__(self, origin: str) -> None:
        self.change: Callable[[bytes], bytes] = bytes
        self._origin = origin
        self._orders: dict[str, tuple[Repository, str]] = {}

    def address_of(self, repository: Repository, commit: str) -> str:
        """An address for whoever has it: the token in it is good for this archive only."""
        token = secrets.token_hex(16)
        self._orders[token] = repository, commit
        return f"{self._origin}{PREFIX}{repository.full_name}/legacy.tar.gz/{commit}?token={token}"

    def answer(self, request: Received) -> Reply:
        order = self._orders.get(request.query.get("token", ""))
        if "authorization" in request.headers:
            return Reply(400, b"400: Invalid request")
        if request.method != "GET" or order is None:
            return Reply(404, b"404: Not Found")
        repository, commit = order
        top = f"{repository.full_name.replace('/', '-')}-{commit[:7]}/"
        archive = repository.git("archive", "--format=tar.gz", f"--prefix={top}", commit)
        if archive is None:
            return Reply(404, b"404: Not Found")
        return Reply(200, self.change(archive), {"content-type": "application/x-gzip"})
