"""A session to run: the request, and who listens to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zelda_ci.domain.session import SessionImage, SessionRecord
from zelda_ci.domain.suite import ExecutionSettings
from zelda_ci.domain.workspace import SettingFinding, Workspace
from zelda_ci.model_proxy.meter import Meter

# Called for each record at once, in order; it writes the journal and reports progress.
Listen = Callable[[SessionRecord], None]

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


@dataclass(frozen=True)
class SessionRequest:
    """One session to run."""

    session_id: str
    prompt: str
    workspace: Workspace
    execution: ExecutionSettings
    meter: Meter
    """The run's side of the model proxy. When its budget is spent, the session is interrupted, and its result message
    is still recorded."""
    pins: Pins = field(default_factory=Pins)
    socket: Path | None = None
    """The proxy as a socket, as the session sees it; given where the session has no network."""
    keep_context: Callable[[Mapping[str, Any]], None] | None = None
    """Takes what Claude Code says, before it ends, of the session's context."""
    keep_image: KeepImage | None = None
    """Without it, images that tools return are only named."""
