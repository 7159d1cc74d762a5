"""What Zelda needs from a coding agent, in its own words. No supplier is named here."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import anyio

from zelda_ci.domain.session import SessionRecord, SessionStatus
from zelda_ci.domain.suite import ExecutionSettings
from zelda_ci.domain.workspace import Workspace
from zelda_ci.redact import SafeText

Listen = Callable[[SessionRecord], None]
"""Called for each record at once, in order; it writes the journal and reports progress."""


@dataclass(frozen=True)
class ModelEndpoint:
    """Where the session finds its model: the loopback proxy and this run's token, never a real key."""

    base_url: str
    token: str
    socket: Path | None = None
    """The same proxy as a socket, as the session sees it; given where the session has no network."""


@dataclass(frozen=True)
class SessionRequest:
    """One session to lead.

    `stop` is set from outside when the budget is spent: the agent then interrupts the session, and its result
    message is still recorded.
    """

    session_id: str
    prompt: str
    workspace: Workspace
    execution: ExecutionSettings
    endpoint: ModelEndpoint
    stop: anyio.Event
    pinned: tuple[str, ...] = ()
    """Environment variables that the project sets and that are not its to set."""


@dataclass(frozen=True)
class SessionOutcome:
    """How a session ended; everything said in it went through `Listen`."""

    status: SessionStatus
    wall_seconds: float
    reason: SafeText | None = None
    code: str | None = None
    """Machine-readable code of a failure, like `AUTHENTICATION_FAILED`."""


class CodingAgent(Protocol):
    """Leads one session at a time per call; calls may run side by side."""

    async def run(self, request: SessionRequest, listen: Listen) -> SessionOutcome:
        """Lead the session to its end, its deadline, its budget or cancellation.

        A session that ends badly is an outcome, not an exception. On cancellation the session is interrupted, its
        last messages are recorded, every process of it is ended, and the cancellation goes on.
        """
        ...
