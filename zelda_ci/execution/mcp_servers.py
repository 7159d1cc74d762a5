"""What Claude Code says of its MCP servers, when it is asked: they start side by side with it, and take their time."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import anyio

from zelda_ci.domain import tool_names
from zelda_ci.domain.session import McpServerState, ServersReported
from zelda_ci.redact import Redactor, SafeText

PENDING = "pending"

FAST_POLL_SECONDS = 0.1
"""While the prompt waits."""

SLOW_POLL_SECONDS = 1.0
"""While the session works: only the report needs to know."""

MAX_SHARE_OF_SESSION = 0.5
"""Of the time that the session has left: a short one must not be spent on waiting."""

Ask = Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]


class ServerWatch:
    """Asks for the servers' states and passes on what has changed.

    Args:
        ask: Gives the states as the CLI writes them; raises where the CLI cannot be asked.
        report: Takes a record of every change.
        clock: Seconds since the session's start.
    """

    def __init__(
        self, ask: Ask, report: Callable[[ServersReported], None], clock: Callable[[], float], redact: Redactor
    ) -> None:
        self._ask, self._report, self._clock, self._redact = ask, report, clock, redact
        self._last: tuple[McpServerState, ...] = ()

    async def look(self) -> bool:
        """Ask once; whether a server is still connecting."""
        servers = tuple(_states(await self._ask(), self._redact))
        if servers != self._last:
            self._last = servers
            self._report(ServersReported(at=round(self._clock(), 3), servers=servers))
        return any(server.status == PENDING for server in servers)

    async def wait(self, seconds: float) -> None:
        """Wait until every server is connected, or never will be, but not longer than that."""
        with anyio.move_on_after(seconds):
            await self._until_settled(FAST_POLL_SECONDS)

    async def follow(self) -> None:
        """Go on asking until every server is connected, or never will be."""
        await self._until_settled(SLOW_POLL_SECONDS)

    async def look_again(self, seconds: float) -> None:
        """Ask for the final states, unless there are no servers or nobody answers in that time."""
        if self._last:
            with anyio.move_on_after(seconds):
                await self.look()

    async def _until_settled(self, interval: float) -> None:
        while await self.look():  # noqa: ASYNC110 - the CLI announces no changes
            await anyio.sleep(interval)


def longest_wait(setting: float, seconds_left: float) -> float:
    """How long the prompt may wait, in a session that has that much time left."""
    return min(setting, seconds_left * MAX_SHARE_OF_SESSION)


def _states(told: Iterable[Mapping[str, Any]], redact: Redactor) -> Iterable[McpServerState]:
    for server in told:
        name, error = str(server.get("name") or ""), server.get("error")
        offered = server.get("tools")
        yield McpServerState(
            name=redact(name),
            status=redact(str(server.get("status") or "")),
            error=redact(str(error)) if error else None,
            tools=tuple(_tools(name, offered if isinstance(offered, list) else [], redact)),
        )


def _tools(server: str, offered: Iterable[Any], redact: Redactor) -> Iterable[SafeText]:
    for tool in offered:
        if isinstance(tool, dict) and tool.get("name"):
            yield redact(tool_names.server_tool(server, str(tool["name"])))
