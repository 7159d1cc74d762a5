"""Finds who answers a request, and checks both against GitHub's description."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from tests.support.github_server import graphql, rest, service, storage
from tests.support.github_server.contract import Operation, github_contract
from tests.support.github_server.replies import RefusedError, Reply, missing_permission

if TYPE_CHECKING:
    from tests.support.github_server.server import GitHubServer

EXPECTED_HEADERS = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}
LIMITS = {"x-ratelimit-limit": "1000", "x-ratelimit-remaining": "999", "x-ratelimit-reset": "4102444800"}


class Answering:
    """Answers what arrives; knows nothing of sockets."""

    def __init__(self, server: "GitHubServer") -> None:
        self.server = server

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """The reply to a request; `headers` have lower-case names."""
        asked = parse_qs(query, keep_blank_values=True)
        if path.startswith(storage.PREFIX):
            plain = {name: values[0] for name, values in asked.items()}
            return self.server.storage.answer(method, path, plain, headers, body)
        if path.startswith(service.PREFIX):
            token = headers.get("authorization", "").removeprefix("Bearer ")
            return self.server.service.answer(path.removeprefix(service.PREFIX), json.loads(body), token)
        if "user-agent" not in headers:
            return Reply(403, b"Request forbidden by administrative rules.")
        if headers.get("authorization") != f"Bearer {self.server.token}":
            return RefusedError(401, "Bad credentials").reply
        if path == self.server.graphql_url.removeprefix(self.server.url):
            return Reply(200, graphql.answer(self.server, json.loads(body)), LIMITS)
        prefix = self.server.api_url.removeprefix(self.server.url)
        return self._rest(method, path.removeprefix(prefix), asked, headers, body)

    def _rest(
        self, method: str, path: str, query: Mapping[str, list[str]], headers: Mapping[str, str], body: bytes
    ) -> Reply:
        contract = github_contract()
        operation = contract.operation(method, path)
        if operation is None or operation.key not in rest.ROUTES:
            return self.server.violated([f"{method} {path} is not documented, or this server does not know it"])
        problems = [
            f"header {name} is {headers.get(name)}"
            for name, value in EXPECTED_HEADERS.items()
            if headers.get(name) != value
        ]
        problems += contract.request_violations(operation, query, body)
        if problems:
            return self.server.violated(problems)
        plain = {name: values[0] for name, values in query.items()}
        call = rest.Call(self.server, operation, path, plain, json.loads(body) if body else None)
        reply = self._performed(operation, call)
        told: Any = None if isinstance(reply.body, bytes) else reply.body
        problems = list(contract.answer_violations(operation, reply.status, told))
        return (
            self.server.violated(problems) if problems else Reply(reply.status, reply.body, {**LIMITS, **reply.headers})
        )

    def _performed(self, operation: Operation, call: rest.Call) -> Reply:
        handler, accepted = rest.ROUTES[operation.key]
        try:
            readable = "owner" in operation.path and call.method == "GET" and not call.repository.private
            if not readable and not self.server.may(accepted):
                raise missing_permission(accepted)
            return handler(call)
        except RefusedError as exc:
            return exc.reply
