"""A session to run: the request, and who listens to it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import anyio

from zelda_ci.domain.session import SessionImage, SessionRecord
from zelda_ci.domain.suite import ExecutionSettings
from zelda_ci.domain.workspace import SettingFinding, Workspace

# Called for each record at once, in order; it writes the journal and reports progress.
Listen = Callable[[SessionRecord], None]

# A scope that is left after so many seconds.
TimeLimit = Callable[[float], AbstractContextManager[anyio.CancelScope]]

# Keeps an image that a tool returned as base64; returns it as it was kept, else in a few words why not.
KeepImage = Callable[[str], SessionImage | str]


@dataclass(frozen=True)
class Pins:
    """What is set above the project's settings, so that a session has the project's plugins and Zelda's plumbing."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    """Environment variables that the project sets and that are not its to set."""
    installs: bool = False
    """True where Claude Code has to take in plugins of a marketplace in the repository, before the session begins."""
    findings: tuple[SettingFinding, ...] = ()


NO_PINS = Pins()


class MessageCheck(Protocol):
    """Checks a session's messages against what passed between the session and the API."""

    def began(self, message: str) -> None:
        """Check that a model's message is the API's."""

    def said(self, message: str, text: str, *, thinking: bool) -> None:
        """Check a text of a model's message."""

    def called(self, message: str, call: str, name: str, arguments: object) -> None:
        """Check a tool call in a model's message."""

    def returned(self, call: str) -> None:
        """Check that a tool's result is one of a call that the API made."""


@dataclass(frozen=True)
class SessionRequest:
    """One session to run.

    `stop` is set from outside when the budget is spent: the session is then interrupted, and its result message is
    still recorded.
    """

    session_id: str
    prompt: str
    workspace: Workspace
    execution: ExecutionSettings
    base_url: str
    """Address of the loopback proxy where the session finds its model."""
    token: str
    """This run's token for the proxy, never a real key."""
    stop: anyio.Event
    pins: Pins = NO_PINS
    socket: Path | None = None
    """The same proxy as a socket, as the session sees it; given where the session has no network."""
    transcript_check: MessageCheck | None = None
    time_limit: TimeLimit = anyio.move_on_after
    """Limits the session's time; it may know of waiting that is none of the session's doing."""
    wait_seconds: float = 0.0
    """Seconds for which a model request may be held back on its way, beyond what the model takes."""
    keep_image: KeepImage | None = None
    """Without it, images that tools return are only named."""
