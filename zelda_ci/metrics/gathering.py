"""What the judge of requirement fulfillment sees beside the transcript, and what it can cite."""

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from zelda_ci.domain.context import EvalContext
from zelda_ci.files import untrusted
from zelda_ci.judge.base import CHARS_PER_TOKEN, CommonPrefix
from zelda_ci.judge.characters import spelled
from zelda_ci.judge.images import SessionImages
from zelda_ci.judge.prompts import common_prefix, fence, mark_of
from zelda_ci.judge.rendering import windowed
from zelda_ci.judge.transcript import EarlierFindings, TranscriptPart
from zelda_ci.metrics.absence import LookedThrough
from zelda_ci.metrics.evidence import CHECKS, TASK, Sources, sections, turns_of
from zelda_ci.redact import Redactor, SafeText

MAX_FILE_BYTES = 1_000_000
MAX_TOTAL_BYTES = 8_000_000
MAX_FILES = 500
# Of a file that is read because it is cited.
MAX_CITED_BYTES = 10_000_000


@dataclass(frozen=True)
class FinalFiles:
    """Texts by path, and why other files are not among them; deleted files are in neither."""

    texts: dict[str, SafeText] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def read_files(root: Path, names: Sequence[str], redact: Redactor) -> FinalFiles:
    """Read files of a work tree.

    Args:
        root: Top of the tree; must not be a link itself.
        names: Paths relative to it, with forward slashes.
        redact: Masks what is read.
    """
    files = FinalFiles()
    total = 0
    for name in names:
        if len(files.texts) >= MAX_FILES or total >= MAX_TOTAL_BYTES:
            files.left_out[name] = "too many files were changed"
            continue
        try:
            data = untrusted.read_below(root, name, MAX_FILE_BYTES)
        except FileNotFoundError:
            continue
        except OSError as problem:
            files.left_out[name] = problem.strerror or "cannot be read"
            continue
        total += len(data)
        if len(data) > MAX_FILE_BYTES:
            files.left_out[name] = "larger than 1 MB"
        elif b"\0" in data:
            files.left_out[name] = "binary"
        else:
            files.texts[name] = redact(data.decode("utf-8", "replace"))
    return files


PATCH_SHARE = 0.15
FILES_SHARE = 0.2
# Of the judge's context.
CHECKS_SHARE = 0.05

MAX_PATCH_BYTES = 20_000_000
# Characters below which head and tail of a file tell nothing.
LEAST_SHOWN = 2000

NO_CHANGES = "(the session changed no file)"
UNKNOWN = "(what the session changed is not known)"


@dataclass(frozen=True)
class JudgeEvidence:
    """Fenced blocks for questions, what can be cited, and images."""

    blocks: tuple[str, ...]
    sources: Sources
    has_files: bool
    has_checks: bool
    images: SessionImages
    seen: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is missing from it, in sentences."""
        return (*self.seen, *self.images.notes())

    @property
    def context(self) -> tuple[str, ...]:
        """The blocks that a part of a long transcript is read with: the task and the patch."""
        return self.blocks[:2]

    def before(self, earlier: EarlierFindings, nonce: str) -> tuple[CommonPrefix, tuple[str, ...]]:
        """What every judge is shown before a conclusion, and what only the one who asked for the findings is."""
        told = fence("transcript" if earlier.is_whole else "findings", earlier.text, nonce)
        if earlier.is_whole:
            return common_prefix((*self.blocks, told), nonce, self.images), ()
        outline = (fence("outline", earlier.outline, nonce),) if earlier.outline else ()
        return common_prefix(self.blocks, nonce, self.images), (*outline, told)

    def before_part(self, part: TranscriptPart, nonce: str) -> CommonPrefix:
        """What every judge is shown before it says what a part of the transcript shows."""
        return common_prefix((*self.context, fence("transcript", part.text, nonce)), nonce, self.images)


def gather(context: EvalContext, redact: Redactor, *, nonce: str, context_tokens: int) -> JudgeEvidence:
    """Collect what a run left behind, as much of it as the judge's context has room for."""
    chars = int(context_tokens * CHARS_PER_TOKEN)
    notes: list[str] = []
    patch = _patch(context)
    files = _files(context, redact)
    shown = _fitted(files.texts, int(chars * FILES_SHARE), notes)
    if files.left_out:
        named = ", ".join(f"{name} ({why})" for name, why in sorted(files.left_out.items())[:10])
        notes.append(f"The judge did not see the content of {len(files.left_out)} changed files: {named}")
    blocks = [
        fence(TASK, redact(context.suite.prompt), nonce),
        fence("patch", _shortened("patch", patch, int(chars * PATCH_SHARE), notes), nonce),
        *(fence("final-file", f"{spelled(name)}\n{text}", nonce) for name, text in shown.items()),
        *_checks(context, int(chars * CHECKS_SHARE), nonce, notes),
    ]
    folder = context.images if context.suite.judge.images else None
    images = SessionImages(context.transcript, folder, mark_of(nonce), context_tokens)
    sources = replace(_sources(context, files, patch, blocks, redact, nonce), image=images.objection)
    return JudgeEvidence(tuple(blocks), sources, bool(files.texts), bool(context.checks), images, tuple(notes))


def _sources(
    context: EvalContext, files: FinalFiles, patch: str, blocks: Sequence[str], redact: Redactor, nonce: str
) -> Sources:
    root = context.workspace.root if context.workspace else None
    is_whole = context.changes is not None and not context.changes.truncated and len(patch) < MAX_PATCH_BYTES
    looked = LookedThrough(
        root, patch if is_whole and patch != UNKNOWN else None, lambda: context.transcript.tool_calls
    )
    return Sources(
        files.texts,
        sections(patch),
        turns_of(context.transcript),
        "\n\n".join(context.checks),
        _reader(context, redact),
        task=redact(context.suite.prompt),
        patch_text=patch,
        transcript=context.transcript,
        mark=mark_of(nonce),
        blocks=blocks,
        absent=functools.cache(looked.objection),
        knows_final_state=context.changes is not None,
    )


def _patch(context: EvalContext) -> str:
    if context.changes is None:
        return UNKNOWN
    try:
        with context.changes.patch.open("rb") as file:
            return file.read(MAX_PATCH_BYTES).decode("utf-8", "replace") or NO_CHANGES
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
    root, path = context.workspace.root, context.workspace.path
    # A session that works in a folder of the tree names files from there.
    below = f"{path.relative_to(root).as_posix()}/" if path != root and path.is_relative_to(root) else ""

    def read(name: str) -> str | None:
        for candidate in dict.fromkeys((name, f"{below}{name}")):
            with suppress(OSError):
                data = untrusted.read_below(root, candidate, MAX_CITED_BYTES)
                return None if b"\0" in data or len(data) > MAX_CITED_BYTES else redact(data.decode("utf-8", "replace"))
        return None

    return functools.lru_cache(maxsize=100)(read)


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
