"""What a project's steering takes of a session's context, by what Claude Code gives a fresh session; no model is asked.

Each session sends its first request to the proxy, which keeps it and refuses it: there stand the listings as they were
cut, and the tools. Which CLAUDE.md files and rules are loaded says Claude Code itself. All texts are counted alike.
"""

import json
import secrets
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from zelda_ci.domain.check import ContextFinding, ContextItem, ContextListing, ContextReport
from zelda_ci.domain.kinds import FOLLOWED, KINDS, ItemKind, Shown
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import ExecutionError
from zelda_ci.events import Checking, Emit, Warned
from zelda_ci.execution import claude_code
from zelda_ci.execution.launch import SessionRequest
from zelda_ci.execution.manifest.front_matter import MarkdownDocument, parse
from zelda_ci.execution.manifest.loading import listed_as
from zelda_ci.execution.manifest.pins import find_pins
from zelda_ci.execution.manifest.scan import scan
from zelda_ci.execution.manifest.tree import Tree, Unfit
from zelda_ci.model_proxy.policy import Allowed
from zelda_ci.model_proxy.proxy import PROBE_HEADERS, ModelProxy
from zelda_ci.model_proxy.token_estimate import estimate_request, estimate_text
from zelda_ci.model_proxy.wire import Call, Headers
from zelda_ci.pipeline.fingerprints import TreeDigests, tree_digests
from zelda_ci.pipeline.invocation import Prepared
from zelda_ci.pipeline.steering_problems import steering_problems
from zelda_ci.workspace.workspaces import Workspaces

# Requests for token counts that are under way at once.
MAX_COUNTS = 8
# Keys of a request that its token count depends on.
COUNTED = ("model", "messages", "system", "tools")
ELLIPSIS = "…"


@dataclass(frozen=True)
class ItemTexts:
    """One thing that steers, with its texts: that which is always there, and that which comes on demand."""

    item: ManifestItem
    always: str = ""
    on_demand: str = ""
    cut: int = 0


@dataclass(frozen=True)
class SideContext:
    """What a fresh session is given."""

    parts: Sequence[ItemTexts]
    first: Call
    """Its first request."""
    window: int


async def context_report(prepared: Prepared, proxy: ModelProxy, emit: Emit) -> ContextReport:
    """List the tested files, and the base where one is wanted; where the steering files are the same, only once.

    Raises:
        ZeldaError: There is no such commit, no workspace, no Claude Code, or it did not start.
    """
    sides = {"head": prepared.workspaces, **({"base": prepared.base_workspaces} if prepared.order.against else {})}
    async with proxy, AsyncExitStack() as stack:
        emit(Checking("the files that steer"))
        opened = {name: await _open(side, prepared, proxy, stack) for name, side in sides.items()}
        head, given = opened["head"], dict[str, SideContext]()
        different = {name: it for name, it in opened.items() if it is head or it.tree.lines != head.tree.lines}
        emit(Checking(f"what Claude Code gives a fresh session ({' and '.join(different)})"))

        async def ask(name: str, side: Opened) -> None:
            given[name] = await _given(side, prepared, proxy, name)

        async with anyio.create_task_group() as group:
            for name, side in different.items():
                group.start_soon(ask, name, side)
        emit(Checking("sizes in tokens"))
        counts = await _counted(given.values(), prepared, proxy, emit)
        emit(Checking())
    listings = {name: _listing(it, given.get(name, given["head"]), counts, prepared) for name, it in opened.items()}
    return ContextReport(head=listings["head"], base=listings.get("base"))


@dataclass(frozen=True)
class Opened:
    """One side: where a session of it can begin, and what its files offer and say."""

    workspace: Workspace
    offered: ToolsManifest
    tree: TreeDigests
    findings: tuple[ContextFinding, ...]


async def _open(side: Workspaces, prepared: Prepared, proxy: ModelProxy, stack: AsyncExitStack) -> Opened:
    opening, redact = side.open(f"context-{secrets.token_hex(6)}", prepared.suites[0], proxy.socket), prepared.redact
    workspace = await stack.enter_async_context(opening)
    offered = await anyio.to_thread.run_sync(scan, workspace.root, workspace.path, redact)
    tree = await tree_digests(side, workspace, offered, redact)
    files = {file.path for file in tree.files}
    findings = await anyio.to_thread.run_sync(steering_problems, offered, workspace.root, files, redact)
    return Opened(workspace, offered, tree, findings)


async def _given(side: Opened, prepared: Prepared, proxy: ModelProxy, name: str) -> SideContext:
    """Begin a session, whose model is not asked, and take down what it is given."""
    workspace, suite, redact, usage = side.workspace, prepared.suites[0], prepared.redact, dict[str, Any]()
    pins = await anyio.to_thread.run_sync(lambda: find_pins(workspace, redact, mods=suite.isolation.mods))
    async with proxy.session(
        run_label=name, budget_usd=None, placeholders={}, allowed=Allowed(messages=False)
    ) as meter:
        request = SessionRequest(
            session_id=str(uuid.uuid4()),
            prompt=suite.prompt,
            workspace=workspace,
            execution=suite.execution,
            meter=meter,
            pins=pins,
            socket=workspace.confinement.socket if suite.isolation.network.session == "none" else None,
            keep_context=usage.update,
        )
        outcome = await claude_code.run_session(request, lambda _: None, redact)
    told = meter.context
    if told.first is None or not usage:
        why = outcome.reason or "it said nothing about its context"
        raise ExecutionError(f"Claude Code did not list what a session is given: {why}", code="CONTEXT_NOT_LISTED")
    files = _memory_files(usage, workspace)
    listings, tools = tuple(told.listings), {name: json.dumps(it) for name, it in told.definitions.items()}
    loaded = {str(tool.get("name")) for tool in told.first.body["tools"]}

    def parts() -> list[ItemTexts]:
        reader = _Reader(Tree(workspace.root), files, listings, tools, loaded)
        return [*reader.parts(side.offered)]

    return SideContext(await anyio.to_thread.run_sync(parts), told.first, int(usage.get("rawMaxTokens") or 0))


def _memory_files(usage: Mapping[str, Any], workspace: Workspace) -> frozenset[str]:
    """Return the CLAUDE.md files, imports and rules that are there from the start, relative to the top of the tree."""
    roots, found = (workspace.root, workspace.root.resolve()), set[str]()
    for file in usage.get("memoryFiles") or ():
        path = Path(str(file.get("path")))
        found |= {path.relative_to(root).as_posix() for root in roots if path.is_relative_to(root)}
    return frozenset(found)


@dataclass(frozen=True)
class _Reader:
    """Finds the texts of what a session was given, in the files and in its first request."""

    tree: Tree
    memory: frozenset[str]
    listings: Sequence[str]
    tools: Mapping[str, str]
    """Definitions by name, also of tools that wait behind a search."""
    loaded: set[str]
    """The tools that do not."""

    def parts(self, offered: ToolsManifest) -> Iterator[ItemTexts]:
        """Yield what takes part of the context, now or later."""
        for item in offered.items:
            if not (item.problem or item.shadowed):
                part = self._server(item) if item.kind is ItemKind.MCP_SERVER else self._document(item)
                if part.always or part.on_demand:
                    yield part

    def _server(self, item: ManifestItem) -> ItemTexts:
        own = {name: text for name, text in self.tools.items() if name.startswith(f"{item.tool}__")}
        waiting = sorted(own.keys() - self.loaded)
        always = "\n".join([*(own[name] for name in sorted(own.keys() & self.loaded)), *waiting])
        return ItemTexts(item, always, "\n".join(own[name] for name in waiting))

    def _document(self, item: ManifestItem) -> ItemTexts:
        document = MarkdownDocument()
        with suppress(Unfit):
            document = parse(self.tree.read(item.file))
        if item.kind in FOLLOWED:
            is_there = {item.file, self.tree.real(item.file)} & self.memory
            waits = item.below or item.paths
            return ItemTexts(item, document.shown) if is_there else ItemTexts(item, "", document.shown if waits else "")
        if not KINDS[item.kind].call or item.kind is ItemKind.WORKFLOW:
            return ItemTexts(item)
        body = document.body.strip()
        entry = next(iter(listed_as(item, self.listings)), None)
        description = (document.words("description") or "") if item.kind is ItemKind.AGENT else document.offer
        if entry is None:
            # One that waits for a folder comes with its description.
            later = f"{description}\n{body}" if item.below else body
            return ItemTexts(item, body if item.is_main else "", "" if item.is_main else later)
        seen = entry[1] or ""
        is_cut = item.shown is Shown.DESCRIPTION and (not seen or seen.endswith(ELLIPSIS))
        cut = max(0, len(description) - len(seen.removesuffix(ELLIPSIS))) if is_cut else 0
        if item.is_main:
            return ItemTexts(item, f"{entry[0]}\n{body}", "", cut)
        return ItemTexts(item, entry[0], body, cut)


@dataclass(frozen=True)
class _Counts:
    """Sizes in tokens, of texts and of first requests."""

    texts: Mapping[str, int]
    requests: Mapping[int, int]
    """By the identity of the request."""
    is_estimated: bool


async def _counted(sides: Iterable[SideContext], prepared: Prepared, proxy: ModelProxy, emit: Emit) -> _Counts:
    """Count all texts of all sides in one way: by the API, or where that does not answer each time, by an estimate."""
    sides, model = tuple(sides), prepared.suites[0].execution.model
    texts = {text for side in sides for part in side.parts for text in (part.always, part.on_demand) if text}
    if proxy.address:
        with suppress(_NotCountedError):
            return await _counted_by_api(texts, [side.first for side in sides], model, proxy)
        emit(Warned(f"{proxy.address} did not count all tokens, so every number is an estimate"))
    requests = {id(side.first): estimate_request(side.first.body) for side in sides}
    return _Counts({text: estimate_text(text, model) for text in texts}, requests, is_estimated=True)


class _NotCountedError(Exception):
    """The API gave no token count."""


async def _counted_by_api(texts: set[str], requests: Sequence[Call], model: str, proxy: ModelProxy) -> _Counts:
    # The one of a single token says what stands around a text.
    word, limiter = "x", anyio.CapacityLimiter(MAX_COUNTS)
    counts, firsts = dict[str, int](), dict[int, int]()

    async def count(found: dict[Any, int], key: str | int, body: dict[str, Any], headers: Headers) -> None:
        async with limiter:
            tokens = await proxy.count_tokens(body, headers)
        if tokens is None:
            raise _NotCountedError
        found[key] = tokens

    try:
        async with anyio.create_task_group() as group:
            for text in {*texts, word}:
                body = {"model": model, "messages": [{"role": "user", "content": text}]}
                group.start_soon(count, counts, text, body, PROBE_HEADERS)
            for first in requests:
                body = {key: first.body[key] for key in COUNTED if key in first.body}
                group.start_soon(count, firsts, id(first), body, first.headers)
    except* _NotCountedError:
        raise _NotCountedError from None
    frame = counts[word] - 1
    return _Counts({text: max(0, counts[text] - frame) for text in texts}, firsts, is_estimated=False)


def _listing(side: Opened, given: SideContext, counts: _Counts, prepared: Prepared) -> ContextListing:
    size = {"": 0, **counts.texts}
    items = tuple(
        ContextItem(
            kind=part.item.kind,
            name=part.item.name,
            file=part.item.file,
            always=size[part.always],
            on_demand=size[part.on_demand],
            cut=part.cut,
        )
        for part in given.parts
    )
    whole, source, redact = counts.requests[id(given.first)], side.workspace.source, prepared.redact
    return ContextListing(
        commit=None if source.parent or source.commit is None else redact(source.commit),
        model=redact(prepared.suites[0].execution.model),
        window=given.window,
        own=max(0, whole - sum(item.always for item in items)),
        is_estimated=counts.is_estimated,
        items=items,
        findings=side.findings,
    )
