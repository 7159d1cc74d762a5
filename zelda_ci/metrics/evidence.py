"""Whether what a judge cites is there, and whether a PASS can rest on it.

A citation names a place and quotes from it. It *holds* if the place exists and the quote stands there. It *proves*
something if, besides, some of what it quotes is a fact: see `citable` and `quotes`.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from zelda_ci.metrics import absence, citable, quotes
from zelda_ci.metrics.citable import bare_patch_lines, patch_lines, sections
from zelda_ci.metrics.quotes import Line, Passage, Piece, Standing
from zelda_ci.metrics.sources import Sources, turns_of

__all__ = ["CHECKS", "TASK", "Citing", "Criterion", "Sources", "look_up", "sections", "turns_of"]

# How far a quote may lie outside the cited lines: a person finds it all the same.
SLACK_LINES = 2
MAX_NAME_LENGTH = 100

# Places that are called as the blocks are that show them.
CHECKS = "build-and-tests"
TASK = "task"


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


PLAIN = Criterion()


def look_up(where: str, quote: str, sources: Sources, criterion: Criterion = PLAIN) -> Citing:
    """Look up a citation, and say whether it can prove a criterion."""
    place = where.strip()
    if match := _ABSENT.fullmatch(place):
        return _of_absence((match[2] or quote).strip(), sources, criterion)
    shown = place[:MAX_NAME_LENGTH]
    if match := _IMAGE.fullmatch(place):
        return _of_image(sources, int(match[1]), int(match[2]), int(match[3] or 1), quote)
    is_said = _SAID.match(place)
    found = _found(place[is_said.end() :] if is_said else place, sources)
    if found is None:
        return Citing(f"The cited place {shown!r} does not exist.")
    pieces = _cut(quote, sources.mark)
    if not quotes.plain(quote):
        return Citing(f"The citation of {shown!r} has no quote.")
    if not pieces:
        return _of_marks(quote, shown, sources)
    counts = is_said and criterion.is_about_answer
    return _looked_up(pieces, shown, found, sources, Standing.WORDS if counts else Standing.FACT)


def _of_absence(claim: str, sources: Sources, criterion: Criterion) -> Citing:
    shown = claim[:MAX_NAME_LENGTH]
    if why := sources.absent(claim):
        return Citing(f"The absence {shown!r} is not shown: {why}.")
    weakness = absence.shortcoming(claim, criterion.text)
    return Citing(weakness=f"The absence {shown!r} is no proof: {weakness}." if weakness else None)


_SAID = re.compile(r"said\s*:\s*(?=turn)", re.IGNORECASE)
_ABSENT = re.compile(r"([`\"']?)absent(?:\s*:(.*))?\1", re.IGNORECASE | re.DOTALL)


_IMAGE = re.compile(
    r"[\s`\"'\[]*(?:transcript[:,]?\s*)?(?:[0-9a-f]{8} )?turns?\s*[#:]?\s*(\d{1,7})"
    r"[\s,/.;:]*(?:tool\s*)?call\s*[#:]?\s*(\d{1,7})"
    r"[\s,/.;:]*image\s*[#:]?\s*(\d{1,4})?[\s`\"'\]]*",
    re.IGNORECASE,
)


def _of_image(sources: Sources, number: int, call: int, position: int, quote: str) -> Citing:
    """An image that is there and was seen is a fact: what it shows cannot be looked up."""
    shown = f"turn {number} call {call} image {position}"
    turn = sources.turns.get(number)
    made = turn.tool_calls[call - 1] if turn and 0 < call <= len(turn.tool_calls) else None
    if made is None or not 0 < position <= len(made.images):
        return Citing(f"The cited place {shown!r} does not exist.")
    if why := sources.image(made.images[position - 1]):
        return Citing(f"The image {shown!r} cannot be cited: {why}.")
    if quotes.plain(quote):
        return Citing(f"The image {shown!r} has no text to quote: say in the reasoning what it shows.")
    if made.name in citable.TALKING | citable.AGENTS:
        return Citing(weakness=_weak(shown, Standing.WORDS.value))
    return Citing()


def _found(place: str, sources: Sources) -> Sequence[Passage] | None:
    """The texts of a place, also in marks or brackets; where several places are named, of those that exist."""
    for name in dict.fromkeys((place, place.strip("`\"'").strip(), place.strip("`\"'[] "))):
        if (texts := _texts(name, sources)) is not None:
            return texts
    several = [_found(name, sources) for name in place.split(";")] if ";" in place else []
    return [text for texts in several if texts for text in texts] or None


_LEFT_OUT = r"^\[\.\.\. \d+ characters are left out here.*$"


def _cut(quote: str, mark: str) -> list[str]:
    """A quote without the lines that are Zelda's own: they cut it into pieces."""
    own = [_LEFT_OUT]
    own += [rf"^</?evidence-{re.escape(mark)}[0-9a-f]*\b.*$", rf"^[ \t]*\[{re.escape(mark)} .*$"] if mark else []
    return [piece for piece in re.split("|".join(own), quote, flags=re.MULTILINE) if quotes.plain(piece)]


def _of_marks(quote: str, shown: str, sources: Sources) -> Citing:
    """A quote of Zelda's own lines: they may be there, and prove nothing."""
    fences = quotes.plain("\n".join(sources.blocks))
    lines = [line for line in map(quotes.plain, quote.splitlines()) if line]
    own = (f"[{sources.mark} ", f"<evidence-{sources.mark}", f"</evidence-{sources.mark}")
    if all(line in fences or line.startswith(own) or re.match(_LEFT_OUT, line) for line in lines):
        return Citing(weakness=_weak(shown, Standing.FRAME.value))
    return Citing(_not_found(quote, shown))


def _looked_up(
    pieces: Sequence[str], shown: str, here: Sequence[Passage], sources: Sources, proving: Standing
) -> Citing:
    """At least one piece must stand at the place, the others anywhere in what was shown around it."""
    weaknesses: list[str] = []
    is_proven, is_cut = False, len(pieces) > 1
    for piece in pieces:
        weakness = _best(_matches(piece, here, sources.mark), proving)
        if weakness == "":
            is_proven = True
        elif weakness:
            weaknesses.append(weakness)
        elif not (is_cut and any(_matches(piece, _elsewhere(sources), sources.mark))):
            return Citing(_not_found(piece, shown))
    if not is_proven and not weaknesses:
        return Citing(_not_found(pieces[0], shown))
    return Citing(weakness=None if is_proven else _weak(shown, weaknesses[0]))


def _best(matches: Iterable[Sequence[Piece]], proving: Standing) -> str | None:
    """Nothing where a quote stands nowhere; an empty text where it proves something; else why it does not."""
    why: str | None = None
    for match in matches:
        shortcoming = quotes.shortcoming(match, proving)
        if shortcoming is None:
            return ""
        why = why or shortcoming
    return why


def _matches(quote: str, texts: Sequence[Passage], mark: str) -> Iterator[Sequence[Piece]]:
    """In every form and at every place."""
    for text in texts:
        for form in quotes.forms_of(quote, mark, has_signs=text.has_signs):
            yield from text.places_of(form)


def _elsewhere(sources: Sources) -> Sequence[Passage]:
    def everything() -> Iterator[Iterable[Line]]:
        yield [Line(line, Standing.FRAME) for block in sources.blocks for line in block.split("\n")]
        for turn in sources.turns.values():
            yield citable.turn_lines(turn, sources.around(turn.index))

    return sources.passages("everything", everything)


def _weak(shown: str, why: str) -> str:
    return f"The quote at {shown!r} is no proof: {why}."


def _not_found(quote: str, shown: str) -> str:
    return f"The quote is not found at {shown!r}: {' '.join(quote.split())[:MAX_NAME_LENGTH]!r}"


_TURN = re.compile(
    r"(?:transcript[:,]?\s*)?(?:[0-9a-f]{8} )?turns?\s*[#:]?\s*(\d{1,7})"
    r"(?:[\s,/.;:]*(?:tool\s*)?call\s*[#:]?\s*(\d{1,7}))?(?:[\s\],]*[(:\[,][^;]*)?",
    re.IGNORECASE | re.DOTALL,
)
_LINES = re.compile(
    r"(.+?)(?:[:#]\s*L?|,?\s+\(?lines?\s+)(\d{1,9})(?:\s*(?:-|–|—|to|\.\.)\s*L?(\d{1,9})|:\d{1,9})?\)?",  # noqa: RUF001
    re.IGNORECASE | re.DOTALL,
)
_PATCH = re.compile(r"(?:patch|diff)(?:\s*:\s*|\s+(?:of\s+)?)(.+)", re.IGNORECASE | re.DOTALL)
_REMOVED = re.compile(r"removed\s*:\s*(.+)", re.IGNORECASE | re.DOTALL)
_FILE = re.compile(r"(?:final-)?file\s*:\s*(.+)", re.IGNORECASE | re.DOTALL)
_CHECKS = re.compile(r"build[- ]and[- ]tests?\b.*", re.IGNORECASE | re.DOTALL)
_OTHERS = re.compile(r"transcript|after turn \d+|hooks?|notices?|denied|said to the model", re.IGNORECASE)


def _texts(place: str, sources: Sources) -> Sequence[Passage] | None:
    """The texts of a place; nothing where there is no such place."""
    if match := _TURN.fullmatch(place):
        return _turn(sources, int(match[1]), int(match[2] or 0))
    for read in (_block, _in_patch, _file, _around):
        if (texts := read(place, sources)) is not None:
            return texts
    return None


def _block(place: str, sources: Sources) -> Sequence[Passage] | None:
    """Texts that were shown whole."""
    if _CHECKS.fullmatch(place) and sources.checks:
        return sources.passages(CHECKS, lambda: [_facts(sources.checks)])
    if place.lower() == TASK and sources.task:
        return sources.passages(TASK, lambda: [(Line(line, Standing.TASK) for line in sources.task.split("\n"))])
    if place.lower() in {"patch", "diff"}:
        whole = sources.patch_text or "".join(sources.patch.values())
        return sources.passages("patch", lambda: _patched(whole), has_signs=True)
    return None


def _in_patch(place: str, sources: Sources) -> Sequence[Passage] | None:
    if match := _REMOVED.fullmatch(place):
        return _section(match[1], sources, removed=True)
    match = _PATCH.fullmatch(place)
    return _section(match[1], sources) if match else None


def _around(place: str, sources: Sources) -> Sequence[Passage] | None:
    """What happened beside the turns, and has no number."""
    told = sources.transcript
    if told is None or not _OTHERS.fullmatch(place):
        return None
    return sources.passages("others", lambda: [citable.other_lines(told, sources.mark)])


def _turn(sources: Sources, number: int, call: int) -> Sequence[Passage] | None:
    turn = sources.turns.get(number)
    if turn is None or call > len(turn.tool_calls):
        return None

    def made() -> Iterator[Iterable[Line]]:
        around = sources.around(number)
        yield citable.turn_lines(turn, around, call=call)
        bare = citable.turn_lines(turn, around, call=call, numbers=False)
        yield (line for line in bare if line.standing is not Standing.FRAME)

    return sources.passages((number, call), made)


def _facts(text: str) -> Iterator[Line]:
    return map(Line, text.split("\n"))


def _patched(text: str, *, removed: bool = False) -> Iterator[Iterable[Line]]:
    yield _as_removed(patch_lines(text)) if removed else patch_lines(text)
    yield _as_removed(bare_patch_lines(text)) if removed else bare_patch_lines(text)


def _as_removed(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines of a patch where the removal of something is to be shown."""
    for line in lines:
        yield Line(line.text, Standing.FACT if line.standing is Standing.REMOVED else Standing.FRAME)


def _section(place: str, sources: Sources, *, removed: bool = False) -> Sequence[Passage] | None:
    """By path; line numbers behind it say nothing about a patch."""
    for path, _, _ in _paths(place, sources):
        if section := sources.patch.get(path):
            made = functools.partial(_patched, section, removed=removed)
            return sources.passages(("patch", path, removed), made, has_signs=True)
    return None


def _file(place: str, sources: Sources) -> Sequence[Passage] | None:
    """Lines of a file, or without their numbers all of it; of a file that is gone, what the patch shows of it."""
    match = _FILE.fullmatch(place)
    place = match[1] if match else place
    for path, first, last in _paths(place, sources):
        if (text := sources.file(path)) is not None:
            return _lines(sources, path, text, first, last)
    return _section(place, sources)


def _lines(sources: Sources, path: str, text: str, first: int, last: int) -> Sequence[Passage] | None:
    def made() -> Iterator[Iterable[Line]]:
        lines = text.splitlines()
        chosen = lines[max(0, first - 1 - SLACK_LINES) : last + SLACK_LINES] if first else lines
        yield [Line(path, Standing.FRAME), *map(Line, chosen)]

    if first and not 1 <= first <= last <= len(text.splitlines()):
        return None
    return sources.passages(("file", path, first, last), made)


def _paths(place: str, sources: Sources) -> Iterator[tuple[str, int, int]]:
    """A path in every spelling that may be meant, with first and last line, or 0 for all."""
    match = _LINES.fullmatch(place)
    readings = [(place, 0, 0)]
    if match:
        # Line 0 does not exist; it must not mean "all".
        readings.append((match[1], int(match[2]) or -1, int(match[3] or match[2])))
    for written, first, last in readings:
        for path in _spellings(written.strip().strip("`")):
            yield sources.known(path), first, last


def _spellings(path: str) -> Iterator[str]:
    seen: set[str] = set()
    plain = citable.unquoted(path)
    for spelling in (path, plain, citable.c_unescaped(path), plain.replace("\\", "/")):
        short = spelling
        while short.startswith("./"):
            short = short[2:]
        for form in (spelling, short, unicodedata.normalize("NFC", short), unicodedata.normalize("NFD", short)):
            if form not in seen:
                seen.add(form)
                yield form
        if short.startswith(("a/", "b/")):
            yield short[2:]
