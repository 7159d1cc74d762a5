"""Leading a run's session: through the model proxy, every record to disk first, then to whoever watches."""

import uuid

import anyio.to_thread

from zelda_ci.domain.run import Failure
from zelda_ci.domain.session import Noticed, SessionRecord, SessionStatus
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Workspace
from zelda_ci.events import Emit, SessionProgressed, Warned
from zelda_ci.execution.agent import ModelEndpoint, SessionOutcome, SessionRequest
from zelda_ci.execution.manifest import overrides
from zelda_ci.model_proxy.proxy import Meter, Models
from zelda_ci.pipeline import isolation
from zelda_ci.pipeline.tools import PlannedRun, Tools
from zelda_ci.storage.ledger import RunLedger

WEB = {"WebFetch", "WebSearch"}
"""Tools with which a session may make the API turn to addresses."""

TASK_ENDED = "task_notification"
"""Kind of the notice that a command or sub-agent in the background has ended."""

API_CODES = frozenset({"API_FAILED", "API_UNREACHABLE"})
"""Of sessions that ended because the API did not answer."""

MOST_DIFFERENCES = 5
"""Of a replay from its recording that are told one by one."""


async def lead(planned: PlannedRun, workspace: Workspace, tools: Tools, ledger: RunLedger, emit: Emit) -> None:
    """Lead the session and enter in the ledger how it went, what was heard and what it used.

    Raises:
        ZeldaError: It could not even be started.
    """
    suite, run_id = planned.suite, ledger.folder.run_id
    folders = {"workspace": workspace.path, "root": workspace.root, "home": workspace.home, "tmp": workspace.tmp}
    places = {name: str(folder) for name, folder in folders.items()}
    found = await anyio.to_thread.run_sync(overrides.find, workspace, tools.redact)
    isolation.enter_findings(ledger, found.findings)
    with tools.proxy.session(
        run_label=planned.label,
        budget_usd=suite.execution.max_cost_usd,
        placeholders=places,
        models=Models.of(suite.execution.model, suite.execution.extra_models),
        web=any(rule.partition("(")[0] in WEB for rule in suite.execution.allowed_tools),
    ) as meter:

        def hear(record: SessionRecord) -> None:
            ledger.hear(record)
            if isinstance(record, Noticed) and record.kind == TASK_ENDED and record.parent_tool_call_id:
                meter.task_ended(record.parent_tool_call_id)
            emit(SessionProgressed(run_id, record, ledger.turns, meter.cost_usd))

        request = SessionRequest(
            session_id=str(uuid.uuid4()),
            prompt=suite.prompt,
            workspace=workspace,
            execution=suite.execution,
            endpoint=_endpoint(suite, workspace, meter),
            stop=meter.exhausted,
            pinned=found.variables,
        )
        try:
            _settle(await tools.agent.run(request, hear), meter, tools, ledger)
        finally:
            api = meter.usage()
            ledger.learn(api=api, models=tuple(sorted(api.models)))
    for model in meter.refused_models:
        emit(Warned(f"the session may not ask the model {tools.redact(model)}: see execution.extraModels", run_id))
    for sentence in _about_the_cassette(meter, replayed=tools.replayed):
        emit(Warned(sentence, run_id))


def _endpoint(suite: ResolvedSuite, workspace: Workspace, meter: Meter) -> ModelEndpoint:
    """Where the sandbox has no network, its own name of the proxy's socket."""
    closed = suite.isolation.network.session == "none"
    return ModelEndpoint(meter.base_url, meter.token, workspace.confinement.socket if closed else None)


def _settle(outcome: SessionOutcome, meter: Meter, tools: Tools, ledger: RunLedger) -> None:
    ledger.wall_seconds = outcome.wall_seconds
    status, failure = outcome.status, None
    if status is not SessionStatus.COMPLETED:
        reason = outcome.reason or tools.redact(f"The session ended as {status}.")
        failure = Failure(code=outcome.code or "SESSION_FAILED", message=reason)
    if meter.outage and outcome.code in API_CODES:
        # Claude Code's own words name the proxy's address, which nobody has configured.
        failure = Failure(code="API_UNREACHABLE", message=tools.redact(f"{meter.outage}."))
    if meter.failure and tools.replayed:
        status, failure = SessionStatus.FAILED, Failure(code="CASSETTE_MISMATCH", message=meter.failure)
    ledger.end(status, failure)


def _about_the_cassette(meter: Meter, *, replayed: bool) -> list[str]:
    """What to know about a recording that failed, or a replay that was not exactly the recording."""
    if meter.failure:
        return [] if replayed else [meter.failure]
    differences = [*meter.divergences, *(f"not asked for: {exchange}" for exchange in meter.unused)]
    return [f"the replay was not exactly what was recorded: {text}" for text in differences[:MOST_DIFFERENCES]]
