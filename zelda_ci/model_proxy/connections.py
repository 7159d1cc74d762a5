"""Connections to the proxy: so few that no session can take Zelda's descriptors, or the way to the model from others.

Whoever is in a sandbox can connect, with or without a token.
"""

import time
from asyncio import Transport
from collections import Counter
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 256
"""Connections at a time; uvicorn's own limit answers 503, to everybody, and keeps them."""

AT_ONCE = 64
"""Accepted before the first of them can be closed again."""

KEY = "zelda.connection"


class Connection(H11Protocol):
    """One connection, which gives way where its owner has more of them than anybody else."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.owner = ""
        """The token with which it has asked; none so far."""
        self.since = time.monotonic()
        self.app = _marked(self.app, self)

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Make room."""
        super().connection_made(transport)
        if len(self.connections) > MOST:
            _one_too_many([one for one in self.connections if isinstance(one, Connection)]).transport.abort()


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
