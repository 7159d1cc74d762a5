"""Images that tools returned, kept beside the transcript while a session runs.

Who writes them may be hostile: an image is known by its own bytes, lies in a file that its digest names, and is
bounded in size and number. Whatever is not kept is said in a sentence that the transcript shows in its place.
"""

import base64
import binascii
import hashlib
import re
from pathlib import Path

from zelda_ci.domain.session import MAX_IMAGE_BYTES, SessionImage, media_type_of
from zelda_ci.errors import StorageError
from zelda_ci.files.atomic import write_whole
from zelda_ci.redact import Redactor

IMAGES = "images"

# Named in a transcript, the same one several times included.
MAX_IMAGES = 100
# On disk, of one run.
MAX_TOTAL_BYTES = 50_000_000

FILE_NAME = re.compile(r"[0-9a-f]{64}\.(?:png|jpg|gif|webp)")

# Text in the bytes of an image: its metadata, or what somebody has hidden behind the first bytes of one.
_TEXT = re.compile(rb"[\x20-\x7e]{6,}")
# More of it is no image, and would take seconds to look through.
MAX_TEXT_LENGTH = 500_000


def image_files(run: Path) -> tuple[str, ...]:
    """The images of a run, by path below its folder; what else lies beside them is none of ours."""
    folder = run / IMAGES
    if folder.is_symlink() or not folder.is_dir():
        return ()
    return tuple(sorted(f"{IMAGES}/{path.name}" for path in folder.iterdir() if FILE_NAME.fullmatch(path.name)))


class ImageFolder:
    """Folder of the images of one run."""

    def __init__(self, run: Path, redact: Redactor) -> None:
        self.path = run / IMAGES
        # Without guessing by names: compressed bytes name nothing.
        self._redact = redact.known_only()
        self._named = 0
        self._stored: dict[str, int] = {}

    def keep(self, encoded: str) -> SessionImage | str:
        """Keep an image that came as base64; else why not, in a few words."""
        if self._named >= MAX_IMAGES:
            return f"the session had {MAX_IMAGES} images before"
        # Before it is decoded: a message may have 64 MB.
        if len(encoded) > MAX_IMAGE_BYTES * 4 // 3 + 4:
            return f"larger than {MAX_IMAGE_BYTES / 1_000_000:g} MB"
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return "its base64 is damaged"
        media_type = media_type_of(data)
        if media_type is None:
            return "not a PNG, JPEG, GIF or WebP"
        text = b"\n".join(_TEXT.findall(data)).decode("ascii")
        if len(text) > MAX_TEXT_LENGTH:
            return "most of it is text"
        if self._redact(text) != text:
            return "its metadata holds a secret"
        image = SessionImage(media_type=media_type, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        if image.sha256 not in self._stored:
            if sum(self._stored.values()) + len(data) > MAX_TOTAL_BYTES:
                return f"the session's images have {MAX_TOTAL_BYTES // 1_000_000} MB without it"
            try:
                write_whole(self.path / image.file_name, [data], durable=False)
            except StorageError as problem:
                return f"it could not be stored: {problem.message}"
            self._stored[image.sha256] = len(data)
        self._named += 1
        return image
