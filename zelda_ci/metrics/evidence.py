"""What a judge sees beside the transcript, and what it cites: in which form, and whether it is there and proves a PASS.

A citation *holds* if its place exists and its quote stands there. It *proves* something if, besides, some of what it
quotes is a fact: see `citable`. Of what is absent nothing can be quoted, so Zelda looks itself: what cannot be looked
through is not known to be without it.
"""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, ConfigDict, Field, field_validator

from zelda_ci.domain.details import CHECKS, TASK, Citation
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import SessionImage, SessionTranscript, ToolCall, Turn
from zelda_ci.files import untrusted
from zelda_ci.judge.base import CHARS_PER_TOKEN, SessionImages
from zelda_ci.judge.characters import spelled
from zelda_ci.judge.lookups import MAX_SEARCHED_BYTES, FinalTree, LookupFailedError, expression
from zelda_ci.judge.rendering import fence, mark_of, windowed
from zelda_ci.metrics import citable
from zelda_ci.metrics.citable import Line, Passage, Standing, added, lines_of, patch_lines, plain, shortcoming, unquoted
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
# How far a quote may lie outside the cited lines: a person finds it all the same.
SLACK_LINES = 2
MAX_NAME_LENGTH = 100
MIN_PATTERN_LENGTH = 2
# What stands for everything, besides `**`.
EVERYWHERE = {"", ".", "./", "*", "/", "**/*"}
# Instead of paths. A file of that name is written as a path: ./patch
PATCH, CALLS = ("patch",), ("calls",)
# A text that was probably meant as an expression: it would be absent everywhere.
_LIKE_AN_EXPRESSION = re.compile(r"\\[a-zA-Z().\[\]{}*+?|^$/]|\.[*+?]|\||^\^|\$$|\[[^\]]+\][*+?]?")
# What a criterion names.
_NAMED = re.compile(r"""`([^`]+)`|"([^"]+)"|“([^”]+)”""")
_BINARY = re.compile(r"^(?:GIT binary patch$|Binary files .* differ$)", re.MULTILINE)
NOT_NAMED = "the criterion does not name in backticks or quotation marks {}, so it needs a fact beside it"
# What a citation of each kind needs beside a quote.
NEEDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("patch", "transcript", "checks", "task"), ("quote",)),
    **dict.fromkeys(("file", "removed"), ("path", "quote")),
    "said": ("turn", "quote"),
    "image": ("turn", "call"),
    "absent": ("paths",),
}


def _number(value: Any) -> Any:
    """Models also write numbers as text: "3.", "Criterion 3"."""
    found = re.findall(r"\d{1,9}", value) if isinstance(value, str) else []
    return 0 if value is None else int(found[0]) if len(found) == 1 else value


def _text(value: Any) -> Any:
    return "" if value is None else value


def _listed(value: Any) -> Any:
    return [] if value is None else value if isinstance(value, list | tuple) else [value]


Number = Annotated[int, BeforeValidator(_number)]
Text = Annotated[str, BeforeValidator(_text)]


class CitedPlace(Citation):
    """A place that decides, and what is quoted from it."""

    # Judges answer with names as they are written here.
    model_config = ConfigDict(alias_generator=str, populate_by_name=True)

    _numbers = field_validator("first_line", "last_line", "turn", "call", "image", mode="before")(_number)
    _texts = field_validator("path", "pattern", "quote", mode="before")(_text)
    _lists = field_validator("paths", mode="before")(_listed)


Places = Annotated[list[CitedPlace], BeforeValidator(_listed), Field(description="The places that decide.")]


@dataclass(frozen=True)
class Criterion:
    """What is to be proven."""

    text: str = ""
    is_about_answer: bool = False
    """Whether it is about what the session says: that something was said is the fact then."""


class Citing(NamedTuple):
    """What became of a citation."""

    problem: str | None = None
    """Why it does not hold, in a sentence."""
    weakness: str | None = None
    """Why a PASS cannot rest on it, though it holds."""


@dataclass(frozen=True)
class Sources:
    """What can be cited."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Final texts of changed files by path."""
    patch: str = ""
    """The whole patch, or what stands in its place."""
    transcript: SessionTranscript | None = None
    checks: str = ""
    task: str = ""
    unchanged: Callable[[str], str | None] = lambda _: None
    """The text of any other file of the final workspace, by path."""
    mark: str = ""
    """Of Zelda's headings in what the judge saw."""
    absent: Callable[[CitedPlace], str | None] = lambda _: "the final files are gone"
    """Why a claim of absence does not hold."""
    image: Callable[[SessionImage], str | None] = lambda _: "no image was shown"
    """Why an image of a call cannot be cited: nobody has seen it."""
    _passages: dict[object, Sequence[Passage] | None] = field(default_factory=dict, init=False)

    @cached_property
    def turns(self) -> dict[int, Turn]:
        return {turn.index: turn for turn in self.transcript.turns} if self.transcript else {}

    @cached_property
    def _sections(self) -> dict[str, str]:
        return citable.sections(self.patch)

    @cached_property
    def _names(self) -> dict[str, str]:
        return {unicodedata.normalize("NFC", name): name for name in (*self._sections, *self.files)}

    @cached_property
    def _typed(self) -> list[tuple[int, str]]:
        made = [(turn.index, citable.typed_in(call)) for turn in self.turns.values() for call in turn.tool_calls]
        return [(index, phrase) for index, phrase in made if phrase.strip()]

    @cached_property
    def _added(self) -> str:
        return plain("\n".join(added(self.patch)))

    def passages(self, place: CitedPlace) -> Sequence[Passage] | None:
        """The texts of a place, made once; nothing where there is no such place."""
        key = (place.kind, place.path, place.first_line, place.last_line, place.turn, place.call)
        if key not in self._passages:
            texts, signs = self._texts(place), place.kind in {"patch", "removed"}
            self._passages[key] = None if texts is None else [Passage(text, has_signs=signs) for text in texts]
        return self._passages[key]

    def _texts(self, place: CitedPlace) -> Sequence[Iterable[Line]] | None:
        match place.kind:
            case "file":
                return self._file(place)
            case "patch" | "removed":
                removed, paths = place.kind == "removed", self._spellings(place.path)
                patch = next(filter(None, map(self._sections.get, paths)), None) if place.path else self.patch
                return (patch and [patch_lines(patch, is_bare=bare, removed=removed) for bare in (False, True)]) or None
            case "checks":
                return [lines_of(self.checks)] if self.checks else None
            case "task":
                return [lines_of(self.task, Standing.TASK)] if self.task else None
            case _ if place.turn:
                turn = self.turns.get(place.turn)
                if turn is None or not 0 <= place.call <= len(turn.tool_calls):
                    return None
                typed = [phrase for index, phrase in self._typed if index <= place.turn]
                return [citable.turn_lines(turn, place.call, typed, self._added, numbers=it) for it in (True, False)]
            case _:
                return [citable.other_lines(self.transcript, self.mark)] if self.transcript else None

    def _file(self, place: CitedPlace) -> Sequence[Iterable[Line]] | None:
        """Lines of a file, or without their numbers all of it; of one that is gone, what the patch shows of it."""
        known = ((path, self.files.get(path) or self.unchanged(path)) for path in self._spellings(place.path))
        path, text = next(((path, text) for path, text in known if text is not None), ("", None))
        if text is None:
            return self._texts(CitedPlace(kind="patch", path=place.path))
        lines, first, last = text.splitlines(), place.first_line, place.last_line or place.first_line
        if first and not 1 <= first <= last <= len(lines):
            return None
        chosen = lines[max(0, first - 1 - SLACK_LINES) : last + SLACK_LINES] if first else lines
        return [[*lines_of(path, Standing.FRAME), *map(Line, chosen)]]

    def _spellings(self, path: str) -> Iterator[str]:
        """A path as it is known, in every spelling that may be meant."""
        short = unquoted(path.strip("` ")).replace("\\", "/").removeprefix("./")
        for spelling in (path, short, re.sub("^[ab]/", "", short)):
            yield self._names.get(unicodedata.normalize("NFC", spelling), spelling)


def look_up(place: CitedPlace, sources: Sources, criterion: Criterion = Criterion()) -> Citing:
    """Look up a citation, and say whether it can prove a criterion."""
    shown = place.where[:MAX_NAME_LENGTH]
    if lacking := next((name for name in NEEDS[place.kind] if not getattr(place, name)), None):
        return Citing(f"The citation of {shown!r} has no {lacking}.")
    if place.kind == "absent":
        if why := sources.absent(place):
            return Citing(f"The absence {shown!r} is not shown: {why}.")
        weakness = _weakness_of_absence(place, criterion.text)
        return Citing(weakness=f"The absence {shown!r} is no proof: {weakness}." if weakness else None)
    if place.kind == "image":
        return _of_image(place, shown, sources)
    passages = sources.passages(place)
    if passages is None:
        return Citing(f"The cited place {shown!r} does not exist.")
    proving = Standing.WORDS if place.kind == "said" and criterion.is_about_answer else Standing.FACT
    weaknesses: list[str | None] = []
    for piece in _cut(place.quote, sources.mark):
        found = [shortcoming(pieces, proving) for passage in passages for pieces in passage.find(piece)]
        if not found:
            return Citing(f"The quote is not found at {shown!r}: {' '.join(piece.split())[:MAX_NAME_LENGTH]!r}")
        weaknesses.append(None if None in found else found[0])
    if not weaknesses:
        return Citing(f"The quote at {shown!r} has only headings and marks: quote the text below them.")
    return Citing(weakness=None if None in weaknesses else f"The quote at {shown!r} is no proof: {weaknesses[0]}.")


def _of_image(place: CitedPlace, shown: str, sources: Sources) -> Citing:
    """An image that is there and was seen is a fact: what it shows cannot be looked up."""
    turn, position = sources.turns.get(place.turn), place.image or 1
    call = turn.tool_calls[place.call - 1] if turn and 0 < place.call <= len(turn.tool_calls) else None
    if call is None or not 0 < position <= len(call.images):
        return Citing(f"The cited place {shown!r} does not exist.")
    if why := sources.image(call.images[position - 1]):
        return Citing(f"The image {shown!r} cannot be cited: {why}.")
    if plain(place.quote):
        return Citing(f"The image {shown!r} has no text to quote: say in the reasoning what it shows.")
    is_told = call.name in citable.REPORTING
    return Citing(weakness=f"The image {shown!r} is no proof: {Standing.WORDS.value}." if is_told else None)


def _cut(quote: str, mark: str) -> list[str]:
    """A quote without the lines that are Zelda's own: they cut it into pieces, each of which must be there."""
    own = [r"^\[\.\.\. \d+ characters are left out here.*$"]
    own += [rf"^</?evidence-{re.escape(mark)}[0-9a-f]*\b.*$", rf"^[ \t]*\[{re.escape(mark)} .*$"] if mark else []
    return [piece for piece in re.split("|".join(own), quote, flags=re.MULTILINE) if plain(piece)]


# --- claims that something is absent ----------------------------------------------------------------------------------


def objection_to_absence(
    tree: FinalTree | None, patch: str | None, calls: Sequence[ToolCall], place: CitedPlace
) -> str | None:
    """Why something is not absent from the final tree, the calls or the patch, which is None where not known whole."""
    try:
        finds = _finder(place) if place.pattern.strip() else None
        return next((why for why, data in _contents(tree, patch, calls, place) if finds is None or finds(data)), None)
    except LookupFailedError as problem:
        return str(problem)


def _contents(
    tree: FinalTree | None, patch: str | None, calls: Sequence[ToolCall], place: CitedPlace
) -> Iterator[tuple[str, bytes]]:
    """All that is looked through, each with the sentence for where it has what should be absent."""
    if place.paths in (PATCH, CALLS) and not place.pattern.strip():
        raise LookupFailedError("it has no pattern")
    if place.paths == CALLS:
        for call in calls:
            why = f"a call of {spelled(call.name)[:MAX_NAME_LENGTH]} has it"
            yield from ((why, text.encode("utf-8", "replace")) for text in (call.name, *_texts(dict(call.input))))
    elif place.paths == PATCH:
        if patch is None:
            raise LookupFailedError("the whole patch is not known")
        if _BINARY.search(patch):
            raise LookupFailedError("the patch has binary files, whose content it does not show")
        yield from (("the patch adds it", line.encode("utf-8", "replace")) for line in added(patch))
    elif tree is None:
        raise LookupFailedError("the final files are gone")
    elif not tree.is_whole:
        raise LookupFailedError("there are too many files to look through, or folders that cannot be entered")
    else:
        yield from _files(tree, _globs(place.paths), is_read=bool(place.pattern.strip()))


def _files(tree: FinalTree, patterns: Sequence[str], *, is_read: bool) -> Iterator[tuple[str, bytes]]:
    files, others = tree.files(patterns), tree.others(patterns)
    named = {path: spelled(path)[:MAX_NAME_LENGTH] for path in (*files, *others)}
    if not is_read:
        yield from ((f"{name} is there", b"") for name in named.values())
        return
    for path in others:
        raise LookupFailedError(f"{named[path]} is a link or no regular file, and was not looked into")
    read = filled = 0
    for path in files:
        try:
            data = tree.read(path)
        except OSError as problem:
            raise LookupFailedError(f"{named[path]} could not be looked through ({problem.strerror})") from None
        read += len(data)
        filled += bool(data.strip())
        yield f"{named[path]} has it", data
        if read > MAX_SEARCHED_BYTES:
            raise LookupFailedError("there is too much to look through; name fewer paths")
    if not filled:
        raise LookupFailedError("the files are empty" if files else "no file has such a path")


def _weakness_of_absence(place: CitedPlace, criterion: str) -> str | None:
    """Why an absence is no proof by itself; nothing where the criterion names what is absent, and where it must be."""
    # A text that nobody ever wrote is absent everywhere, and so would prove anything.
    if place.paths in (PATCH, CALLS):
        return f"an absence in {place.paths[0]} needs a fact beside it"
    named = {next(filter(None, found)) for found in _NAMED.findall(criterion)}
    paths = {name.removeprefix("./").removesuffix("/**").rstrip("/") for name in named}
    if place.pattern and (place.is_regex or not any(place.pattern in name for name in named)):
        return NOT_NAMED.format("what is absent")
    globs = (glob for glob in _globs(place.paths) if not place.pattern or glob != "**")
    if any(glob.removesuffix("/**").rstrip("/") not in paths for glob in globs):
        return NOT_NAMED.format("where it was searched")
    return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict | list | tuple):
        parts = chain(value.keys(), value.values()) if isinstance(value, dict) else value
        yield from chain.from_iterable(map(_texts, parts))
    else:
        yield str(value)


def _globs(paths: Sequence[str]) -> list[str]:
    return ["**" if path in EVERYWHERE else path.removeprefix("./") for path in map(str.strip, paths)]


def _finder(place: CitedPlace) -> Callable[[bytes], bool]:
    """Whether a content has it, in any coding in which files are written."""
    pattern = place.pattern
    if len(pattern.strip()) < MIN_PATTERN_LENGTH:
        raise LookupFailedError(f"a pattern has at least {MIN_PATTERN_LENGTH} characters")
    meant = [expression(pattern, is_regex=place.is_regex)]
    if place.is_regex and meant[0].search(""):
        raise LookupFailedError("the pattern is found in every text")
    if not place.is_regex and _LIKE_AN_EXPRESSION.search(pattern):
        with suppress(LookupFailedError):
            meant.append(expression(pattern))
    forms = [] if place.is_regex else [pattern.encode(coding, "replace") for coding in ("utf-16-le", "utf-16-be")]

    def finds(data: bytes) -> bool:
        codings = ["utf-8", *(["utf-16"] if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else [])]
        texts = [data.decode(coding, "replace") for coding in codings]
        return any(form in data for form in forms) or any(each.search(text) for each in meant for text in texts)

    return finds


# --- what a judge sees ------------------------------------------------------------------------------------------------


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


class JudgeEvidence(NamedTuple):
    """Fenced blocks for questions, what can be cited, and images."""

    blocks: tuple[str, ...]
    sources: Sources
    images: SessionImages
    notes: tuple[str, ...]
    """What is missing from the blocks, in sentences."""


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
    absent = functools.cache(functools.partial(objection_to_absence, tree, known, context.transcript.tool_calls))
    told, reader = (texts, patch, context.transcript, checks, task), _reader(context, tree, redact)
    return JudgeEvidence(blocks, Sources(*told, reader, mark_of(nonce), absent, images.objection), images, tuple(notes))


def read_patch(context: EvalContext) -> str:
    """The patch as it is shown, or what stands in its place."""
    if context.changes is None:
        return UNKNOWN
    try:
        return untrusted.read_head(context.changes.patch, MAX_PATCH_BYTES).decode("utf-8", "replace") or NO_CHANGES
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
