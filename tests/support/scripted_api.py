"""A scripted Messages API on loopback: drives the real Claude Code CLI, and the proxy in front of it, in tests.

    with ScriptedApi([tool_call("Bash", {"command": "ls"}), text("Done.")]) as api:
        ...  # ANTHROPIC_BASE_URL=api.url
    assert len(api.requests) == 2

The script is a list of replies for the main thread, in order of the requests, or a callable from `ApiRequest` to a
reply (called from several threads). `agents` holds one script per sub-agent, by order of appearance. A request beyond
the script is answered with HTTP 400 and fails the test when the `with` block ends.
"""

import json
import select
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Self

from tests.support.loopback import POLL_SECONDS, Loopback
from tests.support.scripted_clouds import BedrockWire, as_messages
from tests.support.scripted_replies import (
    ApiRequest,
    Message,
    Reply,
    Tokens,
    Wire,
    cut_after,
    hang,
    http_error,
    raw,
    text,
    tool_call,
    tool_calls,
)

__all__ = [
    "ApiRequest",
    "Message",
    "Reply",
    "Script",
    "ScriptedApi",
    "Tokens",
    "cut_after",
    "hang",
    "http_error",
    "raw",
    "text",
    "tool_call",
    "tool_calls",
]

CHECK = "zelda-ci (check)"

Script = Sequence[Reply] | Callable[[ApiRequest], Reply]
"""Replies in the order of the requests, or a function that chooses them."""


class ScriptedApi:
    """The server, as a context manager; everything it was sent is in `requests`."""

    def __init__(
        self,
        script: Script,
        *,
        agents: Sequence[Script] = (),
        check: Reply | Sequence[Reply] = (),
        counts: Callable[[dict[str, Any]], int | None] = lambda _: 42,
    ) -> None:
        self.counts = counts
        """How many tokens a request has; None where it is not counted."""
        self.counts_asked = 0
        self.check = (*check, text("!")) if isinstance(check, Sequence) else (check,)
        """What those get who only ask whether they would be answered, the last one again and again."""
        self.checks: list[ApiRequest] = []
        """Their requests."""
        self.requests: list[ApiRequest] = []
        """Model requests in order of arrival; token counts and probes are not among them."""
        self.failures: list[str] = []
        """Why the test fails at the end of the `with` block; a test that expects one removes it."""
        self.others: list[str] = []
        """Method and path of requests to anything but messages."""
        self.disconnects = 0
        """Streams that the client left before their end."""
        self.closing = threading.Event()
        self._scripts: dict[int | None, Script] = {None: script, **dict(enumerate(agents))}
        self._agents: list[str] = []
        self._lock = threading.Lock()
        self._server = _Server(self)

    @property
    def url(self) -> str:
        """Base URL for clients, without a trailing slash."""
        return self._server.url

    @property
    def unused(self) -> int:
        """Replies that nobody asked for, over all scripts that are lists."""
        asked = [sum(request.agent == agent for request in self.requests) for agent in self._scripts]
        scripts = self._scripts.values()
        return sum(max(0, len(s) - n) for s, n in zip(scripts, asked, strict=True) if not callable(s))

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.stop()
        if kind is None and self.failures:
            raise AssertionError("; ".join(dict.fromkeys(self.failures)))

    def receive(self, path: str, headers: Mapping[str, str], raw_body: bytes) -> tuple[ApiRequest, Reply]:
        """Note a request and choose its reply."""
        with self._lock:
            if headers.get("user-agent") == CHECK:
                self.checks.append(ApiRequest(path, headers, json.loads(raw_body), raw_body, None, len(self.checks)))
                return self.checks[-1], self.check[min(len(self.checks), len(self.check)) - 1]
            agent = self._ordinal(headers.get("x-claude-code-agent-id"))
            index = sum(request.agent == agent for request in self.requests)
            request = ApiRequest(path, headers, json.loads(raw_body), raw_body, agent, index)
            self.requests.append(request)
        try:
            return request, self._choose(request)
        except Exception as exc:  # noqa: BLE001 - a mistake in a test's script must fail that test
            return request, self._fail(f"the script raised {exc!r}")

    def _ordinal(self, agent_id: str | None) -> int | None:
        if agent_id is None:
            return None
        if agent_id not in self._agents:
            self._agents.append(agent_id)
        return self._agents.index(agent_id)

    def _choose(self, request: ApiRequest) -> Reply:
        # Without a script per agent, a callable for the main thread answers its agents too.
        fallback = script if callable(script := self._scripts[None]) else ()
        script = self._scripts.get(request.agent, fallback)
        if callable(script):
            return script(request)
        if request.index < len(script):
            return script[request.index]
        thread = "main thread" if request.agent is None else f"sub-agent {request.agent}"
        return self._fail(f"the script of the {thread} is used up: more than {len(script)} requests")

    def _fail(self, why: str) -> Reply:
        self.failures.append(why)
        return http_error(400, why, headers={"x-should-retry": "false"})


class _Server(Loopback):
    def __init__(self, api: ScriptedApi) -> None:
        self.api = api
        super().__init__(_Handler, api.failures.append)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    _chunked = False

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionAbortedError  # the client has left in the middle of its request
        headers = {name.lower(): value for name, value in self.headers.items()}
        match self.path.split("?")[0]:
            case "/v1/messages":
                self._answer(headers, body)
            case "/v1/messages/count_tokens":
                self.server.api.counts_asked += 1
                counted = self.server.api.counts(json.loads(body))
                self._small(429 if counted is None else 200, json.dumps({"input_tokens": counted}).encode())
            case path if cloud := as_messages(path, json.loads(body or b"{}")):
                wire: Wire = BedrockWire(self) if "/model/" in path else self
                self._answer(headers, json.dumps(cloud).encode(), wire)
            case _:
                self.do_GET()

    def do_GET(self) -> None:
        self.server.api.others.append(f"{self.command} {self.path}")
        self._small(404, b"{}")

    def _answer(self, headers: Mapping[str, str], body: bytes, wire: Wire | None = None) -> None:
        request, reply = self.server.api.receive(self.path, headers, body)
        try:
            reply.send(request, wire or self)
        except ConnectionError:
            self.server.api.disconnects += 1
            self.close_connection = True

    def do_HEAD(self) -> None:
        self._small(200, b"")

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def _small(self, status: int, body: bytes) -> None:
        self.start(status, {"content-type": "application/json", "content-length": str(len(body))}, chunked=False)
        self.write(body)

    # What a reply may do with its connection (`Wire`)

    def start(self, status: int, headers: Mapping[str, str], *, chunked: bool) -> None:
        self._chunked = chunked
        self.send_response_only(status)
        for name, value in {**headers, **({"transfer-encoding": "chunked"} if chunked else {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def write(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def finish_reply(self) -> None:
        if self._chunked:
            self.wfile.write(b"0\r\n\r\n")

    def cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def pause(self, seconds: float) -> None:
        if self.server.api.closing.wait(seconds):
            raise ConnectionAbortedError

    def wait_for(self, gate: threading.Event) -> None:
        while not gate.wait(POLL_SECONDS):
            if self.server.api.closing.is_set():
                raise ConnectionAbortedError

    def wait_for_client_to_leave(self) -> None:
        while not self.server.api.closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], POLL_SECONDS)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise ConnectionAbortedError
        self.close_connection = True
