"""What the judge of requirement fulfillment sees beside the transcript, and whether its citations are in it."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zelda_ci.domain.evaluation import EvalContext
from zelda_ci.domain.session import SessionTranscript, Turn
from zelda_ci.files import untrusted
from zelda_ci.judge.base import CHARS_PER_TOKEN
from zelda_ci.judge.prompts import fence
from zelda_ci.judge.rendering import rendered_call, rendered_turn, windowed
from zelda_ci.redact import Redactor, SafeText

MAX_FILE_BYTES = 1_000_000
MAX_TOTAL_BYTES = 8_000_000
MAX_FILES = 500


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
            data = _read(root, name)
        except FileNotFoundError:
            continue
        except untrusted.TooLargeError:
            files.left_out[name] = "larger than 1 MB"
            continue
        except OSError as problem:
            files.left_out[name] = problem.strerror or "cannot be read"
            continue
        total += len(data)
        if b"\0" in data:
            files.left_out[name] = "binary"
        else:
            files.texts[name] = redact(data.decode("utf-8", "replace"))
    return files


def _read(root: Path, name: str) -> bytes:
    *folders, last = name.split("/")
    if any(step in {"", ".", ".."} for step in (*folders, last)):
        raise OSError(0, "not a path inside the work tree")
    with untrusted.entered(root, folders) as folder:
        return untrusted.read(last, MAX_FILE_BYTES, folder=folder)


MIN_QUOTE_LENGTH = 2
# How far a quote may lie outside the cited lines: a person finds it all the same.
SLACK_LINES = 2

MAX_NAME_LENGTH = 100

# The place that stands for what build and tests said; as the block is called that shows it.
CHECKS = "build-and-tests"

_TURN = re.compile(r"turn (\d{1,7})(?:,? call (\d{1,7}))?(?:\s*[(:].*)?", re.IGNORECASE | re.DOTALL)
_LINES = re.compile(r"(.+?):(\d{1,9})(?:-(\d{1,9}))?")
_LINE_NUMBER = re.compile(r"^\s*\d+ \| ?", re.MULTILINE)
_PATCH_MARK = re.compile(r"^[+\- ]", re.MULTILINE)


@dataclass(frozen=True)
class Sources:
    """What can be cited."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Final texts of changed files by path."""
    patch: Mapping[str, str] = field(default_factory=dict)
    """Sections of the patch by path."""
    turns: Mapping[int, Turn] = field(default_factory=dict)
    checks: str = ""
    """What build and tests said."""
    unchanged: Callable[[str], str | None] = lambda _: None
    """The text of any other file of the final workspace, by path: a session may have shown it to the judge."""

    def file(self, path: str) -> str | None:
        """The final text of a file."""
        text = self.files.get(path)
        return self.unchanged(path) if text is None else text


def turns_of(transcript: SessionTranscript) -> dict[int, Turn]:
    """The turns by their number."""
    return {turn.index: turn for turn in transcript.turns}


def sections(patch: str) -> dict[str, str]:
    """The parts of a git patch by the path of the file after the change."""
    parts: dict[str, str] = {}
    for section in re.split(r"^(?=diff --git )", patch, flags=re.MULTILINE):
        heading = section.partition("\n")[0]
        if heading.startswith("diff --git "):
            parts[heading.rpartition(" b/")[2].rstrip('"')] = section
    return parts


def problem_with(where: str, quote: str, sources: Sources) -> str | None:
    """Why a citation does not hold, in a sentence; nothing where it does."""
    place = where.strip().strip("`[]").strip()
    texts = _texts(place, sources)
    shown = place[:MAX_NAME_LENGTH]
    if texts is None:
        return f"The cited place {shown!r} does not exist."
    wanted = _plain(_LINE_NUMBER.sub("", quote))
    if len(wanted) < MIN_QUOTE_LENGTH:
        return f"The citation of {shown!r} has no quote."
    if any(wanted in _plain(text) for text in texts):
        return None
    return f"The quote is not found at {shown!r}: {' '.join(quote.split())[:MAX_NAME_LENGTH]!r}"


def _texts(place: str, sources: Sources) -> Sequence[str] | None:
    """The text of a place, in every form in which it may be quoted; nothing where there is no such place."""
    if match := _TURN.fullmatch(place):
        return _session(sources.turns, int(match[1]), int(match[2] or 0))
    if place.startswith(CHECKS) and sources.checks:
        return (sources.checks,)
    if place.startswith("patch:"):
        return _patched(_section(sources.patch, place.removeprefix("patch:").strip()))
    return _file(place.removeprefix("file:").strip().removeprefix("./"), sources)


def _file(place: str, sources: Sources) -> Sequence[str] | None:
    """Lines of a file, or without their numbers all of it; of a file that is gone, what the patch shows of it."""
    if (text := sources.file(place)) is not None:
        return (text,)
    match = _LINES.fullmatch(place)
    if match and (text := sources.file(match[1])) is not None:
        return _lines(text, int(match[2]), int(match[3] or match[2]))
    return _patched(_section(sources.patch, place))


def _patched(section: str | None) -> Sequence[str] | None:
    return None if section is None else (section, _PATCH_MARK.sub("", section))


def _section(patch: Mapping[str, str], place: str) -> str | None:
    """By path; line numbers behind it say nothing about a patch."""
    match = _LINES.fullmatch(place)
    return patch.get(place) or (patch.get(match[1]) if match else None)


def _session(turns: Mapping[int, Turn], number: int, call: int) -> Sequence[str] | None:
    turn = turns.get(number)
    if turn is None or call > len(turn.tool_calls):
        return None
    return (rendered_call(turn.tool_calls[call - 1]),) if call else (rendered_turn(turn),)


def _lines(text: str, first: int, last: int) -> Sequence[str] | None:
    lines = text.splitlines()
    if not 1 <= first <= last <= len(lines):
        return None
    return ("\n".join(lines[max(0, first - 1 - SLACK_LINES) : last + SLACK_LINES]),)


def _plain(text: str) -> str:
    return " ".join(text.split())


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
    """Fenced blocks for questions, what can be cited, and what is missing from it, in sentences."""

    blocks: tuple[str, ...]
    sources: Sources
    has_files: bool
    has_checks: bool
    notes: tuple[str, ...]


def gather(context: EvalContext, redact: Redactor, *, nonce: str, context_tokens: int) -> JudgeEvidence:
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
    return JudgeEvidence(tuple(blocks), sources, bool(files.texts), bool(context.checks), tuple(notes))


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
