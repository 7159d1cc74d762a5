"""Sessions, suites and results for tests, in few words.

A session is a list of model responses:

    session("Read a.py", "Bash make test -> error", "> Grep x", '"Done."', cost=0.4)

- `Name argument` is a response with one tool call; ` + ` puts several into one response
- `-> text` is what came back, "ok" without it; `-> error`, `-> denied` and `-> nothing` (it never returned) are special
- `> ...` is a response of the sub-agent that the last `Agent` call started
- `"..."` is a response of text only; `!"..."` one that Claude Code invented
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from zelda_ci.domain.run import Failure, RunResult, Versions
from zelda_ci.domain.session import (
    AssistantSaid,
    Denied,
    Ended,
    ModelUsage,
    ResponseEnded,
    SessionRecord,
    SessionStatus,
    SessionTranscript,
    Started,
    ToolCalled,
    ToolReturned,
    Usage,
)
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.redact import Redactor, SafeText
from zelda_ci.storage.codec import transcript_of

safe = Redactor()
MODEL = safe("claude-sonnet-5-5")
START = datetime(2026, 2, 13, 14, 30, tzinfo=UTC)

_ARGUMENTS = {
    "Bash": "command",
    "Skill": "skill",
    "Agent": "subagent_type",
    "Task": "subagent_type",
    "Read": "file_path",
    "Edit": "file_path",
    "Write": "file_path",
    "LS": "path",
    "WebFetch": "url",
}


@dataclass
class _Script:
    clock: float = 0.0
    responses: int = 0
    calls: int = 0
    agent: SafeText | None = None
    usage: list[Usage] = field(default_factory=list)

    def tick(self) -> float:
        self.clock += 0.5
        return self.clock

    def play(self, step: str) -> Iterator[SessionRecord]:
        self.responses += 1
        message_id = safe(f"msg_{self.responses}")
        parent = self.agent if step.startswith("> ") else None
        step = step.removeprefix("> ")
        if step.startswith(('"', '!"')):
            model = safe("<synthetic>") if step.startswith("!") else MODEL
            text = safe(step.strip('!"'))
            yield AssistantSaid(
                at=self.tick(), message_id=message_id, model=model, text=text, parent_tool_call_id=parent
            )
            calls: list[tuple[ToolCalled, str]] = []
        else:
            calls = [self.call(part, message_id, parent) for part in step.split(" + ")]
            yield from (called for called, _ in calls)
        if not step.startswith("!"):
            self.usage.append(Usage(input_tokens=10, output_tokens=20, cache_read_tokens=300, cache_write_tokens=40))
            yield ResponseEnded(at=self.tick(), message_id=message_id, usage=self.usage[-1], parent_tool_call_id=parent)
        for called, outcome in calls:
            yield from self.answer(called, outcome)

    def call(self, part: str, message_id: SafeText, parent: SafeText | None) -> tuple[ToolCalled, str]:
        self.calls += 1
        written, _, outcome = part.partition(" -> ")
        name, _, argument = written.partition(" ")
        call_id = safe(f"toolu_{self.calls}")
        if name in {"Agent", "Task"}:
            self.agent = call_id
        given = safe.json({_ARGUMENTS.get(name, "argument"): argument} if argument else {})
        called = ToolCalled(
            at=self.tick(),
            message_id=message_id,
            model=MODEL,
            id=call_id,
            name=safe(name),
            input=given,
            parent_tool_call_id=parent,
        )
        return called, outcome or "ok"

    def answer(self, called: ToolCalled, outcome: str) -> Iterator[SessionRecord]:
        if outcome == "nothing":
            return
        if outcome == "denied":
            yield Denied(at=self.tick(), tool=called.name, tool_call_id=called.id, reason=safe("not allowed"))
        yield ToolReturned(
            at=self.tick(),
            id=called.id,
            output=safe(outcome),
            is_error=outcome in {"error", "denied"},
            parent_tool_call_id=called.parent_tool_call_id,
        )


def records(*steps: str, cost: float = 0.1, ended: bool = True, cost_known: bool = True) -> list[SessionRecord]:
    """The records of a session; with `ended=False` as after a kill: without a result message."""
    script = _Script()
    happened: list[SessionRecord] = [
        Started(
            at=script.tick(),
            session_id=safe("00000000-0000-4000-8000-000000000000"),
            cli_version=safe("2.1.329"),
            model=MODEL,
            permission_mode=safe("bypassPermissions"),
        )
    ]
    for step in steps:
        happened += script.play(step)
    if ended:
        total = sum(script.usage, Usage())
        spent = ModelUsage(**total.model_dump(), cost_usd=cost, cost_known=cost_known)
        happened.append(
            Ended(
                at=script.tick(),
                subtype=safe("success"),
                is_error=False,
                terminal_reason=safe("completed"),
                turns=len(steps),
                api_seconds=script.clock / 2,
                cost_usd=cost,
                model_usage={MODEL: spent},
            )
        )
    return happened


def session(
    *steps: str,
    cost: float = 0.1,
    seconds: float = 10.0,
    status: SessionStatus = SessionStatus.COMPLETED,
    ended: bool = True,
    cost_known: bool = True,
) -> SessionTranscript:
    """The transcript of a session."""
    return transcript(records(*steps, cost=cost, ended=ended, cost_known=cost_known), status=status, seconds=seconds)


def transcript(
    happened: Iterable[SessionRecord], *, status: SessionStatus = SessionStatus.COMPLETED, seconds: float = 10.0
) -> SessionTranscript:
    """The transcript of records."""
    failure = None if status is SessionStatus.COMPLETED else Failure(code="X", message=safe("It did not."))
    return transcript_of(result(status=status, failure=failure), safe("Do it."), tuple(happened), seconds)


def suite(name: str = "example", **settings: Any) -> ResolvedSuite:
    """A suite with the settings that matter to the test: `suite(execution={"maxTurns": 5})`."""
    return ResolvedSuite.model_validate(
        {"name": name, "file": f"zelda/test-{name}.yaml", "prompt": "Do it.", **settings}
    )


def result(run_id: str = "example-2026-02-13T14-30-00", **fields: Any) -> RunResult:
    """A result with the fields that matter to the test."""
    given = {
        "run_id": run_id,
        "batch_id": run_id,
        "suite": "example",
        "status": SessionStatus.COMPLETED,
        "started_at": START,
        "finished_at": START,
        "versions": Versions(zelda="0.1.0", agent_sdk="0.2.186", cli="2.1.329", python="3.11.7"),
        "config": suite(),
        **fields,
    }
    return RunResult(**given)
