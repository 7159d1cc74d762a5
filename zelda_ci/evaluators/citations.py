"""Whether cited evidence is there: the place exists, and the quoted text stands in it. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from zelda_ci.domain.session import SessionTranscript, Turn
from zelda_ci.transcript.rendering import rendered_call, rendered_turn

SHORTEST_QUOTE = 2
SLACK_LINES = 2
"""How far a quote may lie outside the cited lines: a person finds it all the same."""

LONGEST_NAME = 100

CHECKS = "build-and-tests"
"""The place that stands for what build and tests said; as the block is called that shows it."""

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
    found: dict[str, str] = {}
    for section in re.split(r"^(?=diff --git )", patch, flags=re.MULTILINE):
        heading = section.partition("\n")[0]
        if heading.startswith("diff --git "):
            found[heading.rpartition(" b/")[2].rstrip('"')] = section
    return found


def problem_with(where: str, quote: str, sources: Sources) -> str | None:
    """Why a citation does not hold, in a sentence; nothing where it does."""
    place = where.strip().strip("`[]").strip()
    found = _texts(place, sources)
    shown = place[:LONGEST_NAME]
    if found is None:
        return f"The cited place {shown!r} does not exist."
    wanted = _plain(_LINE_NUMBER.sub("", quote))
    if len(wanted) < SHORTEST_QUOTE:
        return f"The citation of {shown!r} has no quote."
    if any(wanted in _plain(text) for text in found):
        return None
    return f"The quote is not found at {shown!r}: {' '.join(quote.split())[:LONGEST_NAME]!r}"


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
