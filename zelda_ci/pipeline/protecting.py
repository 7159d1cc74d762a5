"""Hidden tests: build and tests see a fresh checkout, in which protected files are as they were committed."""

from dataclasses import replace

from zelda_ci.domain.evaluation import EvalContext
from zelda_ci.domain.session import SessionStatus
from zelda_ci.errors import ZeldaError
from zelda_ci.events import Emit, Phase, PhaseStarted, Warned
from zelda_ci.pipeline import isolation
from zelda_ci.pipeline.tools import Tools
from zelda_ci.redact import SafeText, joined
from zelda_ci.storage.ledger import RunLedger

ABANDONED = {SessionStatus.FAILED, SessionStatus.INTERRUPTED}
MOST_NAMED = 50


async def protect(context: EvalContext, tools: Tools, ledger: RunLedger, emit: Emit) -> EvalContext:
    """The context for build and tests, where the suite protects files or shows them its own; else the same.

    What goes wrong here is counted against the session: it could have provoked it.
    """
    workspace, run_id = context.workspace, ledger.folder.run_id
    wanted = context.suite.protected_paths or context.suite.commands_see_suites
    if workspace is None or not wanted or context.transcript.status in ABANDONED:
        return context
    try:
        checked = await tools.workspaces.check_out_again(workspace)
    except ZeldaError as problem:
        why = tools.redact(f"Protected files could not be restored: {problem.message}")
        emit(Warned(why, run_id))
        return replace(context, unready=why)
    isolation.enter_protected(ledger, checked.restored)
    if checked.left_out:
        emit(
            Warned(
                f"build and tests do not see {', '.join(checked.left_out[:MOST_NAMED])}: too large or unreadable",
                run_id,
            )
        )
    context = replace(context, workspace=checked.workspace, checks=_told(checked.restored, tools))
    return await _set_up(context, tools, run_id, emit)


async def _set_up(context: EvalContext, tools: Tools, run_id: str, emit: Emit) -> EvalContext:
    """What setup made before the session is not in the fresh checkout."""
    suite, workspace = context.suite, context.workspace
    if suite.setup_command is None or workspace is None:
        return context
    if suite.build_command is None and suite.test_command is None:
        return context
    emit(PhaseStarted(run_id, Phase.SETUP))
    done = await tools.bench.command(workspace, "setup-again", suite.setup_command, suite.command_timeout_seconds)
    if done.exit_code == 0:
        return context
    how = "ran into its time limit" if done.timed_out else f"ended with exit code {done.exit_code}"
    return replace(context, unready=tools.redact(f"In the fresh checkout setupCommand {how}."))


def _told(restored: tuple[SafeText, ...], tools: Tools) -> tuple[SafeText, ...]:
    """For the judges, who see the session's own files."""
    if not restored:
        return ()
    names = joined(", ", restored[:MOST_NAMED])
    more = f" and {len(restored) - MOST_NAMED} more" if len(restored) > MOST_NAMED else ""
    sentence = "The session changed protected files, which build and tests saw as they were committed: "
    return (tools.redact(f"{sentence}{names}{more}."),)
