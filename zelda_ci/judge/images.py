"""Images of a session before a judge: bounded, behind their lines in the text, and with a word where one is missing.

A line holds the run's mark, which the session does not know, and the digest of the image, so that nothing that a
session writes can put an image in the place of another.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.session import MAX_IMAGE_BYTES, SessionImage, SessionTranscript, ToolReturned, media_type_of
from zelda_ci.files import untrusted
from zelda_ci.judge.rendering import lines_of_images

# In one question. Beyond twenty in a request, the API takes only small ones.
MAX_SHOWN = 10
MAX_SHOWN_BYTES = 12_000_000
# What models count for a large one, at most.
TOKENS_OF_ONE = 5000
# Of the judge's context.
CONTEXT_SHARE = 0.15
BOUND = "only the last ones are shown"
TOO_SMALL = "the judge's context is too small for images"
GONE = "its file is gone"
OFF = "judge.images is off"
REFUSED = "the judge's API refused images"


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


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
        entries = self.transcript.entries
        alone = (image for entry in entries if isinstance(entry, ToolReturned) for image in entry.images)
        return (*(image for call in self.transcript.tool_calls for image in call.images), *alone)

    @property
    def can_be_shown(self) -> bool:
        return bool(self.all) and self.folder is not None

    @property
    def most(self) -> int:
        return min(MAX_SHOWN, int(CONTEXT_SHARE * self.context_tokens / TOKENS_OF_ONE))

    @property
    def tokens(self) -> int:
        return min(len(self.all), self.most) * TOKENS_OF_ONE if self.can_be_shown else 0

    def blocks(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """Texts as blocks, each image behind its line; where not all fit, the last ones, which tell most."""
        line, known = lines_of_images(self.mark), {image.sha256: image for image in self.all}
        left, room = self.most, MAX_SHOWN_BYTES
        blocks: list[dict[str, Any]] = []
        for text in reversed(texts):
            end, behind = len(text), ""
            for found in reversed([*line.finditer(text)]):
                behind, end = text[found.end() : end] + behind, found.end()
                image = known.get(found[1])
                why = self._why_not(image)
                if why is None and image and left and image.size_bytes <= room and (data := self._read(image)):
                    left, room = left - 1, room - len(data)
                    self.shown.add(image.sha256)
                    source = {"type": "base64", "media_type": image.media_type, "data": base64.b64encode(data).decode()}
                    blocks += [text_block(behind)] if behind else []
                    blocks.append({"type": "image", "source": source})
                    behind = ""
                else:
                    behind = f"\n[{self.mark} this image is not shown: {why or BOUND}]{behind}"
            blocks.append(text_block(text[:end] + behind))
        return blocks[::-1]

    def objection(self, image: SessionImage) -> str | None:
        """Why a judge cannot have seen an image."""
        is_seen = image.sha256 in self.shown and not self.is_refused
        return None if is_seen else self._why_not(image) or "it was not shown"

    def notes(self) -> Iterator[str]:
        if unseen := [image for image in self.all if self.objection(image)]:
            why = ", ".join(dict.fromkeys(self._why_not(image) or BOUND for image in unseen))
            count = format_count(len(self.all), "image")
            yield f"Of {count} of the session, the judge did not see {len(unseen)}: {why}."

    def _why_not(self, image: SessionImage | None) -> str | None:
        """Why an image is not shown, however much room there is."""
        reasons = {OFF: self.folder is None, REFUSED: self.is_refused, TOO_SMALL: not self.most}
        reasons[GONE] = image not in self._there
        return next((why for why, applies in reasons.items() if applies), None)

    @cached_property
    def _there(self) -> frozenset[SessionImage | None]:
        """Those whose files can be shown; each is looked at once, however often it is named."""
        return frozenset(image for image in set(self.all) if self._read(image))

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
