"""Connections to the proxy: so few that no session can take Zelda's descriptors, or the way to the model from others.

Whoever is in a sandbox can connect, with or without a token.
"""

import time
from asyncio import TimerHandle, Transport
from collections import Counter
from typing import Any

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 256
"""Connections at a time; uvicorn's own limit answers 503, to everybody, and keeps them."""

AT_ONCE = 64
"""Accepted before the first of them can be closed again."""

KEY = "zelda.connection"


class Connection(H11Protocol):
    """One connection, which gives way where its owner has more of them than anybody else."""

    def __init__(self, *arguments: Any, head_seconds: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_seconds = head_seconds
        """For the head of a request to arrive, once it has begun; between requests there is no hurry."""
        self._head_timer: TimerHandle | None = None
        self.owner = ""
        """The token with which it has asked; none so far."""
        self.since = time.monotonic()
        self.app = _marked(self.app, self)

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Make room."""
        super().connection_made(transport)
        if len(self.connections) > MOST:
            _one_too_many([one for one in self.connections if isinstance(one, Connection)]).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read what came; a head that has not come in full has its time."""
        super().data_received(data)
        is_begun = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if is_begun and self._head_timer is None:
            self._head_timer = self.loop.call_later(self._head_seconds, self.transport.abort)
        elif not is_begun:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        if self._head_timer:
            self._head_timer.cancel()
            self._head_timer = None


def belongs(scope: Scope, token: str) -> None:
    """Note whose connection a request came by."""
    connection = scope.get(KEY)
    if isinstance(connection, Connection):
        connection.owner = token


def _one_too_many(connections: list[Connection]) -> Connection:
    """The oldest of the owner who has most."""
    [(owner, _)] = Counter(one.owner for one in connections).most_common(1)
    return min((one for one in connections if one.owner == owner), key=lambda one: one.since)


def _marked(app: ASGIApp, connection: Connection) -> ASGIApp:
    async def marked(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, KEY: connection}, receive, send)

    return marked
