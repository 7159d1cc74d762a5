"""Whether something stands at a place of a labelled case: looked up in the case itself, without any code of Zelda's.

So that labels, and what Zelda accepts as evidence, are measured by something else than what they are to measure.
"""

import fnmatch
import re
import unicodedata
from collections.abc import Iterator

from tests.support.judge_cases import BuiltCase
from zelda_ci.domain.session import Turn

_TURN = re.compile(r"(?:said:\s*)?turn (\d+)(?:,? call (\d+))?", re.IGNORECASE)
_LINES = re.compile(r"(.+?)(?::|#L)(\d+)(?:-L?(\d+))?")
_ABSENT = re.compile(r"absent:\s*(.+) in (\S+)", re.DOTALL)


def stands(built: BuiltCase, where: str, quote: str) -> bool:
    """Whether the quote is there, white space and the form of letters aside; or whether what is to be absent is."""
    place = built.where(where).strip(" `[]")
    if match := _ABSENT.fullmatch(place):
        return _is_absent(built, match[1], match[2])
    wanted = _plain(quote)
    return bool(wanted) and any(wanted in _plain(text) for text in _texts(built, place))


def is_own_words(built: BuiltCase, where: str) -> bool:
    """Whether a place is something that the model said, instead of something that happened."""
    match = _TURN.fullmatch(built.where(where).strip(" `[]"))
    return bool(match and not match[2])


def _texts(built: BuiltCase, place: str) -> Iterator[str]:
    """A place in every form in which it may be quoted."""
    if match := _TURN.fullmatch(place):
        yield from _of_turn(built, int(match[1]), int(match[2] or 0))
    elif place == "task":
        yield built.case.task
    elif place.startswith("build-and-tests"):
        yield "\n".join(built.case.checks)
    elif place.startswith("patch:"):
        yield from _of_patch(built, place.removeprefix("patch:"))
    else:
        yield from _of_file(built, place.removeprefix("./"))


def _of_turn(built: BuiltCase, number: int, call: int) -> Iterator[str]:
    for turn in built.context.transcript.turns:
        if turn.index == number:
            yield from _of_call(turn, call) if call else _whole(turn)


def _whole(turn: Turn) -> Iterator[str]:
    yield turn.text or ""
    yield turn.thinking or ""
    for call in range(1, len(turn.tool_calls) + 1):
        yield from _of_call(turn, call)


def _of_call(turn: Turn, number: int) -> Iterator[str]:
    if 1 <= number <= len(turn.tool_calls):
        call = turn.tool_calls[number - 1]
        yield call.output or ""
        yield from (value if isinstance(value, str) else str(value) for value in call.input.values())
        # Without the numbers of lines that a tool puts before them.
        yield re.sub(r"^\s*\d+\t", "", call.output or "", flags=re.MULTILINE)


def _of_patch(built: BuiltCase, path: str) -> Iterator[str]:
    for section in re.split(r"^(?=diff --git )", built.patch, flags=re.MULTILINE):
        if path in _unquoted(section.partition("\n")[0]):
            yield section
            yield re.sub(r"^[+\- ]", "", section, flags=re.MULTILINE)


def _unquoted(heading: str) -> str:
    """Git writes bytes beyond ASCII as octal numbers."""
    octets = re.sub(rb"\\(\d{3})", lambda match: bytes([int(match[1], 8)]), heading.encode())
    return octets.decode("utf-8", "replace")


def _of_file(built: BuiltCase, place: str) -> Iterator[str]:
    if (built.tree / place).is_file():
        yield (built.tree / place).read_text("utf-8")
    elif (match := _LINES.fullmatch(place)) and (file := built.tree / match[1]).is_file():
        lines = file.read_text("utf-8").split("\n")
        first, last = int(match[2]), int(match[3] or match[2])
        # A person who is sent there finds what stands two lines beside it.
        yield "\n".join(lines[max(0, first - 3) : last + 2])


def _is_absent(built: BuiltCase, pattern: str, paths: str) -> bool:
    """Absent from files that are there: a misspelt path proves nothing."""
    files = [file for file in built.tree.rglob("*") if file.is_file() and ".git" not in file.parts]
    names = {str(file.relative_to(built.tree)): file for file in files}
    looked_in = [file for name, file in names.items() if paths == "**" or fnmatch.fnmatch(name, paths)]
    return bool(looked_in) and not any(pattern in file.read_text("utf-8") for file in looked_in)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())
