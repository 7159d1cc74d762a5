"""End of a session: the exact test of success, and a status, code and sentence for every other end; pure."""

from collections import deque
from dataclasses import dataclass, field

from zelda_ci.domain.session import Ended, SessionStatus

# Last lines on standard error, to explain a crash with.
STDERR_TAIL = 5


@dataclass(frozen=True)
class SessionOutcome:
    """End of a session; everything said in it was recorded. The reason is text from outside until it is redacted."""

    status: SessionStatus
    code: str | None = None
    """Machine-readable code of a failure, like `AUTHENTICATION_FAILED`."""
    reason: str | None = None
    wall_seconds: float = 0.0


BUDGET = SessionOutcome(
    SessionStatus.BUDGET_EXCEEDED, "BUDGET_EXCEEDED", "The session reached its cost limit (maxCostUsd)."
)
CANCELLED = SessionOutcome(SessionStatus.INTERRUPTED, "INTERRUPTED", "The session was interrupted.")


def failed(code: str, reason: str) -> SessionOutcome:
    """Return the outcome of a session that failed, with its reason in one line."""
    return SessionOutcome(SessionStatus.FAILED, code, " ".join(reason.split()))


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
    stopped: SessionOutcome | None = None
    """The outcome where Zelda ended the session itself."""
    broken: SessionOutcome | None = None
    """The outcome where the connection to the CLI broke, and not because the CLI ended."""
    stderr_tail: deque[str] = field(default_factory=lambda: deque(maxlen=STDERR_TAIL))
    prompted: bool = False
    """Whether the CLI came up and got the prompt."""
    is_command: bool = False
    """Whether the prompt looks like a command, with a leading `/`."""
    begun: bool = True
    """Whether the CLI was started at all, and confined as ordered; its supervisor says so."""
    exit_code: int | None = None
    """The CLI's own, negative or above 128 where a signal ended it; absent where nobody saw its end."""

    @property
    def quiet(self) -> bool:
        """Whether the session is over: a result was given, and no turn is owed any more."""
        return self.ended is not None and self.idle


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
    if facts.stopped:
        return facts.stopped
    if ended is None or not (facts.quiet or ended.is_error):
        return _of_crash(facts)
    # A CLI that did not close itself to what it starts was given no token, and says that it is not logged in.
    if ended.is_error and not facts.begun:
        return _not_confined(_own_words(ended))
    return _of_result(ended, facts)


def _of_crash(facts: SessionFacts) -> SessionOutcome:
    broken, exit_code, stderr = facts.broken, facts.exit_code, " ".join(facts.stderr_tail)
    if not facts.begun and (broken is None or broken.code == "CLI_START_TIMED_OUT"):
        return _not_confined(stderr or "no reason was given")
    if broken:
        return failed(broken.code or "SESSION_FAILED", f"{broken.reason} {stderr}")
    known = exit_code or 0
    signal_number = -known if known < 0 else known - 128
    ended = "Claude Code ended" if exit_code is None else f"Claude Code ended with exit code {exit_code}"
    tail = f": {stderr}" if stderr else "."
    if "cannot be used with root" in stderr:
        return failed("ROOT_REFUSED", "Claude Code refuses to bypass permissions as root outside a sandbox.")
    if signal_number > 0:
        return failed("CLI_KILLED", f"Claude Code was killed by signal {signal_number}{tail}")
    if not facts.prompted:
        return failed("CLI_START_FAILED", f"{ended} while starting{tail}")
    return failed("CLI_CRASHED", f"{ended} before the session was over{tail}")


def _not_confined(why: str) -> SessionOutcome:
    return failed("SESSION_NOT_CONFINED", f"Claude Code was not started, because it could not be confined: {why}")


def _of_result(ended: Ended, facts: SessionFacts) -> SessionOutcome:
    """Judge a result message. `success` alone means nothing: errors of the API carry it too."""
    if limit := _LIMITS.get(ended.subtype) or _LIMITS.get(ended.terminal_reason or ""):
        return SessionOutcome(*limit)
    words = f"Claude Code says: {_own_words(ended)}"
    if not ended.is_error and not facts.responses:
        why = ": the prompt was taken as a command of Claude Code" if facts.is_command else ""
        return failed("NO_MODEL_CALL", f"The session ended without asking a model{why}. {words}")
    if (ended.subtype, ended.terminal_reason, ended.is_error) == ("success", "completed", False):
        return SessionOutcome(SessionStatus.COMPLETED)
    if failure := of_api_error(ended.api_error_status, ended.terminal_reason, facts.api_error):
        code, sentence = failure
    elif ended.stop_reason == "refusal":
        code, sentence = "MODEL_REFUSED", "The model refused to go on."
    elif ended.terminal_reason == "api_error":
        code, sentence = "API_UNREACHABLE", "The API gave no usable answer."
    else:
        code = "SESSION_FAILED"
        sentence = f"The session ended in an error ({ended.terminal_reason or ended.subtype})."
    return failed(code, f"{sentence} {words}")


def of_api_error(status: int | None, *signs: str | None) -> tuple[str, str] | None:
    """Code and sentence for what the signs name, or else for the HTTP status; None where there is no status either."""
    if failure := next((_FAILURES[sign] for sign in (*signs, status) if sign in _FAILURES), None):
        return failure
    if status is None:
        return None
    code, who = ("API_FAILED", "kept failing") if status >= 500 else ("REQUEST_REFUSED", "refused the request")
    return code, f"The API {who} ({status})."


def _own_words(ended: Ended) -> str:
    return "; ".join(ended.errors) or ended.text or "nothing"
