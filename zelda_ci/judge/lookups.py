"""What a judge may look up: the final workspace, and the whole transcript. Read-only, bounded, redacted, fenced.

The tree was written by a session that may be hostile, and is read accordingly. The same request always has the same
answer, so that a recorded judging can be replayed: the order is fixed, and the limits are counts, never times.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from zelda_ci.domain.context import EvalContext
from zelda_ci.domain.session import SessionTranscript, Turn
from zelda_ci.judge.base import LookupTool, problems_of
from zelda_ci.judge.characters import marked, spelled
from zelda_ci.judge.prompts import fence, mark_of
from zelda_ci.judge.rendering import image_line, rendered_call, rendered_turn, units
from zelda_ci.judge.workspace import MAX_PATTERN_LENGTH, MAX_SEARCHED_BYTES, FinalTree, InvalidPatternError, expression
from zelda_ci.redact import Redactor, SafeText

MAX_RESULT_LENGTH = 20_000
MAX_LINES = 400
MAX_LISTED = 500
MAX_MATCHES = 60
MAX_LINE_LENGTH = 2000
# Of a line in a list of matches.
MAX_EXCERPT_LENGTH = 300

GONE = (
    "The final workspace is gone, because this run is judged again: its files cannot be looked up, the transcript can."
)


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ListFiles(_Request):
    """Lists files of the final workspace, as the session left it, also those that it did not change."""

    glob: str = Field("*", max_length=MAX_PATTERN_LENGTH, description="Like src/**/*.py, or *.md at any depth.")


class ReadFile(_Request):
    """Reads lines of any file of the final workspace. Cite them by the kind file."""

    path: str = Field(description="From the top of the repository.")
    first_line: int = Field(1, ge=1)
    lines: int = Field(200, ge=1, le=MAX_LINES)
    column: int = Field(1, ge=1, description=f"Where long lines begin; {MAX_LINE_LENGTH} characters of each are shown.")


class SearchFiles(_Request):
    """Finds lines in the files of the final workspace."""

    pattern: str = Field(min_length=1, max_length=MAX_PATTERN_LENGTH)
    is_regex: bool = Field(default=False, description="RE2 syntax; otherwise the text itself is searched.")
    glob: str = Field("*", max_length=MAX_PATTERN_LENGTH)


class ListTurns(_Request):
    """Lists turns of the session and their tool calls, one line each, with the size of what they returned."""

    first_turn: int = Field(1, ge=1)
    turns: int = Field(100, ge=1, le=MAX_LISTED)


class ReadTurn(_Request):
    """Reads what was said in a turn, or one of its tool calls with its whole output. Cite it by the kind transcript."""

    turn: int = Field(ge=1)
    call: int = Field(0, ge=0, description="Number of the call; 0 for the turn with all its calls.")
    first_line: int = Field(1, ge=1)
    lines: int = Field(200, ge=1, le=MAX_LINES)
    column: int = Field(1, ge=1, description=f"Where long lines begin; {MAX_LINE_LENGTH} characters of each are shown.")


class ViewImage(_Request):
    """Shows an image that a tool call returned. Cite it by the kind image."""

    turn: int = Field(ge=1)
    call: int = Field(ge=1)
    image: int = Field(1, ge=1, description="Number of the image among those of the call.")


class SearchTranscript(_Request):
    """Finds lines anywhere in the session: in what was said, in the input of tools, in what they returned."""

    pattern: str = Field(min_length=1, max_length=MAX_PATTERN_LENGTH)
    is_regex: bool = Field(default=False, description="RE2 syntax; otherwise the text itself is searched.")


class _UnknownError(Exception):
    """What was asked for is not there; the words are for the judge."""


@dataclass(frozen=True)
class SessionLookups:
    """Looks things up in one run."""

    transcript: SessionTranscript
    root: Path | None
    """Top of the final workspace; absent where it is gone."""
    nonce: str
    """Of the run's fences."""
    redact: Redactor
    has_images: bool = False
    """Whether images can be looked up."""

    @property
    def remark(self) -> str:
        """What the judge should know about the tools, in a sentence."""
        return "" if self.root else GONE

    @property
    def tools(self) -> tuple[LookupTool, ...]:
        """Those for files are offered only where there are any."""
        requests = [*(_OF_FILES if self.root else ()), *_OF_THE_TRANSCRIPT, *(_OF_IMAGES if self.has_images else ())]
        return tuple(LookupTool(name, (kind.__doc__ or "").strip(), _schema(kind)) for name, kind in requests)

    def run(self, name: str, values: Mapping[str, Any]) -> SafeText:
        """One look-up; what is wrong with it is said in the answer."""
        try:
            request = dict((*_OF_FILES, *_OF_THE_TRANSCRIPT, *_OF_IMAGES))[name].model_validate(dict(values))
            heading, text = self._answer(request)
        except KeyError:
            return self.redact("There is no tool of this name.")
        except ValidationError as problem:
            return self.redact(problems_of(problem))
        except (_UnknownError, InvalidPatternError) as problem:
            return self.redact(f"That cannot be looked up: {problem}")
        except OSError as problem:
            return self.redact(f"That cannot be looked up: {problem.strerror}")
        text = marked(text)
        if len(text) > MAX_RESULT_LENGTH:
            heading += f" Cut after {MAX_RESULT_LENGTH} characters: ask for less at once."
        return self.redact(f"{heading}\n{fence('looked-up', text[:MAX_RESULT_LENGTH], self.nonce)}")

    def _answer(self, request: _Request) -> tuple[str, str]:
        """A heading in our own words, and the evidence under it."""
        match request:
            case ListFiles():
                return self._listed(request)
            case ReadFile():
                text = self.redact(self._tree.text(request.path))
                return _range(text, request.first_line, request.lines, request.column)
            case SearchFiles():
                return self._found_in_files(request)
            case ListTurns():
                return self._turns(request)
            case ReadTurn() | ViewImage():
                return self._of_turn(request)
            case SearchTranscript():
                return _matches(self._transcript_lines(), expression(request.pattern, is_regex=request.is_regex), "")
            case _:
                raise _UnknownError("this tool has no answer")

    # The final workspace

    @cached_property
    def _tree(self) -> FinalTree:
        if self.root is None:
            raise _UnknownError(GONE)
        return FinalTree(self.root)

    def _more(self) -> str:
        return "" if self._tree.is_whole else " There is more in the tree: not all of it was looked at."

    def _listed(self, request: ListFiles) -> tuple[str, str]:
        found = self._tree.files([request.glob.removeprefix("./")])
        shown = f", the first {MAX_LISTED} of them" if len(found) > MAX_LISTED else ""
        return f"{len(found)} files{shown}.{self._more()}", "\n".join(map(spelled, found[:MAX_LISTED]))

    def _found_in_files(self, request: SearchFiles) -> tuple[str, str]:
        sought = expression(request.pattern, is_regex=request.is_regex)
        searched = unread = 0
        places: list[tuple[str, str]] = []
        for path in self._tree.files([request.glob.removeprefix("./")]):
            if searched >= MAX_SEARCHED_BYTES or len(places) > MAX_MATCHES:
                unread += 1
                continue
            try:
                text = self.redact(self._tree.text(path))
            except OSError:
                unread += 1
                continue
            searched += len(text)
            # First as a whole, which is fast; most files do not match.
            if sought.search(text):
                lines = enumerate(text.splitlines(), start=1)
                places += [(f"{spelled(path)}:{number}", line) for number, line in lines if sought.search(line)]
        left = f" {unread} files were not searched." if unread else ""
        return _matches(iter(places), sought, f"{left}{self._more()}")

    # The transcript

    @cached_property
    def _by_number(self) -> dict[int, Turn]:
        return {turn.index: turn for turn in self.transcript.turns}

    def _turns(self, request: ListTurns) -> tuple[str, str]:
        turns = self.transcript.turns
        shown = [turn for turn in turns if turn.index >= request.first_turn][: request.turns]
        return f"{len(turns)} turns in all.", "\n".join(line for turn in shown for line in _outline(turn))

    def _of_turn(self, request: ReadTurn | ViewImage) -> tuple[str, str]:
        if isinstance(request, ViewImage):
            return "The image, if it can be shown.", self._image(request)
        return _range(self._turn(request), request.first_line, request.lines, request.column, numbered=False)

    def _turn(self, request: ReadTurn) -> str:
        turn = self._by_number.get(request.turn)
        if turn is None:
            raise _UnknownError(f"there is no turn {request.turn}: the session has {len(self._by_number)}")
        if request.call > len(turn.tool_calls):
            raise _UnknownError(f"turn {request.turn} has {len(turn.tool_calls)} calls")
        mark = mark_of(self.nonce)
        return rendered_call(turn.tool_calls[request.call - 1], mark) if request.call else rendered_turn(turn, mark)

    def _image(self, request: ViewImage) -> str:
        """The line that stands for an image."""
        turn = self._by_number.get(request.turn)
        calls = turn.tool_calls if turn else ()
        images = calls[request.call - 1].images if request.call <= len(calls) else ()
        if request.image > len(images):
            raise _UnknownError(f"turn {request.turn} call {request.call} has {len(images)} images")
        return image_line(mark_of(self.nonce), request.image, images[request.image - 1])

    def _transcript_lines(self) -> Iterator[tuple[str, str]]:
        mark, last = mark_of(self.nonce), 0
        for entry, told in zip(self.transcript.entries, units(self.transcript, mark), strict=True):
            if not isinstance(entry, Turn):
                yield from ((f"after turn {last}", line) for line in told.splitlines())
                continue
            last = entry.index
            said = (line for text in (entry.thinking, entry.text) for line in (text or "").splitlines())
            yield from ((f"turn {last}", line) for line in said)
            for number, call in enumerate(entry.tool_calls, start=1):
                lines = enumerate(rendered_call(call, mark).splitlines(), start=1)
                yield from ((f"turn {last} call {number} (its line {at})", line) for at, line in lines)


def lookups_of(context: EvalContext, nonce: str, redact: Redactor) -> SessionLookups | None:
    """What a judge of a run may look up, if anything. Judges that share a prefix offer the same."""
    if not context.suite.judge.max_lookups:
        return None
    root = context.workspace.root if context.workspace else None
    has_images = context.suite.judge.images and any(call.images for call in context.transcript.tool_calls)
    return SessionLookups(context.transcript, root, nonce, redact, has_images)


_OF_FILES: Sequence[tuple[str, type[_Request]]] = (
    ("list_files", ListFiles),
    ("read_file", ReadFile),
    ("search_files", SearchFiles),
)
_OF_THE_TRANSCRIPT: Sequence[tuple[str, type[_Request]]] = (
    ("list_turns", ListTurns),
    ("read_turn", ReadTurn),
    ("search_transcript", SearchTranscript),
)
_OF_IMAGES: Sequence[tuple[str, type[_Request]]] = (("view_image", ViewImage),)


def _schema(kind: type[_Request]) -> dict[str, Any]:
    schema = kind.model_json_schema()
    schema.pop("description", None)
    return schema


def _matches(lines: Iterator[tuple[str, str]], expression: Any, note: str) -> tuple[str, str]:
    """Lines that match, as much of each as shows where."""
    found: list[str] = []
    for where, line in lines:
        if len(found) <= MAX_MATCHES and (match := expression.search(line)):
            start = max(0, match.start() - MAX_EXCERPT_LENGTH // 3)
            cut = "" if len(line) <= MAX_EXCERPT_LENGTH else f" [column {start + 1} of {len(line)}]"
            found.append(f"{where}:{cut} {line[start : start + MAX_EXCERPT_LENGTH]}")
        elif len(found) > MAX_MATCHES:
            break
    more = f" There are more than these {MAX_MATCHES}: search more narrowly." if len(found) > MAX_MATCHES else ""
    return f"{min(len(found), MAX_MATCHES)} lines match.{more}{note}", "\n".join(found[:MAX_MATCHES])


def _range(text: str, first: int, count: int, column: int, *, numbered: bool = True) -> tuple[str, str]:
    """Some lines; of long ones, some columns."""
    lines = text.splitlines()
    if first > max(1, len(lines)):
        raise _UnknownError(f"it has {len(lines)} lines")
    shown = lines[first - 1 : first - 1 + count]
    cut = sum(len(line) > MAX_LINE_LENGTH for line in shown)
    note = f" Of {cut} long lines, {MAX_LINE_LENGTH} characters from column {column} are shown." if cut else ""
    pieces = [
        line[column - 1 : column - 1 + MAX_LINE_LENGTH] if len(line) > MAX_LINE_LENGTH else line for line in shown
    ]
    if numbered:
        pieces = [f"{number} | {piece}" for number, piece in enumerate(pieces, start=first)]
    return f"Lines {first} to {first - 1 + len(shown)} of {len(lines)}.{note}", "\n".join(pieces)


def _outline(turn: Turn) -> Iterator[str]:
    thread = " (in a sub-agent)" if turn.parent_tool_call_id else ""
    yield f"turn {turn.index}{thread}: {_short(turn.text or turn.thinking or '')}"
    for number, call in enumerate(turn.tool_calls, start=1):
        returned = "never returned" if call.output is None else f"returned {len(call.output.splitlines())} lines"
        failed = ", an error" if call.is_error else ""
        yield f"turn {turn.index} call {number}: {call.name} {_short(_given(call.input))} - {returned}{failed}"


def _given(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False)


def _short(text: str) -> str:
    words = " ".join(text[:400].split())
    return words if len(words) <= 120 else f"{words[:120]} ..."
