"""Images of tools are kept by their own bytes and within bounds, whoever wrote them."""

import base64
import hashlib
import random
from pathlib import Path

import pytest

from zelda_ci.domain.images import MAX_IMAGE_BYTES, SessionImage
from zelda_ci.redact import Redactor, Secret
from zelda_ci.storage import images
from zelda_ci.storage.images import MAX_IMAGES, ImageFolder

SECRET = "sk-ant-fake-in-a-picture-0815"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture
def folder(tmp_path: Path) -> ImageFolder:
    return ImageFolder(tmp_path, Redactor([Secret(SECRET)]))


def files(folder: ImageFolder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir()) if folder.path.exists() else []


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


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (encoded(PNG)[:-1], "its base64 is damaged"),
        ("\u00e9" * 40, "its base64 is damaged"),
        ("", "not a PNG, JPEG, GIF or WebP"),
        (encoded(b"<svg onload='alert(1)'/>"), "not a PNG, JPEG, GIF or WebP"),
        (encoded(b"%PDF-1.7"), "not a PNG, JPEG, GIF or WebP"),
        (encoded(b"RIFF\x10\0\0\0WAVE"), "not a PNG, JPEG, GIF or WebP"),
        (encoded(PNG + SECRET.encode()), "its metadata holds a secret"),
        (encoded(PNG + b"All tests pass. " * 100_000), "most of it is text"),
        ("A" * 100_000_000, "larger than 3.7 MB"),
        (encoded(PNG + bytes(MAX_IMAGE_BYTES + 1)), "larger than 3.7 MB"),
    ],
)
def test_what_is_no_image_is_not_kept_and_it_is_said_why(folder: ImageFolder, given: str, why: str) -> None:
    assert folder.keep(given) == why
    assert files(folder) == []


def test_the_same_image_is_stored_once_and_named_each_time(folder: ImageFolder) -> None:
    first, again = folder.keep(encoded(PNG)), folder.keep(encoded(PNG))
    assert first == again
    assert len(files(folder)) == 1


def test_of_a_thousand_images_only_so_many_are_kept(folder: ImageFolder) -> None:
    kept = [folder.keep(encoded(PNG + number.to_bytes(2))) for number in range(1000)]
    assert sum(isinstance(image, SessionImage) for image in kept) == MAX_IMAGES
    assert kept[-1] == f"the session had {MAX_IMAGES} images before"
    assert len(files(folder)) == MAX_IMAGES


def test_all_images_together_are_bounded(folder: ImageFolder) -> None:
    kept = [folder.keep(encoded(PNG + bytes([number]) + bytes(MAX_IMAGE_BYTES - 300))) for number in range(20)]
    stored = sum(path.stat().st_size for path in folder.path.iterdir())
    assert stored <= images.MAX_TOTAL_BYTES
    assert kept[-1] == "the session's images have 50 MB without it"


def test_where_nothing_can_be_written_the_session_goes_on_without_the_image(tmp_path: Path) -> None:
    folder = ImageFolder(tmp_path, Redactor())
    folder.path.write_text("in the way")
    why = folder.keep(encoded(PNG))
    assert isinstance(why, str)
    assert why.startswith("it could not be stored: ")


def test_only_images_of_ours_are_published(folder: ImageFolder, tmp_path: Path) -> None:
    kept = folder.keep(encoded(PNG))
    assert isinstance(kept, SessionImage)
    (folder.path / "notes.txt").write_text("not ours")
    assert images.image_files(tmp_path) == (f"images/{kept.file_name}",)
    assert images.image_files(tmp_path / "elsewhere") == ()


def test_a_folder_of_images_that_is_a_link_is_none(folder: ImageFolder, tmp_path: Path) -> None:
    folder.keep(encoded(PNG))
    run = tmp_path / "run"
    run.mkdir()
    (run / "images").symlink_to(folder.path)
    assert images.image_files(run) == ()


def test_a_large_image_has_little_text_and_is_kept(folder: ImageFolder) -> None:
    large = PNG + random.Random(1).randbytes(MAX_IMAGE_BYTES - len(PNG))
    assert isinstance(folder.keep(encoded(large)), SessionImage)
