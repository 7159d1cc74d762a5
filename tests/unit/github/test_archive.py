"""Archives that somebody else made."""

import io
import struct
import warnings
import zipfile
import zlib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zelda_ci.errors import ArtifactError
from zelda_ci.github.archives import read_members

FILES = {"zelda-ci.json": b'{"a": 1}', "runs/r/transcript.json": b"x" * 5000}


def archive(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED, comment: bytes = b"") -> bytes:
    blob = io.BytesIO()
    with zipfile.ZipFile(blob, "w", method) as target:
        for name, content in files.items():
            target.writestr(name, content)
        target.comment = comment
    return blob.getvalue()


def read(blob: bytes, *wanted: str, member: int = 10_000, total: int = 20_000, members: int = 20) -> dict[str, bytes]:
    return read_members(blob, wanted, max_member_bytes=member, max_total_bytes=total, max_members=members)


def refusal(blob: bytes, *wanted: str, **limits: int) -> str:
    with pytest.raises(ArtifactError) as caught:
        read(blob, *(wanted or ("zelda-ci.json",)), **limits)
    assert caught.value.code == "ARTIFACT_INVALID"
    return caught.value.message


def patched(blob: bytes, offset: int, layout: str, value: int) -> bytes:
    """The archive with another number in the entry of its only member, in the table of contents."""
    at = blob.rindex(b"PK\x01\x02") + offset
    return blob[:at] + struct.pack(layout, value) + blob[at + struct.calcsize(layout) :]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_wanted_members_are_read(method: int) -> None:
    assert read(archive(FILES, method), *FILES) == FILES


def test_only_wanted_members_are_read_and_missing_ones_are_absent() -> None:
    assert read(archive(FILES), "zelda-ci.json", "comparison.json") == {"zelda-ci.json": FILES["zelda-ci.json"]}


def test_a_member_that_nobody_wants_may_be_large() -> None:
    assert list(read(archive({**FILES, "big": b"0" * 100_000}), "zelda-ci.json")) == ["zelda-ci.json"]


def test_names_are_exact() -> None:
    hostile = {"../zelda-ci.json": b"1", "/zelda-ci.json": b"2", "./zelda-ci.json": b"3", "ZELDA-CI.JSON": b"4"}
    assert read(archive(hostile), "zelda-ci.json") == {}


@pytest.mark.parametrize(
    "blob",
    [b"", b"PK", b"not a zip at all, but a page of a proxy" * 10, b"PK\x05\x06", b"\0" * 22, archive(FILES)[:-1]],
)
def test_what_is_no_archive_is_refused(blob: bytes) -> None:
    assert "no zip archive" in refusal(blob)


def test_a_damaged_archive_is_refused() -> None:
    assert "damaged" in refusal(archive(FILES)[40:])
    stored = archive(FILES, zipfile.ZIP_STORED)
    assert "damaged" in refusal(stored.replace(b"xxxxx", b"xxyxx", 1), *FILES)


def test_a_large_member_is_refused() -> None:
    assert "more than 4999 bytes" in refusal(archive(FILES), *FILES, member=4999)


def test_members_that_are_large_together_are_refused() -> None:
    assert "together" in refusal(archive(FILES), *FILES, total=5007)
    assert read(archive(FILES), *FILES, total=5008) == FILES


def test_a_bomb_with_a_forged_size_is_not_unpacked() -> None:
    bomb = archive({"zelda-ci.json": b"\0" * 50_000_000})
    assert "more than 10000 bytes" in refusal(bomb)
    forged = patched(bomb, 24, "<L", 100)
    assert "damaged" in refusal(forged)


def test_a_member_shorter_than_it_says_is_refused() -> None:
    assert "shorter" in refusal(patched(archive({"zelda-ci.json": b"abc"}, zipfile.ZIP_DEFLATED), 24, "<L", 9000))


def test_many_members_are_refused_before_they_are_listed() -> None:
    blob = archive({f"f{number}": b"" for number in range(21)})
    assert "more than 20 files" in refusal(blob)
    lying = blob[:-14] + struct.pack("<2H", 1, 1) + blob[-10:]
    assert "more than 20 files" in refusal(lying)


def test_a_large_table_of_contents_is_refused() -> None:
    assert "more than 1 files" in refusal(archive({"a" * 2000: b""}), members=1)


def test_two_members_of_one_name_are_refused() -> None:
    blob = io.BytesIO()
    with zipfile.ZipFile(blob, "w") as target, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target.writestr("zelda-ci.json", b"good")
        target.writestr("zelda-ci.json", b"evil")
    assert "same name" in refusal(blob.getvalue())


@pytest.mark.parametrize("flag", [0x1, 0x20, 0x40, 0x2000])
def test_an_encrypted_member_is_refused(flag: int) -> None:
    assert "encrypted" in refusal(patched(archive({"zelda-ci.json": b"abc"}), 8, "<H", flag))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 93])
def test_an_unusual_compression_is_refused(method: int) -> None:
    assert "unusual way" in refusal(patched(archive({"zelda-ci.json": b"abc"}), 10, "<H", method))


def test_an_archive_with_a_comment_is_refused() -> None:
    assert "no zip archive" in refusal(archive(FILES, comment=b"PK\x05\x06 and more"))


def test_a_64_bit_archive_is_refused() -> None:
    blob = archive(FILES)
    assert "unusual kind" in refusal(blob[:-22] + b"PK\x06\x07" + b"\0" * 16 + blob[-22:])


def test_a_table_of_contents_that_lies_outside_is_refused() -> None:
    blob = archive(FILES)
    assert "damaged" in refusal(blob[:-6] + struct.pack("<L", 2**31) + blob[-2:])


def test_a_name_that_is_no_utf_8_is_refused() -> None:
    blob = patched(archive({"zelda-ci.json": b"abc"}), 8, "<H", 0x800)
    assert "damaged" in refusal(blob.replace(b"zelda-ci", b"\xff\xfelda-ci"))


@given(st.binary(max_size=300), st.integers(0, 400))
def test_no_input_is_a_surprise(noise: bytes, start: int) -> None:
    blob = archive(FILES)
    garbled = blob[:start] + noise + blob[start + len(noise) :]
    try:
        found = read(garbled, *FILES)
    except ArtifactError:
        return
    assert all(zlib.crc32(content) == zlib.crc32(FILES[name]) for name, content in found.items())
