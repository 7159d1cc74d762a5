"""Images in what tools return: what kinds are known, by their own bytes, and how a transcript names one. Pure."""

import re
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt

from zelda_ci.domain.base import Record

MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]

# What models can see, and so what a session has seen.
ENDINGS: dict[MediaType, str] = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
}

# Of one image: the API takes 5 MB of base64.
MAX_IMAGE_BYTES = 3_700_000


class SessionImage(Record):
    """An image that a tool returned. It lies beside the transcript, in a file that its digest names."""

    media_type: MediaType
    """By its first bytes, whatever the tool called it."""
    size_bytes: NonNegativeInt
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return f"{self.sha256}.{ENDINGS[self.media_type]}"


def media_type_of(data: bytes) -> MediaType | None:
    """What an image is by its first bytes; nothing where it is none of the kinds that are known."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def image_line(mark: str, number: int, image: SessionImage) -> str:
    """What stands for an image in a text; with a mark that the session does not know, it cannot forge one."""
    return f"[{mark} image {number}: {image.media_type}, {image.size_bytes} bytes, {image.sha256}]"


def lines_of_images(mark: str) -> re.Pattern[str]:
    """Matches such lines; the group is the digest."""
    told = rf"\[{re.escape(mark)} image \d+: image/\w+, \d+ bytes, ([0-9a-f]{{64}})\]"
    return re.compile(f"^{told}$", re.MULTILINE)
