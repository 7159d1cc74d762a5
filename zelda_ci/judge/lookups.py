"""What a judge may look up: the final workspace, and the whole transcript. Read-only, bounded, redacted, fenced.

A session that may be hostile has written the tree. The same request always has the same answer, so that a recorded
judging can be replayed: the order is fixed, and the limits are counts, never times.
"""

import errno
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import re2
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from zelda_ci.domain.session import SessionTranscript
from zelda_ci.files import globs, untrusted
from zelda_ci.judge.characters import marked, spelled
from zelda_ci.judge.rendering import CitedPiece, fence, mark_of, outline, pieces, problems_of
from zelda_ci.redact import Redactor, SafeText

MAX_ENTRIES = 50_000
# Of one file: a larger one is neither read nor searched.
MAX_FILE_BYTES = 10_000_000
# Of all files that one search reads.
MAX_SEARCHED_BYTES = 100_000_000
MAX_PATTERN_LENGTH = 500
MAX_RESULT_LENGTH = 20_000
MAX_LINES = 400
MAX_LISTED = 500
MAX_MATCHES = 60
# Of a line in a list of matches.
MAX_EXCERPT_LENGTH = 300
GONE = "The final workspace is gone, because this run is judged again: only the transcript can be looked up."

Number = Annotated[int, Field(ge=1)]
Glob = Annotated[str, Field(max_length=300, description="Like src/**/*.py, or *.md at any depth.")]
# A heading in our own words, and the evidence under it.
Found = tuple[str, str]


class LookupFailedError(Exception):
    """Why something cannot be looked up, in words."""


@dataclass(frozen=True)
class FinalTree:
    """The files below the top of a final workspace, without git's own."""

    root: Path

    @cached_property
    def _tree(self) -> untrusted.FileTree:
        return untrusted.tree(self.root, MAX_ENTRIES, leave_out=(".git",))

    @property
    def is_whole(self) -> bool:
        """False where there is more than is listed."""
        return self._tree.is_whole

    def files(self, patterns: Sequence[str]) -> list[str]:
        return [path for path in self._tree.files if _covers(patterns, path)]

    def others(self, patterns: Sequence[str]) -> list[str]:
        """What a pattern covers that is neither a regular file nor a folder, by path."""
        return [path for path in self._tree.others if _covers(patterns, path)]

    def read(self, path: str, max_bytes: int = MAX_FILE_BYTES) -> bytes:
        """The whole content of a regular file; raises OSError where it cannot be read, or is larger."""
        return untrusted.read_below(self.root, path.removeprefix("./"), max_bytes)

    def text(self, path: str, max_bytes: int = MAX_FILE_BYTES) -> str:
        """The text of a regular file; raises OSError as `read` does, and where it is binary."""
        data = self.read(path, max_bytes)
        if b"\0" in data:
            raise OSError(errno.EINVAL, "a binary file")
        return data.decode("utf-8", "replace")


def _covers(patterns: Sequence[str], path: str) -> bool:
    return globs.matches((pattern.removeprefix("./") for pattern in patterns), path)


def expression(pattern: str, *, is_regex: bool = True) -> Any:
    """Compile what is searched for in lines; raises LookupFailedError for what is too long, or no expression of RE2."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise LookupFailedError(f"the pattern is longer than {MAX_PATTERN_LENGTH} characters")
    found = globs.expression(f"(?m){pattern}" if is_regex else re2.escape(pattern), max_memory=16 << 20)
    if found is None:
        raise LookupFailedError("the pattern is no expression that RE2 understands")
    return found


class Request(BaseModel, ABC):
    """What a judge asks for. The docstring of each kind is what a judge is told of it."""

    model_config = ConfigDict(extra="forbid")

    @abstractmethod
    def answer(self, session: "SessionLookups") -> Found:
        """Look it up; raises LookupFailedError or OSError where that is not possible."""


class ListFiles(Request):
    """Lists files of the final workspace, as the session left it, also those that it did not change."""

    glob: Glob = "*"

    def answer(self, session: "SessionLookups") -> Found:
        found = session.tree.files([self.glob])
        shown = f", the first {MAX_LISTED} of them" if len(found) > MAX_LISTED else ""
        return f"{len(found)} files{shown}.{session.more}", "\n".join(map(spelled, found[:MAX_LISTED]))


class _Lines(Request):
    first_line: Number = 1
    lines: Annotated[int, Field(ge=1, le=MAX_LINES)] = 200

    def _of(self, text: str, line: str) -> Found:
        """The lines of a text that are asked for, each in a form."""
        all_lines = text.splitlines()
        if self.first_line > max(1, len(all_lines)):
            raise LookupFailedError(f"it has {len(all_lines)} lines")
        last = min(self.first_line - 1 + self.lines, len(all_lines))
        shown = (line.format(number=number, text=all_lines[number - 1]) for number in range(self.first_line, last + 1))
        return f"Lines {self.first_line} to {last} of {len(all_lines)}.", "\n".join(shown)


class ReadFile(_Lines):
    """Reads lines of any file of the final workspace. Cite them by the kind file."""

    path: str = Field(description="From the top of the repository.")

    def answer(self, session: "SessionLookups") -> Found:
        return self._of(session.redact(session.tree.text(self.path)), "{number} | {text}")


class _Search(Request):
    pattern: Annotated[str, Field(min_length=1, max_length=MAX_PATTERN_LENGTH)]
    is_regex: bool = Field(default=False, description="RE2 syntax; otherwise the text itself is searched.")

    @cached_property
    def _sought(self) -> Any:
        return expression(self.pattern, is_regex=self.is_regex)

    def _in(self, place: str, text: str) -> Iterator[str]:
        """Lines of a text that match, as much of each as shows where."""
        # First as a whole, which is fast; most texts do not match.
        if not self._sought.search(text):
            return
        for number, line in enumerate(text.splitlines(), start=1):
            if match := self._sought.search(line):
                start = max(0, match.start() - MAX_EXCERPT_LENGTH // 3)
                cut = "" if len(line) <= MAX_EXCERPT_LENGTH else f" [from column {start + 1} of {len(line)}]"
                yield f"{place}:{number}:{cut} {line[start : start + MAX_EXCERPT_LENGTH]}"

    @staticmethod
    def _listed(lines: Iterable[str], note: str = "") -> Found:
        found = list(islice(lines, MAX_MATCHES + 1))
        more = f" There are more than these {MAX_MATCHES}: search more narrowly." if len(found) > MAX_MATCHES else ""
        return f"{min(len(found), MAX_MATCHES)} lines match.{more}{note}", "\n".join(found[:MAX_MATCHES])


class SearchFiles(_Search):
    """Finds lines in the files of the final workspace."""

    glob: Glob = "*"

    def answer(self, session: "SessionLookups") -> Found:
        found: list[str] = []
        unread, room = 0, MAX_SEARCHED_BYTES
        for path in session.tree.files([self.glob]):
            try:
                text = session.redact(session.tree.text(path, min(MAX_FILE_BYTES, max(0, room))))
            except OSError:
                unread += 1
                continue
            room -= len(text)
            found += islice(self._in(spelled(path), text), MAX_MATCHES + 1)
            if len(found) > MAX_MATCHES:
                break
        return self._listed(found, (f" {unread} files were not searched." if unread else "") + session.more)


class ListTurns(_Lines):
    """Lists turns of the session and their tool calls, one line each, with the size of what they returned."""

    def answer(self, session: "SessionLookups") -> Found:
        return self._of("\n".join(outline(session.transcript.turns)), "{text}")


class ReadTurn(_Lines):
    """Reads what was said in a turn, or one of its tool calls with its whole output. Cite it by the kind transcript."""

    turn: Number
    call: int = Field(0, ge=0, description="Number of the call; 0 for the turn with all its calls.")

    def answer(self, session: "SessionLookups") -> Found:
        place = f"turn {self.turn} call {self.call}" if self.call else f"turn {self.turn}"
        texts = [
            piece.text if piece.place == place else piece.told(mark_of(session.nonce))
            for piece in session.pieces
            if piece.place == place or piece.place.startswith(f"{place} ")
        ]
        if not texts:
            raise LookupFailedError(f"there is no {place}: the session has {len(session.transcript.turns)} turns")
        return self._of("\n".join(texts), "{text}")


class SearchTranscript(_Search):
    """Finds lines anywhere in the session: in what was said, in the input of tools, in what they returned."""

    def answer(self, session: "SessionLookups") -> Found:
        return self._listed(line for piece in session.pieces for line in self._in(piece.place, piece.text))


OF_FILES: Mapping[str, type[Request]] = {"list_files": ListFiles, "read_file": ReadFile, "search_files": SearchFiles}
BY_TOOL: Mapping[str, type[Request]] = {
    **OF_FILES, "list_turns": ListTurns, "read_turn": ReadTurn, "search_transcript": SearchTranscript,
}  # fmt: skip


@dataclass(frozen=True)
class SessionLookups:
    """Looks things up in one run."""

    transcript: SessionTranscript
    root: Path | None
    """Top of the final workspace; absent where it is gone."""
    nonce: str
    redact: Redactor

    @property
    def remark(self) -> str:
        return "" if self.root else GONE

    @cached_property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """Those for files are offered only where there are any."""
        offered = (name for name in BY_TOOL if self.root or name not in OF_FILES)
        kinds = ((name, BY_TOOL[name]) for name in offered)
        return tuple({"name": it, "description": k.__doc__, "input_schema": k.model_json_schema()} for it, k in kinds)

    def run(self, name: str, values: Mapping[str, Any]) -> SafeText:
        """One look-up; what is wrong with it is said in the answer."""
        try:
            heading, text = BY_TOOL[name].model_validate(dict(values)).answer(self)
        except ValidationError as problem:
            return self.redact(problems_of(problem))
        except (OSError, LookupFailedError) as problem:
            return self.redact(f"That cannot be looked up: {getattr(problem, 'strerror', problem)}")
        text = marked(text)
        if len(text) > MAX_RESULT_LENGTH:
            heading += f" Cut after {MAX_RESULT_LENGTH} characters: ask for less at once."
        return self.redact(f"{heading}\n{fence('looked-up', text[:MAX_RESULT_LENGTH], self.nonce)}")

    @cached_property
    def tree(self) -> FinalTree:
        if self.root is None:
            raise LookupFailedError(GONE)
        return FinalTree(self.root)

    @property
    def more(self) -> str:
        return "" if self.tree.is_whole else " There is more in the tree: not all of it was looked at."

    @cached_property
    def pieces(self) -> tuple[CitedPiece, ...]:
        return tuple(pieces(self.transcript, mark_of(self.nonce)))
