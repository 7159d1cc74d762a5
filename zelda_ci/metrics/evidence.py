"""Whether what a judge cites is there, and whether a PASS can rest on it.

A citation *holds* if its place exists and its quote stands there. It *proves* something if, besides, some of what it
quotes is a fact: see `citable` and `quotes`.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from zelda_ci.domain.session import SessionImage, SessionTranscript, Turn
from zelda_ci.metrics import absence, citable
from zelda_ci.metrics.citable import patch_lines, sections, unquoted
from zelda_ci.metrics.citations import CitedPlace
from zelda_ci.metrics.quotes import Line, Passage, Standing, lines_of, plain, shortcoming

# How far a quote may lie outside the cited lines: a person finds it all the same.
SLACK_LINES = 2
MAX_NAME_LENGTH = 100


@dataclass(frozen=True)
class Criterion:
    """What is to be proven."""

    text: str = ""
    is_about_answer: bool = False
    """Whether it is about what the session says: that something was said is the fact then."""


@dataclass(frozen=True)
class Citing:
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
    """What build and tests said."""
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
        """The turns by their number."""
        return {turn.index: turn for turn in self.transcript.turns} if self.transcript else {}

    @cached_property
    def _sections(self) -> dict[str, str]:
        return sections(self.patch)

    @cached_property
    def _names(self) -> dict[str, str]:
        return {unicodedata.normalize("NFC", name): name for name in (*self._sections, *self.files)}

    @cached_property
    def _typed(self) -> list[tuple[int, str]]:
        made = [(turn.index, citable.typed_in(call)) for turn in self.turns.values() for call in turn.tool_calls]
        return [(index, phrase) for index, phrase in made if phrase.strip()]

    @cached_property
    def _added(self) -> str:
        return plain("\n".join(citable.added(self.patch)))

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
    if lacking := place.missing:
        return Citing(f"The citation of {shown!r} has no {lacking}.")
    if place.kind == "absent":
        if why := sources.absent(place):
            return Citing(f"The absence {shown!r} is not shown: {why}.")
        weakness = absence.shortcoming(place, criterion.text)
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
    is_told = call.name in citable.TALKING | citable.AGENTS
    return Citing(weakness=f"The image {shown!r} is no proof: {Standing.WORDS.value}." if is_told else None)


def _cut(quote: str, mark: str) -> list[str]:
    """A quote without the lines that are Zelda's own: they cut it into pieces, each of which must be there."""
    own = [r"^\[\.\.\. \d+ characters are left out here.*$"]
    own += [rf"^</?evidence-{re.escape(mark)}[0-9a-f]*\b.*$", rf"^[ \t]*\[{re.escape(mark)} .*$"] if mark else []
    return [piece for piece in re.split("|".join(own), quote, flags=re.MULTILINE) if plain(piece)]
