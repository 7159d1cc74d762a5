"""What Zelda needs from a coding agent, whoever supplies it, and the recorder of what the agent does."""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import anyio

from zelda_ci.domain.session import AssistantSaid, Ended, SessionRecord, SessionStatus, ToolCalled
from zelda_ci.domain.suite import ExecutionSettings
from zelda_ci.domain.workspace import SettingFinding, Workspace
from zelda_ci.execution.messages import SYNTHETIC, Translator
from zelda_ci.execution.system_messages import KeepImage
from zelda_ci.redact import SafeText

# Called for each record at once, in order; it writes the journal and reports progress.
Listen = Callable[[SessionRecord], None]


# A scope that is left after so many seconds.
TimeLimit = Callable[[float], AbstractContextManager[anyio.CancelScope]]


@dataclass(frozen=True)
class PluginPins:
    """Settings above the project's, so that a session has its own plugins, and no others."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    installs: bool = False
    """True where Claude Code has to take in plugins of a marketplace in the repository, before the session begins."""
    findings: tuple[SettingFinding, ...] = ()


NO_PINS = PluginPins()


@dataclass(frozen=True)
class ModelEndpoint:
    """Where the session finds its model: the loopback proxy and this run's token, never a real key."""

    base_url: str
    token: str
    socket: Path | None = None
    """The same proxy as a socket, as the session sees it; given where the session has no network."""


class TranscriptCheck(Protocol):
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
    plugins: PluginPins = NO_PINS
    """What is set of plugins above the project's settings."""
    pinned: tuple[str, ...] = ()
    """Environment variables that the project sets and that are not its to set."""
    transcript_check: TranscriptCheck | None = None
    time_limit: TimeLimit = anyio.move_on_after
    """Limits the session's time; it may know of waiting that is none of the session's doing."""
    wait_seconds: float = 0.0
    """For which a model request may be held back on its way, beyond what the model takes."""
    keep_image: KeepImage | None = None
    """Where images that tools return are kept; without it they are only named."""


@dataclass(frozen=True)
class SessionOutcome:
    """How a session ended; everything said in it went through `Listen`."""

    status: SessionStatus
    wall_seconds: float
    reason: SafeText | None = None
    code: str | None = None
    """Machine-readable code of a failure, like `AUTHENTICATION_FAILED`."""


log = logging.getLogger(__name__)

# Lines on standard error that become records; the rest is counted.
MAX_STDERR_LINES = 200

# Last lines on standard error, to explain a crash with.
STDERR_TAIL = 5


def check_message(message: Any, check: TranscriptCheck) -> None:
    """Check one message of the SDK, as it came: what is recorded is redacted."""
    event = getattr(message, "event", None) or {}
    if event.get("type") == "message_start":
        check.began(str((event.get("message") or {}).get("id")))
    content = getattr(message, "content", None)
    is_model = hasattr(message, "message_id") and message.model != SYNTHETIC
    for block in content if isinstance(content, list) else ():
        match type(block).__name__:
            case "TextBlock" if is_model:
                check.said(str(message.message_id), block.text, thinking=False)
            case "ThinkingBlock" if is_model:
                check.said(str(message.message_id), block.thinking, thinking=True)
            case "ToolUseBlock" | "ServerToolUseBlock" if is_model:
                check.called(str(message.message_id), block.id, block.name, block.input)
            case "ToolResultBlock":
                check.returned(block.tool_use_id)
            case _:
                pass


class Recorder:
    """What one session said so far."""

    def __init__(
        self,
        translator: Translator,
        listen: Listen,
        stop: Callable[[], None],
        transcript_check: TranscriptCheck | None = None,
    ) -> None:
        """Take `stop`, which is called when a listener fails: nothing more can be recorded then."""
        self._translator, self._listen, self._stop = translator, listen, stop
        self._transcript_check = transcript_check
        self._stderr: deque[str] = deque()
        self._stderr_lines = 0
        self.stderr_tail: deque[str] = deque(maxlen=STDERR_TAIL)
        self.ended: Ended | None = None
        self.idle = False
        self.responses: set[str] = set()
        """Ids of real model responses, in all threads."""
        self.api_error: str | None = None
        """How Claude Code classed the latest error of the API, like `billing_error`."""
        self.background_tasks: tuple[str, ...] = ()
        self.failure: Exception | None = None
        """What a listener raised."""

    @property
    def quiet(self) -> bool:
        """Whether the session is over: a result was given, and no turn is owed any more."""
        return self.ended is not None and self.idle

    def record(self, message: object) -> None:
        """Record one message of the SDK."""
        self.flush()
        self._observe(message)
        if self._transcript_check:
            check_message(message, self._transcript_check)
        try:
            records = list(self._translator.translate(message))
        except Exception as exc:
            log.warning("a message could not be translated", exc_info=True)
            records = [self._translator.notice("untranslatable", f"{type(message).__name__}: {exc}")]
        for record in records:
            self.emit(record)

    def record_stderr(self, line: str) -> None:
        """Keep a line on standard error; it is recorded with the next message."""
        self.stderr_tail.append(line)
        self._stderr_lines += 1
        if self._stderr_lines <= MAX_STDERR_LINES:
            self._stderr.append(line)

    def flush(self) -> None:
        """Record what came on standard error."""
        while self._stderr:
            self.note("stderr", self._stderr.popleft())

    def finish(self) -> None:
        """Record what is left to say at the end."""
        self.flush()
        if (more := self._stderr_lines - MAX_STDERR_LINES) > 0:
            self.note("stderr", f"{more} more lines")

    def note(self, kind: str, text: str) -> None:
        self.emit(self._translator.notice(kind, text))

    def _observe(self, message: Any) -> None:
        """Notice what drives the session but is no record: its state, its background tasks, errors of the API."""
        subtype, data = getattr(message, "subtype", None), getattr(message, "data", {})
        if subtype == "session_state_changed":
            self.idle = data.get("state") == "idle"
        elif subtype == "background_tasks_changed":
            self.background_tasks = tuple(str(task.get("task_id")) for task in data.get("tasks") or ())
        elif hasattr(message, "message_id"):
            # A later answer without an error means that the earlier one was overcome.
            self.api_error = message.error
        event = getattr(message, "event", None) or {}
        if event.get("type") == "message_start":
            self.responses.add(str((event.get("message") or {}).get("id")))

    def emit(self, record: SessionRecord) -> None:
        match record:
            case Ended():
                self.ended = record
            case AssistantSaid() | ToolCalled() if record.model != SYNTHETIC:
                self.responses.add(record.message_id)
            case _:
                pass
        if self.failure:
            return
        try:
            self._listen(record)
        except Exception as exc:
            log.exception("a record could not be kept")
            self.failure = exc
            self._stop()
