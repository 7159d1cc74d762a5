"""Sockets, threads and what goes wrong with them."""

import json
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tests.support.github_server.failures import Failure
from tests.support.github_server.replies import Reply
from tests.support.github_server.seen import Received, Seen
from tests.support.loopback import Loopback

if TYPE_CHECKING:
    from tests.support.github_server.answering import Answering


MOST_KEPT_BYTES = 1_000_000
UNANSWERED = {"hang up", "lose answer"}


class Listener(Loopback):
    """Listens on a free port of the loopback address."""

    def __init__(self, answering: "Answering") -> None:
        self.answering = answering
        super().__init__(_Handler, answering.server.violations.append)


class _Handler(BaseHTTPRequestHandler):
    server: Listener
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        github = self.server.answering.server
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        prefix = github.api_url.removeprefix(github.url)
        request = Received(self.command, self.path, headers, body, prefix)
        with github.lock:
            failure = github.take_failure(request.asked)
            reply = self._reply(failure, request)
        status = 0 if failure and failure.kind in UNANSWERED else reply.status
        kept = body if len(body) < MOST_KEPT_BYTES else b"(large)"
        github.note(Seen(self.command, unquote(request.path), request.query, headers, kept, status))
        self._send(reply, failure)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self.do_GET
        raise AttributeError(name)

    def _reply(self, failure: Failure | None, request: Received) -> Reply:
        answering = self.server.answering
        if problems := answering.problems(request):
            return answering.server.violated(problems)
        if failure and failure.kind == "hang up":
            return Reply(0)
        if failure and failure.kind == "answer":
            return Reply(failure.status, failure.body, failure.headers)
        return answering.answer(request)

    def _send(self, reply: Reply, failure: Failure | None) -> None:
        if failure and failure.kind in UNANSWERED:
            self.close_connection = True
            return
        if failure and failure.kind == "slow" and self.server.answering.server.closing.wait(failure.seconds):
            self.close_connection = True
            return
        plain = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        plain = b"" if reply.body is None else plain
        self.send_response_only(reply.status)
        kind = {} if isinstance(reply.body, bytes) else {"content-type": "application/json; charset=utf-8"}
        length = {} if reply.status == 204 else {"content-length": str(len(plain))}
        for name, value in {**kind, **reply.headers, **length}.items():
            self.send_header(name, value)
        self.end_headers()
        if failure and failure.kind == "truncate":
            self.close_connection = True
            plain = plain[: len(plain) // 2]
        self.wfile.write(plain)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""
