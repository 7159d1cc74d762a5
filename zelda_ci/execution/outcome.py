"""What became of a session: the exact test of success, and a sentence and a code for everything else; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from zelda_ci.domain.session import Ended, SessionStatus


class StopReason(StrEnum):
    """Why Zelda ended a session itself."""

    DEADLINE = "deadline"
    BUDGET = "budget"
    RECORDING = "recording"
    CANCELLED = "cancelled"


class CrashKind(StrEnum):
    """How the CLI broke down, or never came up."""

    NOT_STARTED = "notStarted"
    SILENT_START = "silentStart"
    EXITED = "exited"
    LINE_TOO_LONG = "lineTooLong"
    BROKEN = "broken"


@dataclass(frozen=True)
class Crash:
    """A breakdown of the CLI or of the connection to it.

    `exit_code` is negative, or above 128, where a signal ended the CLI. It is absent where the CLI was found ended when
    it was written to.
    """

    kind: CrashKind
    detail: str = ""
    exit_code: int | None = None


@dataclass(frozen=True)
class SessionFacts:
    """Everything the verdict rests on."""

    ended: Ended | None = None
    """The last result message."""
    quiet: bool = False
    """Whether the session came to rest after it."""
    responses: int = 0
    """Real model responses, in all threads."""
    api_error: str | None = None
    stop_reason: StopReason | None = None
    crash: Crash | None = None
    stderr_tail: Sequence[str] = ()
    prompted: bool = False
    """Whether the CLI came up and got the prompt."""
    begun: bool = True
    """Whether the CLI was started at all, and confined as ordered; its supervisor says so."""
    exit_code: int | None = None
    """The CLI's own, where its supervisor saw it end."""
    command: bool = False
    """Whether the prompt looks like a command, with a leading `/`."""
    seconds_allowed: float = 0.0
    recording_failure: tuple[str, str] | None = None
    """Code and sentence of what kept the session from being recorded."""


@dataclass(frozen=True)
class SessionEnding:
    """How a session ended; the reason is text from outside until it is redacted."""

    status: SessionStatus
    code: str | None = None
    reason: str | None = None


def judge(facts: SessionFacts) -> SessionEnding:
    """The verdict: first what Zelda did, then what broke, then what Claude Code itself said."""
    if facts.stop_reason:
        return _of_stop(facts.stop_reason, facts)
    ended = facts.ended
    if ended is None or not (facts.quiet or ended.is_error):
        return _of_crash(facts)
    # A CLI that did not close itself to what it starts was given no token, and says that it is not logged in.
    if ended.is_error and not facts.begun:
        return _not_confined(_own_words(ended))
    return _of_result(ended, facts)


def _of_stop(stop: StopReason, facts: SessionFacts) -> SessionEnding:
    match stop:
        case StopReason.DEADLINE:
            reason = f"The session did not end within its limit of {facts.seconds_allowed:g} s (timeoutSeconds)."
            return SessionEnding(SessionStatus.TIMED_OUT, "SESSION_TIMED_OUT", reason)
        case StopReason.BUDGET:
            reason = "The session reached its cost limit (maxCostUsd)."
            return SessionEnding(SessionStatus.BUDGET_EXCEEDED, "BUDGET_EXCEEDED", reason)
        case StopReason.RECORDING:
            code, sentence = facts.recording_failure or ("RECORDING_FAILED", "unknown")
            return _failed(code, f"The session was ended because it could not be recorded: {sentence}")
        case StopReason.CANCELLED:
            return SessionEnding(SessionStatus.INTERRUPTED, "INTERRUPTED", "The session was interrupted.")


def _of_crash(facts: SessionFacts) -> SessionEnding:
    crash = facts.crash or Crash(CrashKind.EXITED, exit_code=0)
    stderr = " ".join(facts.stderr_tail) or crash.detail
    if crash.kind in {CrashKind.EXITED, CrashKind.SILENT_START} and not facts.begun:
        return _not_confined(stderr or "no reason was given")
    match crash.kind:
        case CrashKind.NOT_STARTED:
            return _failed("CLI_START_FAILED", f"Claude Code could not be started: {crash.detail}")
        case CrashKind.SILENT_START:
            return _failed("CLI_START_TIMED_OUT", f"Claude Code did not get ready within a minute. {stderr}".rstrip())
        case CrashKind.LINE_TOO_LONG:
            return _failed("CLI_OUTPUT_TOO_LONG", f"Claude Code wrote a message too long to read: {crash.detail}")
        case CrashKind.BROKEN:
            return _failed("SESSION_FAILED", f"The session broke off: {crash.detail}")
        case CrashKind.EXITED:
            exit_code = facts.exit_code if crash.exit_code is None else crash.exit_code
            return _of_exit(exit_code, stderr, prompted=facts.prompted)


def _not_confined(why: str) -> SessionEnding:
    return _failed("SESSION_NOT_CONFINED", f"Claude Code was not started, because it could not be confined: {why}")


def _of_exit(exit_code: int | None, stderr: str, *, prompted: bool) -> SessionEnding:
    known = exit_code or 0
    signal_number = -known if known < 0 else known - 128
    ended = "Claude Code ended" if exit_code is None else f"Claude Code ended with exit code {exit_code}"
    tail = f": {stderr}" if stderr else "."
    if "cannot be used with root" in stderr:
        return _failed("ROOT_REFUSED", "Claude Code refuses to bypass permissions as root outside a sandbox.")
    if signal_number > 0:
        return _failed("CLI_KILLED", f"Claude Code was killed by signal {signal_number}{tail}")
    if not prompted:
        return _failed("CLI_START_FAILED", f"{ended} while starting{tail}")
    return _failed("CLI_CRASHED", f"{ended} before the session was over{tail}")


def _of_result(ended: Ended, facts: SessionFacts) -> SessionEnding:
    """The verdict on a result message. `success` alone means nothing: errors of the API carry it too."""
    match ended.subtype, ended.terminal_reason:
        case "error_max_turns", _:
            return SessionEnding(SessionStatus.MAX_TURNS, "MAX_TURNS", "The session used all its turns (maxTurns).")
        case "error_max_budget_usd", _:
            return SessionEnding(
                SessionStatus.BUDGET_EXCEEDED, "BUDGET_EXCEEDED", "The session reached its cost limit."
            )
        case _, "aborted_tools" | "aborted_streaming":
            return SessionEnding(SessionStatus.INTERRUPTED, "INTERRUPTED", "The session was interrupted from outside.")
        case "success", "completed" if not ended.is_error and facts.responses:
            return SessionEnding(SessionStatus.COMPLETED)
    if not ended.is_error and not facts.responses:
        why = ": the prompt was taken as a command of Claude Code" if facts.command else ""
        return _failed(
            "NO_MODEL_CALL", f"The session ended without asking a model{why}. Claude Code says: {_own_words(ended)}"
        )
    code, sentence = _api_failure(ended, facts.api_error)
    return _failed(code, f"{sentence} Claude Code says: {_own_words(ended)}")


def _api_failure(ended: Ended, api_error: str | None) -> tuple[str, str]:
    """Code and sentence for a session that ended in an error, the most telling sign first."""
    by_reason = {
        "prompt_too_long": ("PROMPT_TOO_LONG", "The conversation no longer fits the model's context."),
        "image_error": ("REQUEST_TOO_LARGE", "A request was larger than the API accepts."),
        "hook_stopped": ("HOOK_STOPPED", "A hook of the project stopped the session."),
    }
    by_error = {
        "billing_error": ("BILLING_FAILED", "The API refused the request for billing reasons."),
        "model_not_found": ("MODEL_NOT_FOUND", "The model does not exist, or the key has no access to it."),
        "max_output_tokens": ("OUTPUT_LIMIT", "The model's answers kept running into the output limit."),
    }
    by_status = {
        401: ("AUTHENTICATION_FAILED", "The API refused the key (401)."),
        403: ("ACCESS_DENIED", "The API denied access (403)."),
        404: ("MODEL_NOT_FOUND", "The model does not exist, or the key has no access to it."),
        429: ("RATE_LIMITED", "The API kept refusing requests for their rate (429)."),
        529: ("API_OVERLOADED", "The API stayed overloaded (529)."),
    }
    status = ended.api_error_status
    failure = by_reason.get(ended.terminal_reason or "") or by_error.get(api_error or "") or by_status.get(status or 0)
    if failure:
        return failure
    if status is not None:
        server = status >= 500
        code, who = ("API_FAILED", "kept failing") if server else ("REQUEST_REFUSED", "refused the request")
        return code, f"The API {who} ({status})."
    if ended.stop_reason == "refusal":
        return "MODEL_REFUSED", "The model refused to go on."
    if ended.terminal_reason == "api_error":
        return "API_UNREACHABLE", "The API gave no usable answer."
    return "SESSION_FAILED", f"The session ended in an error ({ended.terminal_reason or ended.subtype})."


def _own_words(ended: Ended) -> str:
    return "; ".join(ended.errors) or ended.text or "nothing"


def _failed(code: str, reason: str) -> SessionEnding:
    return SessionEnding(SessionStatus.FAILED, code, " ".join(reason.split()))
