"""The verdict on a session: the exact test of success, and a code for every way to fail."""

from collections import deque

import pytest

from zelda_ci.domain.session import Ended, SessionStatus
from zelda_ci.execution.outcome import BUDGET, SessionFacts, SessionOutcome, judge
from zelda_ci.redact import Redactor

redact = Redactor()


def ended(  # the fields on which verdicts rest
    subtype: str = "success",
    terminal: str | None = "completed",
    *,
    error: bool = False,
    status: int | None = None,
    stop: str | None = None,
    text: str = "the words of the CLI",
) -> Ended:
    return Ended(
        at=1,
        subtype=redact(subtype),
        terminal_reason=redact(terminal) if terminal else None,
        is_error=error,
        api_error_status=status,
        stop_reason=redact(stop) if stop else None,
        text=redact(text),
    )


def erroneous(terminal: str = "api_error", **fields: object) -> Ended:
    return ended(terminal=terminal, error=True, **fields)  # type: ignore[arg-type]


def test_a_session_is_complete_if_the_result_says_so_in_every_way_and_a_model_was_asked() -> None:
    verdict = judge(SessionFacts(ended=ended(), idle=True, has_response=True, prompted=True))
    assert (verdict.status, verdict.code, verdict.reason) == (SessionStatus.COMPLETED, None, None)
    unasked = judge(SessionFacts(ended=ended(), idle=True, prompted=True))
    assert (unasked.status, unasked.code) == (SessionStatus.FAILED, "NO_MODEL_CALL")


@pytest.mark.parametrize(
    ("result", "api_error", "status", "code"),
    [
        (ended("error_max_turns", "max_turns", error=True), None, "maxTurns", "MAX_TURNS"),
        (ended("error_max_budget_usd", "budget_exhausted", error=True), None, "budgetExceeded", "BUDGET_EXCEEDED"),
        (ended("error_during_execution", "aborted_tools", error=True), None, "interrupted", "INTERRUPTED"),
        (ended("error_during_execution", "aborted_streaming", error=True), None, "interrupted", "INTERRUPTED"),
        (erroneous(status=401), "authentication_failed", "failed", "AUTHENTICATION_FAILED"),
        (erroneous(status=403), "authentication_failed", "failed", "ACCESS_DENIED"),
        (erroneous(status=400), "billing_error", "failed", "BILLING_FAILED"),
        (erroneous(status=404), "model_not_found", "failed", "MODEL_NOT_FOUND"),
        (erroneous(status=404), None, "failed", "MODEL_NOT_FOUND"),
        (erroneous(status=400), "unknown", "failed", "REQUEST_REFUSED"),
        (erroneous("prompt_too_long", status=400), "invalid_request", "failed", "PROMPT_TOO_LONG"),
        (erroneous("image_error", status=413), "invalid_request", "failed", "REQUEST_TOO_LARGE"),
        (erroneous(status=429), "rate_limit", "failed", "RATE_LIMITED"),
        (erroneous(status=529), "server_error", "failed", "API_OVERLOADED"),
        (erroneous(status=500), "server_error", "failed", "API_FAILED"),
        (erroneous(), None, "failed", "API_UNREACHABLE"),
        (erroneous(), "max_output_tokens", "failed", "OUTPUT_LIMIT"),
        (erroneous(stop="refusal"), None, "failed", "MODEL_REFUSED"),
        (ended(terminal="hook_stopped"), None, "failed", "HOOK_STOPPED"),
        # Complete in every way but one.
        (ended(error=True), None, "failed", "SESSION_FAILED"),
        (ended(terminal=None), None, "failed", "SESSION_FAILED"),
        (ended("error_during_execution"), None, "failed", "SESSION_FAILED"),
    ],
)
def test_every_known_end_has_a_status_and_a_code(result: Ended, api_error: str | None, status: str, code: str) -> None:
    verdict = judge(SessionFacts(ended=result, idle=True, has_response=True, api_error=api_error, prompted=True))
    assert (verdict.status, verdict.code) == (status, code)


def test_a_failure_quotes_the_cli_in_one_line() -> None:
    result = erroneous(status=401, text="Invalid API key\n\nFix it")
    verdict = judge(SessionFacts(ended=result, idle=True, prompted=True))
    assert verdict.reason == "The API refused the key (401). Claude Code says: Invalid API key Fix it"


@pytest.mark.parametrize("result", [None, ended(), erroneous(status=529)])
def test_what_zelda_did_weighs_more_than_what_the_cli_said(result: Ended | None) -> None:
    facts = SessionFacts(ended=result, idle=True, has_response=True, stopped=BUDGET, exit_code=143)
    assert judge(facts) is BUDGET


ROOT = "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons"
NO_OPTION = "error: option '--permission-mode <mode>' is invalid."
CRASHES = [
    (1, ROOT, "ROOT_REFUSED", "refuses to bypass permissions as root outside a sandbox."),
    (1, NO_OPTION, "CLI_START_FAILED", f"ended with exit code 1 while starting: {NO_OPTION}"),
    (137, None, "CLI_KILLED", "was killed by signal 9."),
    (-11, "oh", "CLI_KILLED", "was killed by signal 11: oh"),
    (3, "one two", "CLI_CRASHED", "ended with exit code 3 before the session was over: one two"),
    (0, None, "CLI_CRASHED", "ended with exit code 0 before the session was over."),
    (None, "oh", "CLI_START_FAILED", "ended while starting: oh"),
    (SessionOutcome("SESSION_FAILED", "It broke\noff."), "oh", "SESSION_FAILED", "It broke off. oh"),
]


@pytest.mark.parametrize(("crash", "stderr", "code", "reason"), CRASHES)
def test_every_breakdown_has_a_code_and_a_sentence(
    crash: SessionOutcome | int | None, stderr: str | None, code: str, reason: str
) -> None:
    facts = SessionFacts(stderr_tail=deque((stderr or "").split()), prompted=not code.startswith("CLI_START"))
    if isinstance(crash, SessionOutcome):
        facts.broken = crash
    else:
        facts.exit_code = crash
    verdict = judge(facts)
    assert (verdict.status, verdict.code) == (SessionStatus.FAILED, code)
    assert str(verdict.reason).removeprefix("Claude Code ") == reason


@pytest.mark.parametrize("broken", [None, SessionOutcome("CLI_START_TIMED_OUT", "It is silent.")])
def test_a_cli_that_never_began_was_not_confined(broken: SessionOutcome | None) -> None:
    verdict = judge(SessionFacts(broken=broken, begun=False, exit_code=125))
    assert (verdict.status, verdict.code) == (SessionStatus.FAILED, "SESSION_NOT_CONFINED")


def test_a_cli_that_exits_on_its_own_error_result_is_judged_by_the_result() -> None:
    result = ended("error_max_turns", "max_turns", error=True)
    verdict = judge(SessionFacts(ended=result, has_response=True, exit_code=1, prompted=True))
    assert verdict.status is SessionStatus.MAX_TURNS
