"""Finds who answers a request, and checks both against GitHub's description."""

import json
from typing import TYPE_CHECKING, Any

from tests.support.github_server import graphql, rest, service, storage
from tests.support.github_server.contract import Operation, github_contract
from tests.support.github_server.replies import RefusedError, Reply, missing_permission
from tests.support.github_server.seen import Received

if TYPE_CHECKING:
    from tests.support.github_server.server import GitHubServer

EXPECTED_HEADERS = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}
LIMITS = {"x-ratelimit-limit": "1000", "x-ratelimit-remaining": "999", "x-ratelimit-reset": "4102444800"}


class Answering:
    """Answers what arrives; knows nothing of sockets."""

    def __init__(self, server: "GitHubServer") -> None:
        self.server = server

    def problems(self, request: Received) -> list[str]:
        """What GitHub's description has against a request, whatever it is answered with."""
        if self._is_foreign(request) or "user-agent" not in request.headers:
            return []
        operation = github_contract().operation(request.method, request.path)
        if operation is None or operation.key not in rest.ROUTES:
            return [f"{request.method} {request.path} is not documented, or this server does not know it"]
        told = {name: request.headers.get(name) for name in EXPECTED_HEADERS}
        wrong = [f"header {name} is {told[name]}" for name, value in EXPECTED_HEADERS.items() if told[name] != value]
        return [*wrong, *github_contract().request_violations(operation, request.queries, request.body)]

    def answer(self, request: Received) -> Reply:
        """The reply to a request without problems."""
        beside = {storage.PREFIX: self.server.storage.answer, service.PREFIX: self.server.service.answer}
        for prefix, answer in beside.items():
            if request.path.startswith(prefix):
                return answer(request)
        if "user-agent" not in request.headers:
            return Reply(403, b"Request forbidden by administrative rules.")
        if request.headers.get("authorization") != f"Bearer {self.server.token}":
            return RefusedError(401, "Bad credentials").reply
        if self._is_graphql(request):
            return Reply(200, graphql.answer(self.server, json.loads(request.body)), LIMITS)
        return self._rest(request)

    def _is_foreign(self, request: Received) -> bool:
        """Whether it is not of the REST API."""
        return request.path.startswith((storage.PREFIX, service.PREFIX)) or self._is_graphql(request)

    def _is_graphql(self, request: Received) -> bool:
        return request.target == self.server.graphql_url.removeprefix(self.server.url)

    def _rest(self, request: Received) -> Reply:
        operation = github_contract().operation(request.method, request.path)
        if operation is None:
            raise AssertionError(request.asked)
        body = json.loads(request.body) if request.body else None
        reply = self._performed(operation, rest.Call(self.server, operation, request.path, request.query, body))
        told: Any = None if isinstance(reply.body, bytes) else reply.body
        problems = list(github_contract().answer_violations(operation, reply.status, told))
        limited = Reply(reply.status, reply.body, {**LIMITS, **reply.headers})
        return self.server.violated(problems) if problems else limited

    def _performed(self, operation: Operation, call: rest.Call) -> Reply:
        handler, accepted = rest.ROUTES[operation.key]
        try:
            readable = "owner" in operation.path and call.method == "GET" and not call.repository.private
            if not readable and not self.server.may(accepted):
                raise missing_permission(accepted)
            return handler(call)
        except RefusedError as exc:
            return exc.reply
