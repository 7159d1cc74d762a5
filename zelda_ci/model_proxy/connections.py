"""Connections of the proxy: who gets one, how long it may say nothing, and which gives way to others."""

import asyncio
import errno
import resource
import socket
import time
from asyncio import TimerHandle, Transport
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

# At a time, of all; uvicorn's own limit answers 503, to everybody, and keeps them.
MAX_CONNECTIONS = 256
# Of one run: requests that are active at once are 24, and the CLI keeps some idle ones.
MAX_RUN_CONNECTIONS = 96
# That have not shown a token. They are none of a run's: the others keep theirs, however many of these come.
MAX_ANONYMOUS = 96

# Of the descriptors of this process; the others are for runs, files and the connections to the API.
DESCRIPTOR_SHARE = 4
# Turns of the event loop after which a connection that was taken has been read. So many times fewer than may be
# anonymous are taken in one turn: nobody can be pushed out before it could show its token.
TURNS = 8
# Wait in the kernel for their turn, without a descriptor of ours.
BACKLOG = 1024
# Before another try where there is no descriptor at all.
PAUSE_SECONDS = 0.1
OUT_OF_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

# More are of no use to Zelda, and programs that close all that could be open take long over a billion.
MAX_DESCRIPTORS = 1 << 16

KEY = "zelda.connection"


def raise_descriptor_limit() -> int:
    """Allow this process as many descriptors as it may have; the value is their number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # a sandbox around Zelda may refuse it
        return soft
    return wanted


class Connection(H11Protocol):
    """One connection, which gives way where its owner has more of them than anybody else."""

    def __init__(self, *arguments: Any, head_seconds: float, anonymous_seconds: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_seconds = head_seconds
        """For the head of a request to arrive, once it has begun; between requests there is no hurry."""
        self._anonymous_seconds = anonymous_seconds
        """To show a token."""
        self._head_timer: TimerHandle | None = None
        self._anonymous_timer: TimerHandle | None = None
        self.owner = ""
        """The token with which it has asked; none so far."""
        self.has_spoken = False
        """Whether a byte has come."""
        self.since = time.monotonic()
        self.app = _marked(self.app, self)

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._anonymous_timer = self.loop.call_later(self._anonymous_seconds, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        """Read what came; a head that has not come in full has its time."""
        self.has_spoken = True
        super().data_received(data)
        is_begun = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        # A head that drips in byte by byte would hold the connection for ever; uvicorn only limits the time between
        # requests.
        if is_begun and self._head_timer is None:
            self._head_timer = self.loop.call_later(self._head_seconds, self.transport.abort)
        elif not is_begun:
            self._head_timer = _stopped(self._head_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_timer = _stopped(self._head_timer)
        self._anonymous_timer = _stopped(self._anonymous_timer)
        super().connection_lost(exc)

    def belongs_to(self, token: str) -> None:
        """A request with this token has come by it."""
        self._anonymous_timer = _stopped(self._anonymous_timer)
        self.owner = token
        of_run = [one for one in _open(self.connections) if one.owner == token]
        if len(of_run) > MAX_RUN_CONNECTIONS:
            _give_way(of_run)

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Who gives way first has the lowest: in silence, without a request that is answered now, the oldest."""
        cycle: Any = self.cycle  # none before the first request
        is_busy = bool(cycle) and not cycle.response_complete
        return self.has_spoken, is_busy, self.since


def belongs(scope: Scope, token: str) -> None:
    """Note whose connection a request came by."""
    connection = scope.get(KEY)
    if isinstance(connection, Connection):
        connection.belongs_to(token)


def is_anonymous(scope: Scope) -> bool:
    """Whether no token has come by the connection of a request."""
    connection = scope.get(KEY)
    return not (isinstance(connection, Connection) and connection.owner)


def _stopped(timer: TimerHandle | None) -> TimerHandle | None:
    """In place of a timer that has been stopped: none."""
    if timer:
        timer.cancel()
    return None


def _open(connections: "set[Any]") -> list[Connection]:
    """Those that are not about to be closed."""
    return [one for one in connections if isinstance(one, Connection) and not one.transport.is_closing()]


def _marked(app: ASGIApp, connection: Connection) -> ASGIApp:
    async def marked(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, KEY: connection}, receive, send)

    return marked


class Door:
    """Takes connections a few at a time, and only where there is room.

    `asyncio`'s own server takes all that wait before it makes the first of them a connection that could be closed: a
    thousand at once are a thousand descriptors.
    """

    def __init__(self, make: Callable[[], Connection], connections: "set[Any]", descriptors: int) -> None:
        self._make = make
        self._connections = connections
        self._limit = max(2, min(MAX_CONNECTIONS, descriptors // DESCRIPTOR_SHARE))
        self._anonymous_limit = min(MAX_ANONYMOUS, self._limit // 2)
        self._loop = asyncio.get_running_loop()
        self._listeners: set[socket.socket] = set()
        self._arriving: set[asyncio.Task[None]] = set()

    @contextmanager
    def open(self, listeners: Sequence[socket.socket]) -> Iterator[None]:
        """Take connections of these sockets until the block ends."""
        for listener in listeners:
            listener.settimeout(0)
            listener.listen(BACKLOG)
            self._listeners.add(listener)
            self._listen(listener)
        try:
            yield
        finally:
            for listener in listeners:
                self._loop.remove_reader(listener)
            self._listeners.clear()
            for task in self._arriving:
                task.cancel()

    def _listen(self, listener: socket.socket) -> None:
        if listener in self._listeners:
            self._loop.add_reader(listener, self._take, listener)

    def _take(self, listener: socket.socket) -> None:
        for _ in range(max(1, self._anonymous_limit // TURNS)):
            # Who gives way is closed in the next turn; who waits in the kernel is heard of again then.
            if not self._has_room():
                return
            try:
                accepted, _ = listener.accept()
            except OSError as exc:
                if exc.errno in OUT_OF_DESCRIPTORS:
                    self._pause(listener)
                return
            accepted.settimeout(0)
            task = self._loop.create_task(self._admit(accepted))
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)

    async def _admit(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, accepted)
        except OSError:  # gone already
            accepted.close()

    def _has_room(self) -> bool:
        """Whether there is room for one more; where there is none, one gives way."""
        remaining = _open(self._connections)
        coming = len(self._arriving) + 1
        anonymous = [one for one in remaining if not one.owner]
        if len(anonymous) + coming > self._anonymous_limit:
            _give_way(anonymous)
        elif len(remaining) + coming > self._limit:
            # The owner with most of them loses one, so that a session that opens them in a loop hurts nobody else.
            [(owner, _)] = Counter(one.owner for one in remaining).most_common(1)
            _give_way([one for one in remaining if one.owner == owner])
        # With those that are about to be closed: they still have their descriptors.
        return len(self._connections) + coming <= self._limit

    def _pause(self, listener: socket.socket) -> None:
        """Close one, and look again in a moment: the kernel would report the same one again and again."""
        _give_way(_open(self._connections))
        self._loop.remove_reader(listener)
        self._loop.call_later(PAUSE_SECONDS, self._listen, listener)


def _give_way(connections: Sequence[Connection]) -> None:
    if connections:
        min(connections, key=lambda one: one.rank).transport.abort()
