"""What the judge of requirement fulfillment sees beside the transcript: patch, final files, build and test results."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from zelda_ci.domain.evaluation import EvalContext
from zelda_ci.evaluators.citations import CHECKS, Sources, sections, turns_of
from zelda_ci.evaluators.final_files import FinalFiles, read_files
from zelda_ci.judge.base import CHARS_PER_TOKEN
from zelda_ci.judge.fence import fence
from zelda_ci.redact import Redactor
from zelda_ci.transcript.chunker import windowed

PATCH_SHARE = 0.15
FILES_SHARE = 0.2
CHECKS_SHARE = 0.05
"""Of the judge's context."""

LARGEST_PATCH = 20_000_000
LEAST_SHOWN = 2000
"""Characters below which head and tail of a file tell nothing."""

NO_CHANGES = "(the session changed no file)"
UNKNOWN = "(what the session changed is not known)"


@dataclass(frozen=True)
class Evidence:
    """Fenced blocks for questions, what can be cited, and what is missing from it, in sentences."""

    blocks: tuple[str, ...]
    sources: Sources
    has_files: bool
    has_checks: bool
    notes: tuple[str, ...]


def gather(context: EvalContext, redact: Redactor, *, nonce: str, context_tokens: int) -> Evidence:
    """Collect what a run left behind, as much of it as the judge's context has room for."""
    chars = context_tokens * CHARS_PER_TOKEN
    notes: list[str] = []
    patch = _patch(context)
    files = _files(context, redact)
    shown = _fitted(files.texts, int(chars * FILES_SHARE), notes)
    if files.left_out:
        named = ", ".join(f"{name} ({why})" for name, why in sorted(files.left_out.items())[:10])
        notes.append(f"The judge did not see the content of {len(files.left_out)} changed files: {named}")
    blocks = [
        fence("task", redact(context.suite.prompt), nonce),
        fence("patch", _shortened("patch", patch, int(chars * PATCH_SHARE), notes), nonce),
        *(fence("final-file", f"{name}\n{text}", nonce) for name, text in shown.items()),
        *_checks(context, int(chars * CHECKS_SHARE), nonce, notes),
    ]
    turns, checks = turns_of(context.transcript), "\n\n".join(context.checks)
    sources = Sources(files.texts, sections(patch), turns, checks, _reader(context, redact))
    return Evidence(tuple(blocks), sources, bool(files.texts), bool(context.checks), tuple(notes))


def _patch(context: EvalContext) -> str:
    if context.changes is None:
        return UNKNOWN
    try:
        with context.changes.patch.open("rb") as file:
            return file.read(LARGEST_PATCH).decode("utf-8", "replace") or NO_CHANGES
    except FileNotFoundError:
        return NO_CHANGES if not context.changes.files else UNKNOWN


def _files(context: EvalContext, redact: Redactor) -> FinalFiles:
    if context.workspace is None or context.changes is None:
        return FinalFiles()
    return read_files(context.workspace.root, context.changes.files, redact)


def _reader(context: EvalContext, redact: Redactor) -> Callable[[str], str | None]:
    """Reads any file of the final workspace, while that is there."""
    if context.workspace is None:
        return lambda _: None
    root = context.workspace.root
    return functools.cache(lambda name: read_files(root, (name,), redact).texts.get(name))


def _fitted(texts: Mapping[str, str], budget: int, notes: list[str]) -> dict[str, str]:
    """The files with line numbers, small ones first: so most of them are whole."""
    shown: dict[str, str] = {}
    for name, text in sorted(texts.items(), key=lambda item: (len(item[1]), item[0])):
        numbered = "\n".join(f"{number} | {line}" for number, line in enumerate(text.splitlines(), start=1))
        if len(numbered) > budget:
            notes.append(f"The final content of {name} was too large for the judge to see it whole.")
        if len(numbered) <= budget or budget >= LEAST_SHOWN:
            shown[name] = windowed(numbered, budget)
            budget -= len(shown[name])
    return dict(sorted(shown.items()))


def _shortened(what: str, text: str, budget: int, notes: list[str]) -> str:
    if len(text) > budget:
        notes.append(f"The {what} was too large for the judge: it saw head and tail of {len(text)} characters.")
    return windowed(text, budget)


def _checks(context: EvalContext, budget: int, nonce: str, notes: list[str]) -> list[str]:
    if not context.checks:
        return []
    return [fence(CHECKS, _shortened("build and test output", "\n\n".join(context.checks), budget, notes), nonce)]
