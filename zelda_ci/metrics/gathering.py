"""What a judge sees beside the transcript, and what it can cite."""

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from zelda_ci.domain.details import CHECKS, TASK
from zelda_ci.domain.run import EvalContext
from zelda_ci.judge.base import CHARS_PER_TOKEN, CommonPrefix, common_prefix
from zelda_ci.judge.characters import spelled
from zelda_ci.judge.images import SessionImages
from zelda_ci.judge.prompts import fence, mark_of
from zelda_ci.judge.rendering import windowed
from zelda_ci.judge.transcript import EarlierFindings, TranscriptPart
from zelda_ci.judge.workspace import FinalTree
from zelda_ci.metrics import absence
from zelda_ci.metrics.evidence import Sources
from zelda_ci.redact import Redactor, SafeText

MAX_FILE_BYTES = 1_000_000
MAX_TOTAL_CHARS = 8_000_000
MAX_FILES = 500
MAX_PATCH_BYTES = 20_000_000

# Of the judge's context.
PATCH_SHARE = 0.15
FILES_SHARE = 0.2
CHECKS_SHARE = 0.05

# Characters below which head and tail of a file tell nothing.
LEAST_SHOWN = 2000

NO_CHANGES = "(the session changed no file)"
UNKNOWN = "(what the session changed is not known)"


def read_files(tree: FinalTree, names: Sequence[str], redact: Redactor) -> tuple[dict[str, SafeText], dict[str, str]]:
    """Files by their paths, masked, and why others are not among them; deleted files are in neither."""
    texts: dict[str, SafeText] = {}
    left_out: dict[str, str] = {}
    for name in names:
        if len(texts) >= MAX_FILES or sum(map(len, texts.values())) >= MAX_TOTAL_CHARS:
            left_out[name] = "too many files were changed"
            continue
        try:
            texts[name] = redact(tree.text(name, MAX_FILE_BYTES))
        except FileNotFoundError:
            continue
        except OSError as problem:
            left_out[name] = problem.strerror or "cannot be read"
    return texts, left_out


@dataclass(frozen=True)
class JudgeEvidence:
    """Fenced blocks for questions, what can be cited, and images."""

    blocks: tuple[str, ...]
    sources: Sources
    images: SessionImages
    notes: tuple[str, ...]
    """What is missing from the blocks, in sentences."""

    def before(self, earlier: EarlierFindings, nonce: str) -> tuple[CommonPrefix, tuple[str, ...]]:
        """What every judge is shown before a conclusion, and what only the one who asked for the findings is."""
        told = fence("transcript" if earlier.is_whole else "findings", earlier.text, nonce)
        if earlier.is_whole:
            return common_prefix((*self.blocks, told), nonce, self.images), ()
        outline = (fence("outline", earlier.outline, nonce),) if earlier.outline else ()
        return common_prefix(self.blocks, nonce, self.images), (*outline, told)

    def before_part(self, part: TranscriptPart, nonce: str) -> CommonPrefix:
        """What every judge is shown of a part of a long transcript: the task, the patch and the part."""
        return common_prefix((*self.blocks[:2], fence("transcript", part.text, nonce)), nonce, self.images)


def gather(context: EvalContext, redact: Redactor, *, nonce: str, context_tokens: int) -> JudgeEvidence:
    """Collect what a run left behind, as much of it as the judge's context has room for."""
    chars = int(context_tokens * CHARS_PER_TOKEN)
    notes: list[str] = []

    def shortened(kind: str, what: str, text: str, share: float) -> str:
        budget = int(chars * share)
        if len(text) > budget:
            notes.append(f"The {what} was too large for the judge: it saw head and tail of {len(text)} characters.")
        return fence(kind, windowed(text, budget), nonce)

    tree = FinalTree(context.workspace.root) if context.workspace else None
    patch, task, checks = read_patch(context), redact(context.suite.prompt), "\n\n".join(context.checks)
    changed = context.changes.files if tree and context.changes else ()
    texts, left_out = read_files(tree, changed, redact) if tree else ({}, {})
    shown = _fitted(texts, int(chars * FILES_SHARE), notes)
    if left_out:
        named = ", ".join(f"{name} ({why})" for name, why in sorted(left_out.items())[:10])
        notes.append(f"The judge did not see the content of {len(left_out)} changed files: {named}")
    blocks = (
        fence(TASK, task, nonce),
        shortened("patch", "patch", patch, PATCH_SHARE),
        *(fence("final-file", f"{spelled(name)}\n{text}", nonce) for name, text in shown.items()),
        *([shortened(CHECKS, "build and test output", checks, CHECKS_SHARE)] if checks else []),
    )
    folder = context.images if context.suite.judge.images else None
    images = SessionImages(context.transcript, folder, mark_of(nonce), context_tokens)
    is_whole = context.changes is not None and not context.changes.truncated and len(patch) < MAX_PATCH_BYTES
    known = patch if is_whole and patch != UNKNOWN else None
    sources = Sources(
        texts,
        patch,
        context.transcript,
        checks,
        task,
        _reader(context, tree, redact),
        mark_of(nonce),
        functools.cache(functools.partial(absence.objection, tree, known, context.transcript.tool_calls)),
        images.objection,
    )
    return JudgeEvidence(blocks, sources, images, tuple(notes))


def read_patch(context: EvalContext) -> str:
    """The patch as it is shown, or what stands in its place."""
    if context.changes is None:
        return UNKNOWN
    try:
        with context.changes.patch.open("rb") as file:
            return file.read(MAX_PATCH_BYTES).decode("utf-8", "replace") or NO_CHANGES
    except FileNotFoundError:
        return NO_CHANGES if not context.changes.files else UNKNOWN


def _reader(context: EvalContext, tree: FinalTree | None, redact: Redactor) -> Callable[[str], str | None]:
    """Return what reads any file of the final workspace, while that is there."""
    if context.workspace is None or tree is None:
        return lambda _: None
    root, path = context.workspace.root, context.workspace.path
    # A session that works in a folder of the tree names files from there.
    below = f"{path.relative_to(root).as_posix()}/" if path != root and path.is_relative_to(root) else ""

    def read(name: str) -> str | None:
        for candidate in dict.fromkeys((name, f"{below}{name}")):
            with suppress(OSError):
                return redact(tree.text(candidate))
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
