"""End of a session: the exact test of success, and a code and sentence for every other end; pure."""

from collections import deque
from dataclasses import dataclass, field

from zelda_ci.domain.session import Ended, SessionStatus

# Last lines on standard error, to explain a crash with.
STDERR_TAIL = 5

# By the code of an end; of all other codes, the session failed.
_STATUSES = {
    None: SessionStatus.COMPLETED,
    "MAX_TURNS": SessionStatus.MAX_TURNS,
    "BUDGET_EXCEEDED": SessionStatus.BUDGET_EXCEEDED,
    "SESSION_TIMED_OUT": SessionStatus.TIMED_OUT,
    "INTERRUPTED": SessionStatus.INTERRUPTED,
}


@dataclass(frozen=True)
class SessionOutcome:
    """End of a session; everything said in it was recorded. The reason is text from outside until it is redacted."""

    code: str | None = None
    """Machine-readable, like `AUTHENTICATION_FAILED`; absent where the session completed."""
    reason: str | None = None
    wall_seconds: float = 0.0

    @property
    def status(self) -> SessionStatus:
        """Status that the code stands for."""
        return _STATUSES.get(self.code, SessionStatus.FAILED)


BUDGET = SessionOutcome("BUDGET_EXCEEDED", "The session reached its cost limit (maxCostUsd).")
ROUTED = SessionOutcome()  # of a routing suite: it ended with the call that was asked for
CANCELLED = SessionOutcome("INTERRUPTED", "The session was interrupted.")


@dataclass
class SessionFacts:
    """Everything that the outcome rests on, gathered while the session runs."""

    ended: Ended | None = None
    idle: bool = False
    """Whether Claude Code last said that no further turn is owed."""
    has_response: bool = False
    """Whether a real model responded, in any thread."""
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


_ABORTED = SessionOutcome("INTERRUPTED", "The session was interrupted from outside.")
# By the subtype of the result, or the reason why it terminated.
_LIMITS = {
    "error_max_turns": SessionOutcome("MAX_TURNS", "The session used all its turns (maxTurns)."),
    "error_max_budget_usd": SessionOutcome("BUDGET_EXCEEDED", "The session reached its cost limit."),
    **dict.fromkeys(("aborted_tools", "aborted_streaming"), _ABORTED),
}

NOT_CONFINED = "Claude Code was not started, because it could not be confined"

_NO_MONEY = ("BILLING_FAILED", "The API refused the request for billing reasons.")
_NO_MODEL = ("MODEL_NOT_FOUND", "The model does not exist, or the key has no access to it.")
# By the reason why the session terminated, the class of the API's last error, or its status; then by the stop reason.
_FAILURES: dict[str | int | None, tuple[str, str]] = {
    "prompt_too_long": ("PROMPT_TOO_LONG", "The conversation no longer fits the model's context."),
    "image_error": ("REQUEST_TOO_LARGE", "A request was larger than the API accepts."),
    "hook_stopped": ("HOOK_STOPPED", "A hook of the project stopped the session."),
    "billing_error": _NO_MONEY,
    "model_not_found": _NO_MODEL,
    "max_output_tokens": ("OUTPUT_LIMIT", "The model's answers kept running into the output limit."),
    401: ("AUTHENTICATION_FAILED", "The API refused the key (401)."),
    402: _NO_MONEY,
    403: ("ACCESS_DENIED", "The API denied access (403)."),
    404: _NO_MODEL,
    429: ("RATE_LIMITED", "The API refused requests for their rate (429)."),
    529: ("API_OVERLOADED", "The API stayed overloaded (529)."),
    "pause_turn": ("TURN_PAUSED", "The API paused the model's turn, and Claude Code did not go on with it."),
    "refusal": ("MODEL_REFUSED", "The model refused to go on."),
}


def judge(facts: SessionFacts) -> SessionOutcome:
    """Return the outcome: first what Zelda did counts, then what broke, then what Claude Code itself said."""
    ended = facts.ended
    if facts.stopped:
        return facts.stopped
    if ended is None or not (facts.quiet or ended.is_error):
        code, reason = _of_crash(facts)
    else:
        if limit := _LIMITS.get(ended.subtype) or _LIMITS.get(ended.terminal_reason or ""):
            return limit
        # `success` alone means nothing: errors of the API carry it too.
        is_complete = (ended.subtype, ended.terminal_reason, ended.is_error) == ("success", "completed", False)
        # Claude Code takes a pause of the API for the end.
        if is_complete and facts.has_response and ended.stop_reason != "pause_turn":
            return SessionOutcome()
        code, sentence = _of_result(ended, facts)
        reason = f"{sentence} Claude Code says: {'; '.join(ended.errors) or ended.text or 'nothing'}"
    return SessionOutcome(code, " ".join(reason.split()))


def _of_crash(facts: SessionFacts) -> tuple[str, str]:
    broken, exit_code, stderr = facts.broken, facts.exit_code, " ".join(facts.stderr_tail)
    tail = f": {stderr}" if stderr else "."
    if not facts.begun and (broken is None or broken.code == "CLI_START_TIMED_OUT"):
        return "SESSION_NOT_CONFINED", f"{NOT_CONFINED}{tail}"
    if broken:
        return broken.code or "SESSION_FAILED", f"{broken.reason} {stderr}"
    known = exit_code or 0
    signal_number = -known if known < 0 else known - 128
    ended = "Claude Code ended" if exit_code is None else f"Claude Code ended with exit code {exit_code}"
    if "cannot be used with root" in stderr:
        return "ROOT_REFUSED", "Claude Code refuses to bypass permissions as root outside a sandbox."
    if signal_number > 0:
        return "CLI_KILLED", f"Claude Code was killed by signal {signal_number}{tail}"
    if not facts.prompted:
        return "CLI_START_FAILED", f"{ended} while starting{tail}"
    return "CLI_CRASHED", f"{ended} before the session was over{tail}"


def _of_result(ended: Ended, facts: SessionFacts) -> tuple[str, str]:
    # A CLI that did not close itself to what it starts was given no token, and says that it is not logged in.
    if ended.is_error and not facts.begun:
        return "SESSION_NOT_CONFINED", f"{NOT_CONFINED}."
    if not ended.is_error and not facts.has_response:
        why = ": the prompt was taken as a command of Claude Code" if facts.is_command else ""
        return "NO_MODEL_CALL", f"The session ended without asking a model{why}."
    failure = of_api_error(ended.api_error_status, ended.terminal_reason, facts.api_error)
    if failure := failure or _FAILURES.get(ended.stop_reason):
        return failure
    if ended.terminal_reason == "api_error":
        return "API_UNREACHABLE", "The API gave no usable answer."
    return "SESSION_FAILED", f"The session ended in an error ({ended.terminal_reason or ended.subtype})."


def of_api_error(status: int | None, *signs: str | None) -> tuple[str, str] | None:
    """Code and sentence for what the signs name, or else for the HTTP status; None where there is no status either."""
    if failure := next((_FAILURES[sign] for sign in (*signs, status) if sign in _FAILURES), None):
        return failure
    if status is None:
        return None
    code, who = ("API_FAILED", "kept failing") if status >= 500 else ("REQUEST_REFUSED", "refused the request")
    return code, f"The API {who} ({status})."
