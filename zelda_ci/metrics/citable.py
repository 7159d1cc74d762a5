"""What can be cited of a patch and of a session: lines that know what they prove, and quotes looked up in them. Pure.

Facts are what somebody else than the session vouches for: what tools returned, what lies in files, what git compared,
and that a call was made. Words are what the session says: its texts and thoughts, its lists and plans, the reports of
its sub-agents. A result proves nothing where it only repeats what the session had typed or written before.

A quote stands in a text if it was copied: word by word, in order, from the beginning of a word to the end of one. What
nobody can see or keep when copying does not matter: white space, line numbers, the shape of quotation marks.
"""

import itertools
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from zelda_ci.domain.session import Noticed, SessionTranscript, ToolCall, Turn, UserSaid
from zelda_ci.judge.characters import unmarked
from zelda_ci.judge.rendering import fields, preface, units
from zelda_ci.metrics.calls import FAMILIES, PATH_KEYS

# Letters and digits of a quote that is less than a line; of a whole line one is enough: "OK" may be all there is.
MIN_SUBSTANCE = 4
# From this length on, a quote may end inside a word (never inside a number): judges cut long lines.
LONG_QUOTE = 30
MAX_OCCURRENCES = 200
# Thai is the first of the scripts that write without spaces; most of what follows is written so.
FIRST_WITHOUT_SPACES = 0x0E00
# What changes when a text is copied and means the same.
_SAME = str.maketrans(
    {"‘": "'", "’": "'", "“": '"', "”": '"', "‐": "-", "‑": "-", "–": "-", "—": "-", "…": "..."}  # noqa: RUF001
    | dict.fromkeys("\ufe0e\ufe0f", "")
)
# Of a terminal, also as it is shown to a judge.
_COLOUR = re.compile(r"(?:\x1b|⟦U\+001B [^⟦⟧\n]{1,40}⟧)\[[0-9;?]*[A-Za-z]")
# The number of a line, or where it was found by a look-up.
_NUMBER = r"[ \t]*\d+(?: \| ?|\t|→| *\|$)"
_FOUND_AT = r"(?:(?:after )?turn \d+(?: call \d+)?|[^\s:]{1,300}):\d+:(?: \[from column \d+ of \d+\])? "
_PREFIX = re.compile(rf"^(?:{_NUMBER}|{_FOUND_AT})", re.MULTILINE)
_SIGN = re.compile(r"^([+-])", re.MULTILINE)
_ADDED = re.compile(r"^\+", re.MULTILINE)
# What models put around a quote.
_AROUND = " \t\n`\"'“”….…"
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_HEADINGS = ("diff --git ", "index ", "--- ", "+++ ", "similarity index ", "dissimilarity index ", "GIT binary patch")
# Tools whose input and output are words: lists, plans, messages.
TALKING = {"TodoWrite", "TodoRead", "ExitPlanMode", "EnterPlanMode", "SendMessage", "StructuredOutput"}
TALKING |= {"TaskCreate", "TaskUpdate", "TaskList", "TaskGet"}
# The output of an agent is what it says of its own work.
REPORTING = {*TALKING, *FAMILIES["Agent"]}
# Fields in which a session explains itself.
SPOKEN = {"description", "prompt", "todos", "plan", "thought", "summary", "subject", "explanation", "reason"}
SPOKEN |= {"reasoning", "activeForm", "title", "message"}

# Of a command that is taken apart; all beyond counts as said. A session could write one that takes hours.
MAX_COMMAND_LENGTH = 10_000
# Words, and signs like ✓, which distinguish a runner's line from the name of a test.
_WORDS = re.compile(r"\w+|[^\w\s\x00-\x7f]")
# What a command says instead of doing it: here-documents, texts in quotation marks, comments, what is echoed.
_SAID = re.compile(
    r"<<-?[ \t]*['\"\\]?(?P<end>\w+)[^\n]*\n.*?(?:^[ \t]*(?P=end)[ \t]*$|\Z)"
    r"|\b(?:echo|printf)\b(?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|\d?>&\d|&>|[^;&|>\n'\"])*"
    r"|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?<!\S)#[^\n]*",
    re.MULTILINE | re.DOTALL,
)


class Standing(Enum):
    """What a line can prove; the value says why a PASS cannot rest on it."""

    FACT = ""
    WORDS = "these are the session's own words, which prove nothing about its work"
    ECHO = "the session had written this itself before, so that a result which repeats it proves nothing"
    TASK = "this is what was asked for, not what was done"
    FRAME = "these are headings and marks, not what the session did"
    REMOVED = "these lines were removed; where the removal itself is the proof, cite them by the kind removed"
    CONTEXT = "these lines of the patch were there before; cite an added line, or the final file"
    UNDONE = "this was written, but the patch does not have it; cite the final file or the patch"


class Line(NamedTuple):
    """A line of a text that can be cited; its standing may depend on the piece of it that is quoted."""

    text: str
    standing: Standing | Callable[[str], Standing] = Standing.FACT


# What a quote has of one line: the text, whether that is the whole line, and what it can prove.
Piece = tuple[str, bool, Standing]


def lines_of(text: str, standing: Standing | Callable[[str], Standing] = Standing.FACT) -> Iterator[Line]:
    return (Line(line, standing) for line in text.split("\n"))


class Passage:
    """Lines, none of which has a line break, in which quotes are looked up; in a patch, with their signs."""

    def __init__(self, lines: Iterable[Line], *, has_signs: bool = False) -> None:
        self._has_signs, given = has_signs, list(lines)
        # All at once: a text may have a million lines.
        words = (" ".join(text.split()) for text in _visible("\n".join(line.text for line in given)).split("\n"))
        self._lines = [(line, text) for line, text in zip(given, words, strict=False) if text]
        self._starts, size = [], 0
        for _, text in self._lines:
            self._starts.append(size)
            size += len(text) + 1
        self._text = " ".join(text for _, text in self._lines)

    def find(self, quote: str) -> Iterator[Sequence[Piece]]:
        """Every place at which a quote stands, as the pieces of lines that it covers."""
        forms: list[str] = []
        # As it is, and as it may have been meant: without what stands around it or before its lines.
        for told in (quote, quote.strip(_AROUND)):
            for bare in (told, without_numbers(told)):
                forms += [bare, _SIGN.sub(r"\1 ", bare) if self._has_signs else _ADDED.sub("", bare)]
        for wanted in filter(None, dict.fromkeys(map(plain, forms))):
            start = -1
            for _ in range(MAX_OCCURRENCES):
                if (start := self._text.find(wanted, start + 1)) < 0:
                    break
                end = start + len(wanted)
                if _is_copy(self._text, start, end):
                    pieces = list(self._pieces(start, end))
                    if len(wanted) > 1 or pieces[0][1]:
                        yield pieces

    def _pieces(self, start: int, end: int) -> Iterator[Piece]:
        position = bisect_right(self._starts, start) - 1
        while position < len(self._starts) and (first := self._starts[position]) < end:
            line, text = self._lines[position]
            if covered := text[max(0, start - first) : end - first]:
                standing = line.standing if isinstance(line.standing, Standing) else line.standing(covered)
                yield covered, covered == text, standing
            position += 1


def plain(text: str) -> str:
    """A text without what does not matter: what cannot be seen, and the marks that show it to a judge."""
    return " ".join(_visible(text).split())


def _visible(text: str) -> str:
    seen = unmarked(_COLOUR.sub("", text))
    return seen if seen.isascii() else unicodedata.normalize("NFC", seen.translate(_SAME))


def _is_copy(text: str, start: int, end: int) -> bool:
    """Whether a stretch of a text begins and ends where words do."""
    is_long = sum(map(str.isalnum, text[start:end])) >= LONG_QUOTE
    ends = ((text[max(0, start - 2) : start], text[start]), (text[end : end + 2][::-1], text[end - 1]))
    return all(_is_edge(outside, inner, is_long=is_long) for outside, inner in ends)


def _is_edge(outside: str, inner: str, *, is_long: bool) -> bool:
    """Whether a word begins at a character; read backwards, whether one ends there."""
    outer = outside[-1:]
    if inner.isdigit():
        # "3 passed" is not in "13 passed", nor "5" in "1.5".
        return not (outer.isalnum() or outer == "_" or (outer in {".", ","} and outside[:-1].isdigit()))
    # Scripts without spaces have no words that white space ends.
    is_inside = all(it == "_" or (it.isalnum() and ord(it) < FIRST_WITHOUT_SPACES) for it in (outer, inner))
    return not is_inside or (is_long and not outer.isdigit())


def shortcoming(pieces: Sequence[Piece], proving: Standing = Standing.FACT) -> str | None:
    """Why a PASS cannot rest on a quote; nothing where it can."""
    proofs = [(sum(map(str.isalnum, text)), is_whole) for text, is_whole, standing in pieces if standing is proving]
    if sum(size for size, _ in proofs) >= MIN_SUBSTANCE or any(size and is_whole for size, is_whole in proofs):
        return None
    weak = [standing for _, _, standing in pieces if standing not in {proving, Standing.FACT}]
    # What the judge meant to cite, rather than the heading above it.
    kind = next((standing for standing in weak if standing is not Standing.FRAME), weak[0] if weak else None)
    return kind.value if kind else "the quote is too short to prove anything; quote the whole line"


def without_numbers(text: str) -> str:
    return _PREFIX.sub("", text)


def unquoted(path: str) -> str:
    """A path as git may write it, in quotation marks and with escapes, as it is."""
    if len(path) < 2 or not (path.startswith('"') and path.endswith('"')):
        return path
    characters = path[1:-1].encode("utf-8", "replace").decode("unicode_escape", "replace")
    return characters.encode("latin-1", "replace").decode("utf-8", "replace")


def sections(patch: str) -> dict[str, str]:
    """The parts of a git patch by the path of the file after the change; of a file that is gone, by its last one."""
    # Within a hunk every line begins with a sign.
    parts = re.split(r"^(?=diff --git )", patch, flags=re.MULTILINE)
    return {_path_of(part): part for part in parts if part.startswith("diff --git ")}


def _path_of(section: str) -> str:
    head = re.split(r"^(?:@@|GIT binary patch)", section, maxsplit=1, flags=re.MULTILINE)[0]
    named = dict(re.findall(r"^(rename to|copy to|\+\+\+|---) (.*?)\t?$", head, re.MULTILINE))
    for start, prefix in (("rename to", ""), ("copy to", ""), ("+++", "b/"), ("---", "a/")):
        if named.get(start, "/dev/null") != "/dev/null":
            return unquoted(named[start]).removeprefix(prefix)
    # The second of two equal paths: nothing else names a file that is binary, empty or of another mode.
    both = section.partition("\n")[0].removeprefix("diff --git ").rstrip("\r")
    return unquoted('"' + both.rpartition(' "')[2])[2:] if both.endswith('"') else both[len(both) // 2 + 1 :][2:]


def patch_lines(patch: str, *, is_bare: bool = False, removed: bool = False) -> Iterator[Line]:
    """The lines of a patch, or of a part of it; bare, only those of files without signs; or what proves a removal."""
    # Within a hunk, a line that looks like a heading is a line of the file.
    before = after = 0
    for line in patch.removesuffix("\n").split("\n"):
        sign = line[:1]
        if sign in {"+", "-", " ", ""} and (before > 0 or after > 0):
            before -= sign != "+"
            after -= sign != "-"
            is_content = True
        else:
            if sign != "\\":
                hunk = _HUNK.match(line)
                before, after = (int(hunk[1] or 1), int(hunk[2] or 1)) if hunk else (0, 0)
            is_content = sign in {"+", "-", " "} and not line.startswith(("+++ ", "--- "))
        # What git says of a file in its headings is a fact where it is more than names: new, deleted, its mode.
        standing = Standing.FRAME if line.startswith((*_HEADINGS, "@@", "\\")) else Standing.FACT
        if is_content:
            standing = {"+": Standing.FACT, "-": Standing.REMOVED}.get(sign, Standing.CONTEXT)
        if removed:
            standing = Standing.FACT if standing is Standing.REMOVED else Standing.FRAME
        if is_content or not is_bare:
            # With white space behind the sign, which copies have more or less of.
            yield Line(line if not is_content else line[1:] if is_bare else f"{sign} {line[1:]}", standing)


def added(patch: str) -> Iterator[str]:
    return (line.text for line in patch_lines(patch, is_bare=True) if line.standing is Standing.FACT)


def phrase(text: str) -> str:
    """Words between blanks, so that one phrase can be looked for in another; escaped line breaks are blanks, too."""
    words = _WORDS.findall(text.replace("\\n", " ").replace("\\t", " "))
    return f" {' '.join(words)} "


def typed_in(call: ToolCall) -> str:
    """What a call was given, as a phrase: it or a later one could print it."""
    return phrase(" ".join(text for name, text in fields(call.input) if name not in PATH_KEYS))


def turn_lines(turn: Turn, call: int, typed: Sequence[str], added: str, *, numbers: bool) -> Iterator[Line]:
    """The lines of a turn, or of one of its calls, without headings; or without numbers that a tool put before them."""
    # `typed` are phrases that the session had typed by then; `added` is what the patch adds, as a `plain` text.
    if not call:
        for start, said in (("(thinking) ", turn.thinking), ("", turn.text)):
            yield from lines_of(f"{start}{said}", Standing.WORDS) if said else ()
    for made in turn.tool_calls[call - 1 : call] if call else turn.tool_calls:
        for name, text in fields(made.input):
            yield from lines_of(f"{name}: {text}", _given(made, name, text, added))
        if made.output is not None:
            found = [int(number) for number in re.findall(r"^\s*(\d{1,9})(?:\t|→| \|)", made.output, re.MULTILINE)]
            counts_up = len(found) > 1 and all(after == before + 1 for before, after in itertools.pairwise(found))
            output = without_numbers(made.output) if counts_up and not numbers else made.output
            yield from lines_of(output, _returned(made, typed))


def _given(call: ToolCall, name: str, text: str, added: str) -> Standing | Callable[[str], Standing]:
    """What the input of a call proves: that it was made, if it was."""
    if call.name in TALKING or name in SPOKEN or call.denied or call.output is None:
        return Standing.WORDS
    if call.name in FAMILIES["Edit"] and name not in PATH_KEYS:
        written = Standing.WORDS if call.is_error else Standing.UNDONE
        return lambda piece: Standing.FACT if piece.removeprefix(f"{name}: ") in added else written
    if name != "command":
        return Standing.FACT
    done = set(_WORDS.findall(_SAID.sub(" ", text[:MAX_COMMAND_LENGTH]))) - _said(text)

    return lambda piece: Standing.FACT if done & {*_WORDS.findall(piece.removeprefix("command: "))} else Standing.WORDS


def _said(command: str) -> set[str]:
    said = [found[0] for found in _SAID.finditer(command[:MAX_COMMAND_LENGTH])]
    return {word for text in (*said, command[MAX_COMMAND_LENGTH:]) for word in phrase(text).split()}


def _returned(call: ToolCall, typed: Sequence[str]) -> Standing | Callable[[str], Standing]:
    """What the output of a call proves: what it says, unless the session had written it itself."""
    if call.name in REPORTING:
        return Standing.WORDS
    own, said = typed_in(call), _said(str(call.input.get("command", "")))

    def standing(piece: str) -> Standing:
        repeated = phrase(piece)
        words = repeated.split()
        # A single word may be in any earlier text by chance.
        is_typed = repeated in own or (len(words) > 1 and any(repeated in earlier for earlier in typed))
        return Standing.ECHO if is_typed or said.issuperset(words) else Standing.FACT

    return standing


def other_lines(transcript: SessionTranscript, mark: str) -> Iterator[Line]:
    """What happened around the turns, which has no number: hooks, denials, notices, what was said to the model."""
    others = [entry for entry in transcript.entries if not isinstance(entry, Turn)]
    # Before what happened stands what the session had to do without.
    texts = [*preface(transcript, mark), *units(transcript.replace(entries=tuple(others)), mark)]
    known = [None] * (len(texts) - len(others))
    for entry, text in zip([*known, *others], texts, strict=True):
        standing = Standing.WORDS if isinstance(entry, UserSaid | Noticed) else Standing.FACT
        yield from lines_of(text.partition("\n")[2], standing)
