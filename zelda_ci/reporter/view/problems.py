"""What went wrong in a run, in one sentence, and what to do next."""

from zelda_ci.domain.evaluation import Metric
from zelda_ci.domain.judgement import CriterionVerdict
from zelda_ci.domain.outcome import failed_criteria
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.correctness import correctness_problem, last_lines
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.nouns import Problem, RunFiles
from zelda_ci.reporter.view.scores import label

LONGEST_CRITERION = 200
JUDGED = {Metric.REQUIREMENT_FULFILLMENT, Metric.TOOL_USAGE}

STATUS_WORDS = {
    SessionStatus.COMPLETED: "completed",
    SessionStatus.MAX_TURNS: "ran out of turns",
    SessionStatus.BUDGET_EXCEEDED: "reached its cost limit",
    SessionStatus.TIMED_OUT: "timed out",
    SessionStatus.FAILED: "failed",
    SessionStatus.INTERRUPTED: "interrupted",
}

BY_STATUS = {
    SessionStatus.MAX_TURNS: "See in the transcript where the turns went, then narrow the task or raise maxTurns.",
    SessionStatus.BUDGET_EXCEEDED: "See in the transcript what cost so much, then narrow the task or raise maxCostUsd.",
    SessionStatus.TIMED_OUT: "See in the transcript what it waited for, then narrow the task or raise timeoutSeconds.",
    SessionStatus.FAILED: "Read the end of the transcript; what was captured until then is kept.",
    SessionStatus.INTERRUPTED: "Run the suite again; what was captured until then is kept.",
}

BY_CODE = {
    "AUTHENTICATION_FAILED": "Check ANTHROPIC_API_KEY, and ANTHROPIC_BASE_URL if it is set.",
    "ACCESS_DENIED": "Check what the key of ANTHROPIC_API_KEY may use.",
    "BILLING_FAILED": "Check credit and limits of the account that the key belongs to.",
    "MODEL_NOT_FOUND": "Check execution.model: the full id of a model that the key may use.",
    "RATE_LIMITED": "Run it again later, or with fewer --jobs.",
    "API_OVERLOADED": "Run it again later: the model's provider is overloaded.",
    "API_FAILED": "Run it again later: the failure is on the side of the model's provider.",
    "API_UNREACHABLE": "Check the network, and ANTHROPIC_BASE_URL if it is set, then run it again.",
    "PROMPT_TOO_LONG": "Narrow the task, so that the session has less to read.",
    "REQUEST_TOO_LARGE": "Find in the transcript what was so large, often an image, and keep it from the session.",
    "HOOK_STOPPED": "Look at the hooks in .claude/settings.json: the transcript names the one that ran last.",
    "SETUP_FAILED": "Try setupCommand in a fresh clone of the tested commit: the session never started.",
    "CLI_MISSING": "Install zelda-ci again: the Claude Code CLI comes with it.",
    "BOUND_REACHED": "Find in the transcript what took so much; docs/workspace.md has the bounds.",
    "CLI_KILLED": "See whether memory ran out; fewer --jobs need less of it.",
    "ROOT_REFUSED": "Run Zelda as an ordinary user, or choose another execution.permissionMode.",
}


def problem(run: RunResult, files: RunFiles) -> Problem | None:
    """What keeps a run from having passed; nothing where it has."""
    if run.status is not SessionStatus.COMPLETED:
        return _of_session(run, files)
    return _of_evaluation(run, files) or correctness_problem(run, files) or _of_criteria(run, files)


def _of_session(run: RunResult, files: RunFiles) -> Problem:
    code = run.failure.code if run.failure else ""
    if run.failure:
        why = sentence(run.failure.message)
    else:
        why = f"The session {STATUS_WORDS[run.status]}; no reason was recorded."
    told = run.failure.hint if run.failure else None
    advice = sentence(told) if told else BY_CODE.get(code, BY_STATUS[run.status])
    started = "session" in run.phase_seconds or run.evaluations
    look = (files.transcript if started else files.setup_log if run.setup else None) or files.result
    return Problem(why, advice, look and visible(look, len(look)), _setup_output(run))


def _of_evaluation(run: RunResult, files: RunFiles) -> Problem | None:
    broken = [result for result in run.evaluations.values() if result.failed]
    if not broken:
        return None
    names = ", ".join(label(result.metric) for result in broken)
    judged = any(result.metric in JUDGED for result in broken)
    how = "could not be judged completely" if judged else "could not be evaluated"
    why = f"{names} {how}: {sentence(broken[0].reasoning)}"
    commands = any(result.metric is Metric.FUNCTIONAL_CORRECTNESS for result in broken)
    look = (commands and (files.test_log or files.build_log)) or files.result
    advice = "The session itself is complete and kept; run the suite again once the cause is gone."
    if judged:
        advice = f"The session is complete and kept: `zelda rejudge {visible(run.run_id)}` once the cause is gone."
    return Problem(why, advice, look and visible(look, len(look)))


def _of_criteria(run: RunResult, files: RunFiles) -> Problem | None:
    failed = failed_criteria(run)
    if not failed:
        return None
    more = f", and {numbers.count(len(failed) - 1, 'more', 'more')}" if len(failed) > 1 else ""
    undecided = " (undecided)" if failed[0].verdict is CriterionVerdict.UNDECIDED else ""
    why = f"Not met: {sentence(failed[0].criterion, LONGEST_CRITERION)}{undecided}{more}"
    look = files.patch or files.transcript
    advice = "Check the reasoning below against what the session changed."
    return Problem(why, advice, look and visible(look, len(look)))


def _setup_output(run: RunResult) -> tuple[str, ...]:
    """The last lines that a failed setup command printed."""
    return last_lines(run.setup) if run.setup and run.setup.exit_code != 0 else ()
