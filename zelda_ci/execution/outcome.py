"""End of a session: the exact test of success, and a status, code and sentence for every other end; pure."""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum

from zelda_ci.domain.session import Ended, SessionStatus

# Last lines on standard error, to explain a crash with.
STDERR_TAIL = 5


class StopReason(StrEnum):
    """Why Zelda ended a session itself."""

    DEADLINE = "deadline"
    BUDGET = "budget"
    RECORDING = "recording"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Crash:
    """A breakdown of the CLI or of the connection to it, with its code and sentence.

    Without a code the CLI ended: `exit_code` is negative, or above 128, where a signal ended it, and absent where the
    CLI was found ended when it was written to.
    """

    code: str | None = None
    reason: str = ""
    exit_code: int | None = None


@dataclass
class SessionFacts:
    """Everything that the outcome rests on, gathered while the session runs."""

    ended: Ended | None = None
    """The last result message."""
    idle: bool = False
    """Whether Claude Code last said that no further turn is owed."""
    responses: set[str] = field(default_factory=set)
    """Ids of real model responses, in all threads."""
    api_error: str | None = None
    """Claude Code's class of the latest error of the API, like `billing_error`."""
    background_tasks: tuple[str, ...] = ()
    stop_reason: StopReason | None = None
    crash: Crash | None = None
    stderr_tail: deque[str] = field(default_factory=lambda: deque(maxlen=STDERR_TAIL))
    prompted: bool = False
    """Whether the CLI came up and got the prompt."""
    is_command: bool = False
    """Whether the prompt looks like a command, with a leading `/`."""
    begun: bool = True
    """Whether the CLI was started at all, and confined as ordered; its supervisor says so."""
    exit_code: int | None = None
    """The CLI's own, where its supervisor saw it end."""
    seconds_allowed: float = 0.0
    recording_failure: tuple[str, str] = ("RECORDING_FAILED", "unknown")
    """Code and sentence of what kept the session from being recorded."""

    @property
    def quiet(self) -> bool:
        """Whether the session is over: a result was given, and no turn is owed any more."""
        return self.ended is not None and self.idle


@dataclass(frozen=True)
class SessionOutcome:
    """End of a session; everything said in it was recorded. The reason is text from outside until it is redacted."""

    status: SessionStatus
    code: str | None = None
    """Machine-readable code of a failure, like `AUTHENTICATION_FAILED`."""
    reason: str | None = None
    wall_seconds: float = 0.0


# By the subtype of the result, or the reason why it terminated.
_LIMITS = {
    "error_max_turns": (SessionStatus.MAX_TURNS, "MAX_TURNS", "The session used all its turns (maxTurns)."),
    "error_max_budget_usd": (SessionStatus.BUDGET_EXCEEDED, "BUDGET_EXCEEDED", "The session reached its cost limit."),
    "aborted_tools": (SessionStatus.INTERRUPTED, "INTERRUPTED", "The session was interrupted from outside."),
    "aborted_streaming": (SessionStatus.INTERRUPTED, "INTERRUPTED", "The session was interrupted from outside."),
}

_NO_MODEL = ("MODEL_NOT_FOUND", "The model does not exist, or the key has no access to it.")
# By the reason why the session terminated, the class of the API's last error, or its status.
_FAILURES: dict[str | int | None, tuple[str, str]] = {
    "prompt_too_long": ("PROMPT_TOO_LONG", "The conversation no longer fits the model's context."),
    "image_error": ("REQUEST_TOO_LARGE", "A request was larger than the API accepts."),
    "hook_stopped": ("HOOK_STOPPED", "A hook of the project stopped the session."),
    "billing_error": ("BILLING_FAILED", "The API refused the request for billing reasons."),
    "model_not_found": _NO_MODEL,
    "max_output_tokens": ("OUTPUT_LIMIT", "The model's answers kept running into the output limit."),
    401: ("AUTHENTICATION_FAILED", "The API refused the key (401)."),
    403: ("ACCESS_DENIED", "The API denied access (403)."),
    404: _NO_MODEL,
    429: ("RATE_LIMITED", "The API kept refusing requests for their rate (429)."),
    529: ("API_OVERLOADED", "The API stayed overloaded (529)."),
}


def judge(facts: SessionFacts) -> SessionOutcome:
    """Return the outcome: first what Zelda did counts, then what broke, then what Claude Code itself said."""
    ended = facts.ended
    if facts.stop_reason:
        return _of_stop(facts.stop_reason, facts)
    if ended is None or not (facts.quiet or ended.is_error):
        return _of_crash(facts)
    # A CLI that did not close itself to what it starts was given no token, and says that it is not logged in.
    if ended.is_error and not facts.begun:
        return _not_confined(_own_words(ended))
    return _of_result(ended, facts)


def _of_stop(stop: StopReason, facts: SessionFacts) -> SessionOutcome:
    match stop:
        case StopReason.DEADLINE:
            reason = f"The session did not end within its limit of {facts.seconds_allowed:g} s (timeoutSeconds)."
            return SessionOutcome(SessionStatus.TIMED_OUT, "SESSION_TIMED_OUT", reason)
        case StopReason.BUDGET:
            reason = "The session reached its cost limit (maxCostUsd)."
            return SessionOutcome(SessionStatus.BUDGET_EXCEEDED, "BUDGET_EXCEEDED", reason)
        case StopReason.RECORDING:
            code, sentence = facts.recording_failure
            return _failed(code, f"The session was ended because it could not be recorded: {sentence}")
        case StopReason.CANCELLED:
            return SessionOutcome(SessionStatus.INTERRUPTED, "INTERRUPTED", "The session was interrupted.")


def _of_crash(facts: SessionFacts) -> SessionOutcome:
    crash = facts.crash or Crash(exit_code=0)
    stderr = " ".join(facts.stderr_tail)
    if not facts.begun and crash.code in {None, "CLI_START_TIMED_OUT"}:
        return _not_confined(stderr or crash.reason or "no reason was given")
    if crash.code:
        return _failed(crash.code, f"{crash.reason} {stderr if crash.code == 'CLI_START_TIMED_OUT' else ''}")
    exit_code = facts.exit_code if crash.exit_code is None else crash.exit_code
    known = exit_code or 0
    signal_number = -known if known < 0 else known - 128
    ended = "Claude Code ended" if exit_code is None else f"Claude Code ended with exit code {exit_code}"
    tail = f": {stderr}" if stderr else "."
    if "cannot be used with root" in stderr:
        return _failed("ROOT_REFUSED", "Claude Code refuses to bypass permissions as root outside a sandbox.")
    if signal_number > 0:
        return _failed("CLI_KILLED", f"Claude Code was killed by signal {signal_number}{tail}")
    if not facts.prompted:
        return _failed("CLI_START_FAILED", f"{ended} while starting{tail}")
    return _failed("CLI_CRASHED", f"{ended} before the session was over{tail}")


def _not_confined(why: str) -> SessionOutcome:
    return _failed("SESSION_NOT_CONFINED", f"Claude Code was not started, because it could not be confined: {why}")


def _of_result(ended: Ended, facts: SessionFacts) -> SessionOutcome:
    """Judge a result message. `success` alone means nothing: errors of the API carry it too."""
    if limit := _LIMITS.get(ended.subtype) or _LIMITS.get(ended.terminal_reason or ""):
        return SessionOutcome(*limit)
    words = f"Claude Code says: {_own_words(ended)}"
    if not ended.is_error and not facts.responses:
        why = ": the prompt was taken as a command of Claude Code" if facts.is_command else ""
        return _failed("NO_MODEL_CALL", f"The session ended without asking a model{why}. {words}")
    if (ended.subtype, ended.terminal_reason, ended.is_error) == ("success", "completed", False):
        return SessionOutcome(SessionStatus.COMPLETED)
    status = ended.api_error_status
    signs = (ended.terminal_reason, facts.api_error, status)
    if failure := next((_FAILURES[sign] for sign in signs if sign in _FAILURES), None):
        code, sentence = failure
    elif status is not None:
        code, who = ("API_FAILED", "kept failing") if status >= 500 else ("REQUEST_REFUSED", "refused the request")
        sentence = f"The API {who} ({status})."
    elif ended.stop_reason == "refusal":
        code, sentence = "MODEL_REFUSED", "The model refused to go on."
    elif ended.terminal_reason == "api_error":
        code, sentence = "API_UNREACHABLE", "The API gave no usable answer."
    else:
        code = "SESSION_FAILED"
        sentence = f"The session ended in an error ({ended.terminal_reason or ended.subtype})."
    return _failed(code, f"{sentence} {words}")


def _own_words(ended: Ended) -> str:
    return "; ".join(ended.errors) or ended.text or "nothing"


def _failed(code: str, reason: str) -> SessionOutcome:
    return SessionOutcome(SessionStatus.FAILED, code, " ".join(reason.split()))
