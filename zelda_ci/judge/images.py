"""Images of a session before a judge: at their place, bounded, and with a word where one is missing.

A transcript that is told as text has a line for each image. Where a question is put together, the image follows its
line. The line holds the run's mark, which the session does not know, and the digest of the image, so that nothing that
a session writes can put an image in the place of another.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from zelda_ci.domain.session import MAX_IMAGE_BYTES, SessionImage, SessionTranscript, ToolReturned, media_type_of
from zelda_ci.files import untrusted
from zelda_ci.judge.rendering import lines_of_images

# At the beginning of one question. Beyond twenty in a request, the API takes only small ones.
MAX_SHOWN = 10
MAX_SHOWN_BYTES = 12_000_000
# Looked up for one question.
MAX_LOOKED_UP = 5
MAX_LOOKED_UP_BYTES = 6_000_000

# What models count for a large one, at most.
TOKENS_OF_ONE = 5000
# Of the judge's context.
CONTEXT_SHARE = 0.15

BOUND = "only the last ones are shown at once; view_image shows it"
LOOKED_UP = "too many were looked up for this question"
TOO_SMALL = "the judge's context is too small for images"
GONE = "its file is gone"
OFF = "judge.images is off"
REFUSED = "the judge's API refused images"


@dataclass
class Room:
    """What may still be shown."""

    images: int
    size_bytes: int
    why_not: str

    def take(self, image: SessionImage) -> bool:
        """Whether an image fits; it takes its room then."""
        if self.images < 1 or self.size_bytes < image.size_bytes:
            return False
        self.images -= 1
        self.size_bytes -= image.size_bytes
        return True


@dataclass
class SessionImages:
    """The images of one session, and what a judge has seen of them."""

    transcript: SessionTranscript
    folder: Path | None
    """Where they lie; absent where they are not to be shown."""
    mark: str
    context_tokens: int
    is_refused: bool = False
    """Whether the judge's API has refused to take images."""
    shown: set[str] = field(default_factory=set)
    """Digests of those that a judge was shown."""

    @cached_property
    def all(self) -> tuple[SessionImage, ...]:
        """Every image that the transcript names, in order."""
        entries = self.transcript.entries
        alone = (image for entry in entries if isinstance(entry, ToolReturned) for image in entry.images)
        return (*(image for call in self.transcript.tool_calls for image in call.images), *alone)

    @property
    def can_be_shown(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.all) and self.folder is not None

    @property
    def most(self) -> int:
        """How many a question begins with."""
        return min(MAX_SHOWN, int(CONTEXT_SHARE * self.context_tokens / TOKENS_OF_ONE))

    @property
    def tokens(self) -> int:
        """Estimated size of those that a question begins with."""
        return min(len(self.all), self.most) * TOKENS_OF_ONE if self.can_be_shown else 0

    def at_first(self) -> Room:
        """For what a question begins with."""
        return Room(self.most, MAX_SHOWN_BYTES, BOUND if self.most else TOO_SMALL)

    def later(self) -> Room:
        """For what is looked up."""
        return Room(min(MAX_LOOKED_UP, self.most), MAX_LOOKED_UP_BYTES, LOOKED_UP if self.most else TOO_SMALL)

    def blocks(self, texts: Sequence[str], room: Room) -> list[list[dict[str, Any]]]:
        """Texts as blocks, each image behind its line. Where not all fit, the last ones are shown: they tell most."""
        found = [(at, line) for at, text in enumerate(texts) for line in self._line.finditer(text)]
        data = {(at, line.start()): self._shown(line[1], room) for at, line in reversed(found)}
        cut: list[list[dict[str, Any]]] = []
        for at, text in enumerate(texts):
            places = {line.end(): data[at, line.start()] for number, line in found if number == at}
            cut.append(list(self._cut(text, places)))
        return cut

    def without(self, content: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Blocks in which every image is replaced by a word about it."""
        self.is_refused = True
        return [self._replaced(block) for block in content]

    def objection(self, image: SessionImage) -> str | None:
        """Why a judge cannot have seen an image."""
        if self.folder is None:
            return OFF
        if self.is_refused:
            return REFUSED
        if image.sha256 in self.shown:
            return None
        return "it was not shown" if self._is_there(image) else GONE

    def notes(self) -> Iterator[str]:
        """What the judge did not see, in sentences."""
        if not self.all:
            return
        count = f"{len(self.all)} images" if len(self.all) > 1 else "image"
        reasons = {OFF: self.folder is None, REFUSED: self.is_refused, TOO_SMALL: not self.most}
        if why := next((why for why, applies in reasons.items() if applies), None):
            yield f"The judge saw nothing of the session's {count}: {why}."
            return
        if gone := sum(not self._is_there(image) for image in self.all):
            yield f"Of the session's {count}, the files of {gone} are gone: the judge did not see them."
        if len(self.all) > self.most:
            yield f"Of the session's {count}, a question shows the last {self.most}; the judge can look up others."

    @cached_property
    def _line(self) -> re.Pattern[str]:
        return lines_of_images(self.mark)

    @cached_property
    def _known(self) -> dict[str, SessionImage]:
        return {image.sha256: image for image in self.all}

    def _shown(self, digest: str, room: Room) -> dict[str, Any]:
        """The block that follows a line: the image, or a word about it."""
        image = self._known.get(digest)
        if image is None or not self._is_there(image):
            return self._missing(OFF if self.folder is None else GONE)
        if not room.take(image):
            return self._missing(room.why_not)
        data = self._read(image)
        if data is None:
            return self._missing(GONE)
        self.shown.add(digest)
        source = {"type": "base64", "media_type": image.media_type, "data": base64.b64encode(data).decode()}
        return {"type": "image", "source": source}

    def _missing(self, why: str) -> dict[str, Any]:
        return {"type": "text", "text": f"[{self.mark} this image is not shown: {why}]"}

    def _replaced(self, block: dict[str, Any]) -> dict[str, Any]:
        if block.get("type") == "image":
            return self._missing(REFUSED)
        if isinstance(inner := block.get("content"), list):
            return {**block, "content": [self._replaced(part) for part in inner]}
        return block

    def _cut(self, text: str, places: dict[int, dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The text up to each place, and what belongs there; words about images stay in the text."""
        told, start = "", 0
        for end, block in places.items():
            told += text[start:end]
            start = end
            if block["type"] == "text":
                told += f"\n{block['text']}"
                continue
            yield {"type": "text", "text": told}
            yield block
            told = ""
        if rest := told + text[start:]:
            yield {"type": "text", "text": rest}

    @cached_property
    def _there(self) -> dict[SessionImage, bool]:
        return {}

    def _is_there(self, image: SessionImage) -> bool:
        """Whether the file of an image can be shown; each is looked at once, however often it is named."""
        if image not in self._there:
            self._there[image] = self._read(image) is not None
        return self._there[image]

    def _read(self, image: SessionImage) -> bytes | None:
        """The bytes of an image, if its file still holds what the transcript names."""
        if self.folder is None:
            return None
        try:
            with untrusted.entered(self.folder) as folder:
                data = untrusted.read(image.file_name, MAX_IMAGE_BYTES, folder=folder)
        except OSError:
            return None
        is_it = hashlib.sha256(data).hexdigest() == image.sha256 and media_type_of(data) == image.media_type
        return data if is_it else None
