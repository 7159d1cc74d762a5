"""Labelled cases for judges: what a session did, and what is true of it. Read from `tests/data/judge_cases`.

A case is a small project, what a session said and did in it, how it left the files, and acceptance criteria with the
true verdict, the reason, and the places that prove it. `build` makes of it what evaluators get: a real work tree in a
real repository, a transcript assembled from records, the patch of git. The format: `tests/data/judge_cases/README.md`.
"""

import io
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from tests.builders import MODEL, result, suite
from tests.support.cited import cite
from tests.support.projects import ENVIRON
from tests.support.steered import workspace_in, write
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.domain.run import EvalContext, Failure
from zelda_ci.domain.session import (
    ApiUsage,
    AssistantSaid,
    Denied,
    Ended,
    HookRan,
    McpServerState,
    Noticed,
    ResponseEnded,
    ServersReported,
    SessionRecord,
    SessionStatus,
    Started,
    ToolCalled,
    ToolReturned,
    Usage,
    UserSaid,
)
from zelda_ci.domain.workspace import Changes
from zelda_ci.redact import Redactor, SafeText
from zelda_ci.storage.codec import transcript_of
from zelda_ci.workspace.changes import PATCH, copy_sections, read_counts

FOLDER = Path(__file__).parents[1] / "data" / "judge_cases"
safe = Redactor()

# The argument that is written behind the name of a tool.
MAIN_ARGUMENTS = {
    "Bash": "command",
    "Read": "file_path",
    "Edit": "file_path",
    "Write": "file_path",
    "Glob": "pattern",
    "Grep": "pattern",
    "Skill": "skill",
    "Agent": "subagent_type",
    "WebFetch": "url",
}


class Strict(BaseModel):
    """A misspelt key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Generated(Strict):
    """A long text that is not stored: numbered lines that are alike, and those that are not."""

    lines: int
    like: str
    """With `{n}` for the number of the line, from 1."""
    but: dict[int, str] = {}

    def __str__(self) -> str:
        return "".join(f"{self.but.get(n) or self.like.format(n=n)}\n" for n in range(1, self.lines + 1))


Text = str | Generated


class Place(Strict):
    """Where something stands: `path`, `path:3`, `path:3-5`, `patch:path`, `turn 2`, `@name`, `@name call 2`, `task`,
    `build-and-tests`, or `absent: PATTERN in PATHS`."""

    at: str
    quote: str = ""


class Lure(Place):
    """What a judge may cite that has fallen for the trap, or lies."""

    kind: Literal["claim", "removed", "invented", "beside"]


class Criterion(Strict):
    """An acceptance criterion, and what is true of it."""

    text: str
    about: Literal["result", "answer"] = "result"
    """Those about the answer come last: so they are numbered."""
    verdict: Literal["PASS", "FAIL", "UNDECIDED"]
    why: str
    proof: tuple[Place, ...] = ()
    lures: tuple[Lure, ...] = ()


class CallData(Strict):
    call: str
    """The tool, then its main argument."""
    input: dict[str, str | list[dict[str, str]]] = {}
    out: Text = ""
    error: bool = False
    denied: bool = False
    lost: bool = False
    """True where it never returned."""


class Step(Strict):
    """A response of the model, or what happened around it."""

    id: str | None = None
    agent: str | None = Field(None, alias="in")
    """The step whose first call started the sub-agent that this belongs to."""
    think: str | None = None
    say: str | None = None
    calls: tuple[CallData, ...] = ()
    user: str | None = None
    hook: tuple[str, str, str] | None = None
    """Name, event, output."""
    notice: str | None = None
    filler: int = 0
    """So many responses that look at files and decide nothing."""


class Offer(Strict):
    """Something that steers."""

    kind: ItemKind
    name: str
    about: str | None = None
    text: str | None = None
    tools: tuple[str, ...] = ()
    loaded: bool = True
    reason: str | None = None


class UsageLabel(Strict):
    """What is true of a tool or a rule that was offered."""

    of: str
    verdict: Literal["USED_WELL", "INSTRUCTIONS_IGNORED", "MISSED", "MISUSED", "FOLLOWED", "BROKEN", "NOT_APPLICABLE"]
    why: str
    proof: tuple[Place, ...] = ()


class JudgeCase(Strict):
    """One session, and what is true of it."""

    name: str
    trap: str = ""
    task: str
    start: dict[str, Text] = {}
    """Files of the commit that the session began with."""
    final: dict[str, Text | None] = {}
    """Files as the session left them; None for one that is gone; all others are unchanged."""
    turns: tuple[Step, ...] = ()
    checks: tuple[str, ...] = ()
    status: SessionStatus = SessionStatus.COMPLETED
    servers: dict[str, str] = {}
    """MCP servers that did not connect, with the error."""
    offer: tuple[Offer, ...] = ()
    usage: tuple[UsageLabel, ...] = ()
    criteria: tuple[Criterion, ...] = ()


@cache
def all_cases() -> tuple[JudgeCase, ...]:
    """Every case; its trap is the name of the file that holds it."""
    return tuple(
        JudgeCase.model_validate({"trap": file.stem, **case})
        for file in sorted(FOLDER.glob("*.yaml"))
        for case in yaml.load(file.read_text("utf-8"), yaml.CSafeLoader)
    )


@dataclass(frozen=True)
class BuiltCase:
    """A case as evaluators get it."""

    case: JudgeCase
    context: EvalContext
    names: Mapping[str, int]
    """The numbers of the turns that have a name."""

    def place(self, place: Place) -> dict[str, Any]:
        """As a judge cites it: by the number of the turn."""
        return cite(self.where(place.at), place.quote)

    def where(self, at: str) -> str:
        return re.sub(r"^@([\w-]+)", lambda match: f"turn {self.names[match[1]]}", at)

    @property
    def tree(self) -> Path:
        assert self.context.workspace is not None
        return self.context.workspace.root

    @property
    def patch(self) -> str:
        assert self.context.changes is not None
        return self.context.changes.patch.read_text("utf-8")


def build(case: JudgeCase, folder: Path, **settings: Any) -> BuiltCase:
    """Make the work tree, the patch and the transcript.

    Args:
        case: Which one.
        folder: Empty, or not there.
        settings: Further ones of the suite.
    """
    tree = folder / "tree"
    tree.mkdir(parents=True)
    _git(tree, "init", "--quiet", "--initial-branch=main")
    write(tree, {name: str(text) for name, text in case.start.items()})
    _git(tree, "add", "--all")
    _git(tree, "commit", "--quiet", "--allow-empty", "--message=start")
    _leave(tree, case.final)
    script = _Script(case)
    failure = Failure(code="X", message=safe("It did not end by itself."))
    run = result(f"{case.name}-2026-02-13T14-30-00", status=case.status, failure=failure)
    if case.status is SessionStatus.COMPLETED:
        run = run.replace(failure=None)
    transcript = transcript_of(run, safe(case.task), tuple(script.records()), 60.0)
    numbers = {turn.message_id: turn.index for turn in transcript.turns}
    names = {name: numbers[safe(message)] for name, message in script.names.items()}
    resolved = suite(
        case.name,
        prompt=case.task,
        acceptanceCriteria=[criterion.text for criterion in case.criteria if criterion.about == "result"],
        answerCriteria=[criterion.text for criterion in case.criteria if criterion.about == "answer"],
        **settings,
    )
    context = EvalContext(
        resolved,
        workspace_in(tree),
        transcript,
        ApiUsage(),
        _changes(tree, folder),
        checks=tuple(map(safe, case.checks)),
        manifest=ToolsManifest(items=tuple(map(_item, case.offer))),
    )
    return BuiltCase(case, context, names)


def _leave(tree: Path, final: Mapping[str, Text | None]) -> None:
    """The files as the session left them."""
    write(tree, {name: str(text) for name, text in final.items() if text is not None})
    for name in (name for name, text in final.items() if text is None):
        (tree / name).unlink()


def _changes(tree: Path, folder: Path) -> Changes:
    """What git says, with the options that Zelda gives it."""
    _git(tree, "add", "--all")
    raw, target = io.BytesIO(_git(tree, *PATCH, "HEAD")), folder / "changes.patch"
    counts = read_counts(raw)
    with target.open("wb") as file:
        cut = copy_sections(raw, file, safe, complete=True)
    added, removed = (sum(count[side] for count in counts.values()) for side in (0, 1))
    files, size = tuple(map(safe, sorted(counts))), target.stat().st_size
    return Changes(files=files, insertions=added, deletions=removed, patch=target, patch_bytes=size, truncated=cut)


def _git(tree: Path, *arguments: str) -> bytes:
    command = ["git", "-c", "core.autocrlf=false", *arguments]
    return subprocess.run(
        command, cwd=tree, env={**ENVIRON, "HOME": os.devnull}, check=True, capture_output=True
    ).stdout


def _item(offer: Offer) -> ManifestItem:
    return ManifestItem(
        kind=offer.kind,
        name=safe(offer.name),
        file=safe(offer.name),
        description=safe(offer.about) if offer.about else None,
        text=safe(offer.text) if offer.text else None,
        tools=tuple(map(safe, offer.tools)),
        loaded=offer.loaded,
        reason=safe(offer.reason) if offer.reason else None,
    )


@dataclass
class _Script:
    """The records of a case."""

    case: JudgeCase
    clock: float = 0.0
    responses: int = 0
    names: dict[str, str] = field(default_factory=dict)
    """Message ids of the steps that have a name."""
    first_calls: dict[str, SafeText] = field(default_factory=dict)

    def tick(self) -> float:
        self.clock += 0.5
        return self.clock

    def records(self) -> Iterator[SessionRecord]:
        yield Started(
            at=self.tick(),
            session_id=safe("00000000-0000-4000-8000-000000000000"),
            cli_version=safe("2.1.329"),
            model=MODEL,
            permission_mode=safe("bypassPermissions"),
        )
        servers = [
            McpServerState(name=safe(name), status=safe("failed"), error=safe(error))
            for name, error in self.case.servers.items()
        ]
        if servers:
            yield ServersReported(at=self.tick(), servers=tuple(servers))
        for step in self.case.turns:
            yield from self._step(step)
        if self.case.status is SessionStatus.COMPLETED:
            yield Ended(at=self.tick(), subtype=safe("success"), is_error=False, turns=self.responses)

    def _step(self, step: Step) -> Iterator[SessionRecord]:
        parent = self.first_calls[step.agent] if step.agent else None
        if step.user is not None:
            yield UserSaid(at=self.tick(), text=safe(step.user), parent_tool_call_id=parent)
        if step.hook is not None:
            name, event, output = map(safe, step.hook)
            yield HookRan(at=self.tick(), name=name, event=event, outcome=safe("success"), output=output)
        if step.notice is not None:
            yield Noticed(at=self.tick(), kind=safe("notice"), text=safe(step.notice), parent_tool_call_id=parent)
        for number in range(step.filler):
            yield from self._response(_idle(number), parent)
        if step.say or step.think or step.calls:
            yield from self._response(step, parent)

    def _response(self, step: Step, parent: SafeText | None) -> Iterator[SessionRecord]:
        self.responses += 1
        message = safe(f"msg_{self.responses}")
        if step.id:
            self.names[step.id] = message
        for words, thinking in ((step.think, True), (step.say, False)):
            if words:
                yield AssistantSaid(
                    at=self.tick(),
                    message_id=message,
                    model=MODEL,
                    text=safe(words),
                    thinking=thinking,
                    parent_tool_call_id=parent,
                )
        called = [self._call(call, message, number, parent) for number, call in enumerate(step.calls, start=1)]
        yield from called
        if step.id and called:
            self.first_calls[step.id] = called[0].id
        usage = Usage(input_tokens=10, output_tokens=20, cache_read_tokens=300, cache_write_tokens=40)
        yield ResponseEnded(at=self.tick(), message_id=message, usage=usage, parent_tool_call_id=parent)
        for call, given in zip(step.calls, called, strict=True):
            yield from self._returned(call, given)

    def _call(self, call: CallData, message: SafeText, number: int, parent: SafeText | None) -> ToolCalled:
        name, _, argument = call.call.partition(" ")
        main = {MAIN_ARGUMENTS.get(name, "argument"): argument} if argument else {}
        return ToolCalled(
            at=self.tick(),
            message_id=message,
            model=MODEL,
            id=safe(f"toolu_{self.responses}_{number}"),
            name=safe(name),
            input=safe.json({**main, **call.input}),
            parent_tool_call_id=parent,
        )

    def _returned(self, call: CallData, called: ToolCalled) -> Iterator[SessionRecord]:
        if call.lost:
            return
        if call.denied:
            yield Denied(at=self.tick(), tool=called.name, tool_call_id=called.id, reason=safe("not allowed"))
        yield ToolReturned(
            at=self.tick(),
            id=called.id,
            output=safe(str(call.out)),
            is_error=call.error or call.denied,
            parent_tool_call_id=called.parent_tool_call_id,
        )


def _idle(number: int) -> Step:
    """A response that decides nothing."""
    name = f"src/legacy/module_{number:03}.py"
    listing = "".join(f"{line}\tvalue_{line} = compute_{number}({line})\n" for line in range(1, 41))
    call = CallData(call=f"Read {name}", out=listing)
    return Step(say=f"Next I look at {name}.", calls=(call,))
