"""Images of tools are kept by their own bytes and within bounds, whoever wrote them."""

import base64
import hashlib
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from zelda_ci.domain.session import MAX_IMAGE_BYTES, SessionImage
from zelda_ci.redact import Redactor, Secret
from zelda_ci.storage import result_store as images
from zelda_ci.storage.result_store import MAX_IMAGES, ImageFolder

SECRET = "sk-ant-fake-in-a-picture-0815"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture
def folder(tmp_path: Path) -> ImageFolder:
    return ImageFolder(tmp_path, Redactor([Secret(SECRET)]))


def files(folder: ImageFolder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir()) if folder.path.exists() else []


REFUSED: dict[str, Callable[[], str]] = {
    "its base64 is damaged": lambda: encoded(PNG)[:-1],
    "not a PNG, JPEG, GIF or WebP": lambda: encoded(b"<svg onload='alert(1)'/>"),
    "not a PNG, JPEG, GIF or WebP ": lambda: encoded(b"RIFF\x10\0\0\0WAVE"),
    "its metadata holds a secret": lambda: encoded(PNG + SECRET.encode()),
    "most of it is text": lambda: encoded(PNG + b"All tests pass. " * 100_000),
    "larger than 3.7 MB": lambda: encoded(PNG + bytes(MAX_IMAGE_BYTES + 1)),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_no_image_is_not_kept_and_it_is_said_why(folder: ImageFolder, why: str) -> None:
    assert folder.keep(REFUSED[why]()) == why.strip()
    assert files(folder) == []


def test_a_large_image_is_kept_once_and_all_together_are_bounded(
    folder: ImageFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = PNG + random.Random(1).randbytes(MAX_IMAGE_BYTES - len(PNG))
    first = folder.keep(encoded(large))
    assert isinstance(first, SessionImage)
    assert folder.keep(encoded(large)) == first
    assert len(files(folder)) == 1
    kept = [folder.keep(encoded(PNG + number.to_bytes(2))) for number in range(MAX_IMAGES)]
    assert kept[-1] == f"the session had {MAX_IMAGES} images before"
    assert len(files(folder)) == MAX_IMAGES - 1  # one of them was named twice
    full = ImageFolder(folder.path.parent / "full", Redactor())
    monkeypatch.setattr(images, "MAX_TOTAL_BYTES", 2 * len(PNG))
    full.path.parent.mkdir()
    assert [type(full.keep(encoded(PNG + bytes([number])))) for number in range(2)] == [SessionImage, str]


@pytest.mark.parametrize(
    ("data", "media_type", "ending"),
    [
        (PNG, "image/png", "png"),
        (b"\xff\xd8\xff\xe0 and more", "image/jpeg", "jpg"),
        (b"GIF89a and more", "image/gif", "gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 and more", "image/webp", "webp"),
    ],
)
def test_an_image_is_known_by_its_bytes_and_named_by_its_digest(
    folder: ImageFolder, data: bytes, media_type: str, ending: str
) -> None:
    kept = folder.keep(encoded(data))
    digest = hashlib.sha256(data).hexdigest()
    assert kept == SessionImage.model_validate({"media_type": media_type, "size_bytes": len(data), "sha256": digest})
    assert (folder.path / f"{digest}.{ending}").read_bytes() == data


def test_only_images_of_ours_are_published_and_none_behind_a_link(folder: ImageFolder, tmp_path: Path) -> None:
    kept = folder.keep(encoded(PNG))
    assert isinstance(kept, SessionImage)
    (folder.path / "notes.txt").write_text("not ours")
    assert images.image_files(tmp_path) == (f"images/{kept.file_name}",)
    run = tmp_path / "run"
    assert images.image_files(run) == ()
    run.mkdir()
    (run / "images").symlink_to(folder.path)
    assert images.image_files(run) == ()
