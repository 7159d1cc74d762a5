"""What a project's steering takes of a session's context, and what of it does not work; no model is asked.

Each session sends its first request to the proxy, which keeps it and refuses it: there stand the listings as they were
cut, and the tools. Which CLAUDE.md files and rules are loaded says Claude Code itself. All texts are counted alike.
"""

import json
import re
import secrets
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any, NamedTuple

import anyio
import anyio.to_thread

from zelda_ci.domain.check import ContextFinding, ContextItem, ContextListing, ContextReport
from zelda_ci.domain.kinds import CALLED, FOLLOWED, KINDS, ItemKind, Shown
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.domain.numbers import whole
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import ExecutionError
from zelda_ci.events import Checking, Emit, Warned
from zelda_ci.execution import claude_code
from zelda_ci.execution.doctor import refusals
from zelda_ci.execution.manifest.folders import SAME_NAME
from zelda_ci.execution.manifest.front_matter import COMMENT, MarkdownDocument, mentioned, parse
from zelda_ci.execution.manifest.loading import listed_as
from zelda_ci.execution.manifest.pins import find_pins
from zelda_ci.execution.manifest.scan import IMPORTED_BY, scan
from zelda_ci.execution.manifest.tree import MAX_DESCRIPTION_LENGTH, Tree, Unfit
from zelda_ci.files import globs
from zelda_ci.model_proxy.policy import Allowed
from zelda_ci.model_proxy.pricing import estimate_request, estimate_text
from zelda_ci.model_proxy.proxy import PROBE_HEADERS, ModelProxy
from zelda_ci.model_proxy.wire import Call, Headers
from zelda_ci.pipeline.fingerprints import TreeDigests, tree_digests
from zelda_ci.pipeline.invocation import Prepared
from zelda_ci.pipeline.linting import word_runs
from zelda_ci.pipeline.run import session_request
from zelda_ci.redact import Redactor
from zelda_ci.workspace.workspaces import Workspaces

# Requests for token counts that are under way at once.
MAX_COUNTS = 8
# Keys of a request that its token count depends on.
COUNTED = ("model", "messages", "system", "tools")
ELLIPSIS, TOP = "…", "/project"
MAX_QUOTE = 60
# Each MCP server under its name with what it says of itself, which may have headings, too.
INSTRUCTED = "MCP servers have provided instructions"
INSTRUCTIONS = r"(?ms)^(## ({0})\n.*?)(?=\n\n## (?:{0})\n|\n\nThe following skills|\Z)"
# Sizes in tokens, by text, and of first requests by their identity.
_Counts = dict[str | int, int]
# A file, its line, what is wrong there, and what to do.
_Problem = tuple[str, int, str, str]


class ItemTexts(NamedTuple):
    """One thing that steers, with its texts: that which is always there, and that which comes on demand."""

    item: ManifestItem
    always: str = ""
    on_demand: str = ""
    cut: int = 0


@dataclass(frozen=True)
class SideContext:
    """What a fresh session is given; `first` is its first request."""

    parts: Sequence[ItemTexts]
    first: Call
    window: int


@dataclass(frozen=True)
class Opened:
    """One side: where a session of it can begin, and what its files offer and say."""

    workspace: Workspace
    offered: ToolsManifest
    tree: TreeDigests
    findings: tuple[ContextFinding, ...]


async def context_report(prepared: Prepared, proxy: ModelProxy, emit: Emit) -> ContextReport:
    """List the tested files, and the base where one is wanted; where the steering files are the same, only once."""
    # The base first: it may not exist, and files are copied.
    sides = {**({"base": prepared.base_workspaces} if prepared.order.against else {}), "head": prepared.workspaces}
    async with proxy, AsyncExitStack() as stack:
        emit(Checking("the files that steer"))
        opened = {name: await _open(side, prepared, proxy, stack) for name, side in sides.items()}
        head, given = opened["head"], dict[str, SideContext]()
        different = {name: it for name, it in opened.items() if it is head or it.tree.lines != head.tree.lines}
        emit(Checking(f"what Claude Code gives a fresh session ({' and '.join(different)})"))
        async with anyio.create_task_group() as group:
            for name, side in different.items():
                group.start_soon(_ask, given, name, side, prepared, proxy)
        emit(Checking("sizes in tokens"))
        # All texts of all sides in one way: by the API, or where that does not answer each time, by an estimate.
        parts, firsts = [it for side in given.values() for it in side.parts], [side.first for side in given.values()]
        texts, model = {it.always for it in parts} | {it.on_demand for it in parts}, prepared.suites[0].execution.model
        counts = await _counted_by_api(texts, firsts, model, proxy) if proxy.address else None
        if proxy.address and counts is None:
            emit(Warned(f"{proxy.address} did not count all tokens, so every number is an estimate"))
        estimates: _Counts = {text: estimate_text(text, model) for text in texts if counts is None}
        estimates |= {id(first): estimate_request(first.body) for first in firsts if counts is None}
        sizes = {**(counts or estimates), "": 0}
        emit(Checking())

    def listing(name: str) -> ContextListing:
        side, source, redact = given.get(name, given["head"]), opened[name].workspace.source, prepared.redact
        items = tuple(
            ContextItem(kind=it.kind, name=it.name, file=it.file, always=sizes[now], on_demand=sizes[later], cut=cut)
            for it, now, later, cut in side.parts
        )
        return ContextListing(
            commit=None if source.parent or source.commit is None else redact(source.commit),
            model=redact(model),
            window=side.window,
            own=max(0, sizes[id(side.first)] - sum(item.always for item in items)),
            is_estimated=counts is None,
            items=items,
            findings=opened[name].findings,
        )

    return ContextReport(head=listing("head"), base=listing("base") if "base" in opened else None)


async def _open(side: Workspaces, prepared: Prepared, proxy: ModelProxy, stack: AsyncExitStack) -> Opened:
    opening, redact = side.open(f"context-{secrets.token_hex(6)}", prepared.suites[0], proxy.socket), prepared.redact
    workspace = await stack.enter_async_context(opening)
    offered = await anyio.to_thread.run_sync(scan, workspace.root, workspace.path, redact, refusals)
    tree = await tree_digests(side, workspace, offered, redact)
    files = {file.path for file in tree.files}
    findings = await anyio.to_thread.run_sync(steering_problems, offered, workspace.root, files, redact)
    return Opened(workspace, offered, tree, findings)


async def _ask(given: dict[str, SideContext], name: str, side: Opened, prepared: Prepared, proxy: ModelProxy) -> None:
    """Begin a session, whose model is not asked, and take down what it is given."""
    workspace, suite, redact, usage = side.workspace, prepared.suites[0], prepared.redact, dict[str, Any]()
    pins = await anyio.to_thread.run_sync(lambda: find_pins(workspace, redact, mods=suite.isolation.mods))
    allowed = Allowed(messages=False)
    async with proxy.session(run_label=name, budget_usd=None, placeholders={}, allowed=allowed) as meter:
        request = replace(session_request(suite, workspace, meter, pins), keep_context=usage.update)
        outcome = await claude_code.run_session(request, lambda _: None, redact)
    told, first, memory = meter.context, meter.context.first, usage.get("memoryFiles") or ()
    if first is None or not usage:
        why = outcome.reason or "it said nothing about its context"
        raise ExecutionError(f"Claude Code did not list what a session is given: {why}", code="CONTEXT_NOT_LISTED")

    def parts() -> list[ItemTexts]:
        """What takes part of the context, now or later."""
        tree, loaded = Tree(workspace.root), {str(tool.get("name")) for tool in first.body["tools"]}
        definitions = {name: json.dumps(it) for name, it in told.definitions.items()}
        # From the top of the tree, the CLAUDE.md files, imports and rules that are there from the start.
        roots, paths = {workspace.root, workspace.root.resolve()}, [Path(str(it.get("path"))) for it in memory]
        files = {path.relative_to(top).as_posix() for path in paths for top in roots if path.is_relative_to(top)}
        # Of files that are followed, Claude Code's word counts, whatever we make of its settings; those are called so.
        usable = [it for it in side.offered.items if not (it.shadowed or (it.problem and it.name != it.file))]
        servers = "|".join(re.escape(it.name) for it in usable if it.kind is ItemKind.MCP_SERVER)
        instructions = "\n".join(told.listings).partition(INSTRUCTED)[2]
        said = {name: it for it, name in re.findall(INSTRUCTIONS.format(servers), instructions)}
        found = (
            _server(item, definitions, loaded, said.get(item.name, ""))
            if item.kind is ItemKind.MCP_SERVER
            else _document(item, tree, files, tuple(told.listings))
            for item in usable
        )
        return [part for part in found if part.always or part.on_demand]

    texts, window = await anyio.to_thread.run_sync(parts), int(usage.get("rawMaxTokens") or 0)
    # In a folder of the same name each time, so that the sizes are the same, too.
    body = json.loads(json.dumps(first.body, ensure_ascii=False).replace(str(workspace.root), TOP))
    given[name] = SideContext(texts, replace(first, body=body), window)


def _server(item: ManifestItem, tools: Mapping[str, str], loaded: Collection[str], said: str) -> ItemTexts:
    """What a server has `said` of itself, and its tools by definitions, those that are not `loaded` behind a search."""
    own = {name: tools[name] for name in sorted(tools) if name.startswith(f"{item.tool}__")}
    waiting = [name for name in own if name not in loaded]
    always = "\n".join([*filter(None, [said]), *(text for name, text in own.items() if name in loaded), *waiting])
    return ItemTexts(item, always, "\n".join(own[name] for name in waiting))


def _document(item: ManifestItem, tree: Tree, memory: Collection[str], listings: Sequence[str]) -> ItemTexts:
    document, waits = MarkdownDocument(), not item.problem and (item.below or item.paths)
    # The code of a workflow says nothing to the model.
    with suppress(Unfit):
        document = document if item.kind is ItemKind.WORKFLOW else parse(tree.read(item.file))
    if item.kind in FOLLOWED:
        is_there = item.file in memory or tree.real(item.file) in memory
        return ItemTexts(item, document.shown) if is_there else ItemTexts(item, "", document.shown if waits else "")
    if not KINDS[item.kind].call:
        return ItemTexts(item)
    body = document.body.strip()
    entry = next(iter(listed_as(item, listings)), None)
    description = (document.words("description") or "") if item.kind is ItemKind.AGENT else document.offer
    if entry is None:
        # One that waits for files comes with its description.
        later = f"{description}\n{body}" if waits else body
        return ItemTexts(item, body if item.is_main else "", "" if item.is_main else later)
    seen = entry[1] or ""
    is_cut = item.shown is Shown.DESCRIPTION and (not seen or seen.endswith(ELLIPSIS))
    # By so much it is too long: the sign at the end of what is seen takes the place of a character.
    cut = max(0, len(description) - len(seen)) if is_cut else 0
    if item.is_main:
        return ItemTexts(item, f"{entry[0]}\n{body}", "", cut)
    return ItemTexts(item, entry[0], body, cut)


async def _counted_by_api(texts: set[str], firsts: Iterable[Call], model: str, proxy: ModelProxy) -> _Counts | None:
    """Count texts and first requests; nothing where the API does not count all of them."""
    # The one of a single token says what stands around a text.
    word, limiter, found = "x", anyio.CapacityLimiter(MAX_COUNTS), _Counts()
    asked: dict[str | int, tuple[dict[str, Any], Headers]] = {
        text: ({"model": model, "messages": [{"role": "user", "content": text}]}, PROBE_HEADERS)
        for text in {*texts, word} - {""}
    }
    for first in firsts:
        asked[id(first)] = {key: first.body[key] for key in COUNTED if key in first.body}, first.headers
    async with anyio.create_task_group() as group:

        async def count(key: str | int, body: dict[str, Any], headers: Headers) -> None:
            async with limiter:
                tokens = await proxy.count_tokens(body, headers)
            if tokens is None:
                group.cancel_scope.cancel()
            else:
                found[key] = tokens

        for key, (body, headers) in asked.items():
            group.start_soon(count, key, body, headers)
    if found.keys() != asked.keys():
        return None
    frame = found[word] - 1
    return {key: max(0, tokens - frame) if isinstance(key, str) else tokens for key, tokens in found.items()}


def steering_problems(
    found: ToolsManifest, top: Path, files: Collection[str], redact: Redactor
) -> tuple[ContextFinding, ...]:
    """What does not work as it is written, by place; `files` are all of the tree's, by their paths from its `top`."""
    finder = _ProblemFinder(Tree(top), files)
    refused = ((it.file, 1, it.effect, "Correct it.") for it in found.refused)
    problems = {*refused, *finder.repeated(found.items), *(it for item in found.items for it in finder.of(item))}
    return tuple(
        ContextFinding(file=redact(file), line=line, problem=redact(problem), fix=redact(fix))
        for file, line, problem, fix in sorted(problems)
    )


class _ProblemFinder:
    def __init__(self, tree: Tree, files: Collection[str]) -> None:
        self._tree, self._files, self._text = tree, files, cache(self._read)

    def of(self, item: ManifestItem) -> Iterator[_Problem]:
        kind, text, lacking = KINDS[item.kind], item.description or "", item.problem or ""
        _, is_import, importer = text.partition(IMPORTED_BY)
        if item.kind is ItemKind.MEMORY and lacking and is_import:
            folder, lines = dirname(self._tree.real(importer)), self._text(importer).splitlines()

            def is_in(count: int) -> bool:
                paths = mentioned("\n".join(lines[:count]))
                return any(item.name in (path, normpath(join(folder, path))) for path in paths)

            at, problem = bisect_left(range(len(lines)), 1, key=is_in), f"imports {item.name}, which is not loaded"
            yield importer, at, f"{problem}: {lacking}", "Correct the path, or take the import out."
        elif lacking and not self._text(item.file):
            yield item.file, 1, f"the {kind.word} {item.name} is not loaded: {lacking}", "Correct it, or take it out."
        first, same, _ = lacking.partition(SAME_NAME)
        if same and item.kind in CALLED:
            problem = f"the {kind.word} {item.name} is never used: {first} has the same name"
            yield item.file, self._line(item.file, "name"), problem, "Rename one of them."
        is_listed = kind.call == "Skill" and item.shown is Shown.DESCRIPTION and not lacking
        # Of the scan's own copy the end is cut off already.
        if is_listed and len(text) >= MAX_DESCRIPTION_LENGTH:
            length, most = len(parse(self._text(item.file)).offer), whole(MAX_DESCRIPTION_LENGTH)
            if length > MAX_DESCRIPTION_LENGTH:
                problem = f"the description has {whole(length)} characters, and the model is shown {most} at most"
                fix = f"Shorten description and when_to_use by {whole(length - MAX_DESCRIPTION_LENGTH)}."
                yield item.file, self._line(item.file, "description"), problem, fix
        if item.paths and not lacking:
            below = f"{item.base}/" if item.base else ""
            near = [file.removeprefix(below) for file in self._files if file.startswith(below)]
            for glob in parse(self._text(item.file)).listed("paths"):
                if not any(globs.matches([glob.removesuffix("/**")], file) for file in near):
                    line = self._line(item.file, "paths", glob)
                    yield item.file, line, f"the pattern {glob} matches no file", "Correct it, or take it out."

    def repeated(self, items: Iterable[ManifestItem]) -> Iterator[_Problem]:
        """Eight words or more that two files have in common; of what goes on, the beginning."""
        known = dict[str, tuple[str, int]]()
        for item in items:
            if not (item.is_followed and item.text) or item.problem or not item.file.endswith(".md"):
                continue
            own, is_inside = dict[str, tuple[str, int]](), False
            # What the model sees of the file, in the lines in which it stands.
            text, body = self._text(item.file), parse(self._text(item.file)).body
            shown = COMMENT.sub(lambda found: "\n" * found[0].count("\n"), body)
            for words, line in word_runs("\n" * text.removesuffix(body).count("\n") + shown):
                other, at = known.get(words, ("", 0))
                if other and not is_inside:
                    quote = words if len(words) <= MAX_QUOTE else f"{words[:MAX_QUOTE]}…"
                    # Without that line: where it moves, nothing new is wrong.
                    problem = f'repeats {other} word for word ("{quote}")'
                    yield item.file, line, problem, f"Say it in one of the two; there it is line {at}."
                is_inside = bool(other)
                own.setdefault(words, (item.file, line))
            known |= {words: place for words, place in own.items() if words not in known}

    def _line(self, file: str, key: str, words: str = "") -> int:
        """The line of a key in the head of a file, or of words behind it."""
        lines = self._text(file).splitlines()
        begin = next((at for at, line in enumerate(lines) if re.match(rf"{key}\s*:", line)), 0)
        whole = re.compile(words and rf"(?<![\w/*]){re.escape(words)}(?![\w/*])")
        return next((at for at, line in enumerate(lines[begin:], start=begin + 1) if whole.search(line)), begin + 1)

    def _read(self, file: str) -> str:
        with suppress(Unfit):
            return self._tree.read(file)
        return ""
