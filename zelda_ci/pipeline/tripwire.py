"""Telling whether the developer's tree stayed as it was: never a reason to fail, always a reason to tell."""

import anyio.to_thread

from zelda_ci.domain.isolation import Tripwire
from zelda_ci.errors import ZeldaError
from zelda_ci.events import Emit, Warned
from zelda_ci.pipeline import isolation
from zelda_ci.pipeline.tools import Tools
from zelda_ci.storage.ledger import RunLedger
from zelda_ci.workspace.tripwire import Watched

MOST_NAMED = 5


async def arm(tools: Tools, ledger: RunLedger, emit: Emit) -> Watched | None:
    """Look at the developer's tree before anything of the project runs."""
    try:
        return await tools.workspaces.watch()
    except (OSError, ZeldaError) as problem:
        emit(Warned(f"whether your own files stay as they are will not be known: {problem}", ledger.folder.run_id))
        return None


async def read(watched: Watched | None, tools: Tools, ledger: RunLedger, emit: Emit) -> None:
    """Look again, and tell what is different."""
    if watched is None:
        return
    found = await anyio.to_thread.run_sync(watched.compare, tools.redact)
    isolation.enter_tripwire(ledger, found)
    if found.changes:
        emit(Warned(_told(found), ledger.folder.run_id))


def _told(found: Tripwire) -> str:
    named = ", ".join(f"{change.path} ({change.kind})" for change in found.changes[:MOST_NAMED])
    others = len(found.changes) - MOST_NAMED + found.more
    more = f" and {others} more" if others > 0 else ""
    return f"your own files changed while the run was under way, by the run or by somebody else: {named}{more}"
