"""What can be cited of a run, and what is known of a call beside it."""

import functools
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from zelda_ci.domain.session import SessionImage, SessionTranscript, Turn
from zelda_ci.metrics import citable, quotes
from zelda_ci.metrics.citable import CallSources, bare_patch_lines
from zelda_ci.metrics.quotes import Line, Passage, Standing

# Folders above a work tree that a session may name before the path of a file.
MAX_FOLDERS_ABOVE = 12

NO_WORKSPACE = "the final files are gone"


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
    """The text of any other file of the final workspace, by path."""
    task: str = ""
    patch_text: str = ""
    """The whole patch, or what stands in its place."""
    transcript: SessionTranscript | None = None
    """For what happened beside the turns."""
    mark: str = ""
    """Of Zelda's headings in the transcript, as the judge saw it."""
    blocks: Sequence[str] = ()
    """What the judge was shown beside the transcript, fences and all."""
    absent: Callable[[str], str | None] = lambda _: NO_WORKSPACE
    """Why a claim `PATTERN in PATHS` of absence does not hold."""
    image: Callable[[SessionImage], str | None] = lambda _: "no image was shown"
    """Why an image of a call cannot be cited: nobody has seen it."""
    knows_final_state: bool = False
    """Whether what is neither in the files nor in the patch is gone; otherwise nobody knows."""

    def file(self, path: str) -> str | None:
        """The final text of a file."""
        text = self.files.get(path)
        return self.unchanged(path) if text is None else text

    @functools.cached_property
    def _names(self) -> dict[str, str]:
        return {unicodedata.normalize("NFC", name): name for name in (*self.patch, *self.files)}

    def known(self, path: str) -> str:
        """A path as it is known, whatever its Unicode form."""
        return self._names.get(unicodedata.normalize("NFC", path), path)

    @functools.cached_property
    def _written(self) -> list[tuple[int, str]]:
        turns = sorted(self.turns.values(), key=lambda turn: turn.index)
        made = [(turn.index, citable.written_by(call)) for turn in turns for call in turn.tool_calls]
        return [(index, phrase) for index, phrase in made if phrase.strip()]

    def around(self, turn: int) -> CallSources:
        """What is known beside the calls of a turn."""
        earlier = [phrase for index, phrase in self._written if index < turn]
        return CallSources(lambda: earlier, self._still)

    def _still(self, path: str, text: str) -> bool:
        """Whether a file still has a text that was once written into it; where nobody can know, it is believed."""
        left = self._left_at(path)
        return not self.knows_final_state if left is None else quotes.plain(text) in left

    def _left_at(self, path: str) -> str | None:
        """What is known of the final text of a file, as `plain` text."""
        if path not in self._left:
            known = [self.known(name) for name in _below(path)]
            texts = (self.file(name) or self._patched(name) for name in known)
            left = next((text for text in texts if text is not None), None)
            self._left[path] = None if left is None else quotes.plain(left)
        return self._left[path]

    def _patched(self, name: str) -> str | None:
        lines = bare_patch_lines(self.patch[name]) if name in self.patch else None
        return "\n".join(line.text for line in lines if line.standing is not Standing.REMOVED) if lines else None

    @functools.cached_property
    def _left(self) -> dict[str, str | None]:
        return {}

    @functools.cached_property
    def _passages(self) -> dict[object, Sequence[Passage]]:
        return {}

    def passages(
        self, key: object, make: Callable[[], Iterable[Iterable[Line]]], *, has_signs: bool = False
    ) -> Sequence[Passage]:
        """Texts in which to look, made once."""
        if key not in self._passages:
            self._passages[key] = [Passage(lines, has_signs=has_signs) for lines in make()]
        return self._passages[key]


def turns_of(transcript: SessionTranscript) -> dict[int, Turn]:
    """The turns by their number."""
    return {turn.index: turn for turn in transcript.turns}


def _below(path: str) -> Iterator[str]:
    """A path, then without the folders above it, one after the other."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    for start in range(min(len(parts), MAX_FOLDERS_ABOVE)):
        yield "/".join(part for part in parts[start:] if part != "/")
