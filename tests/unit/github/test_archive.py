"""Archives that somebody else made, names of artifacts and of the files in them."""

import io
import struct
import unicodedata
import warnings
import zipfile
import zlib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zelda_ci.errors import ArtifactError
from zelda_ci.github.archives import MAX_ARTIFACT_NAME_LENGTH, MemberReader, artifact_name

FILES = {"zelda-ci.json": b'{"a": 1}', "runs/r/transcript.json": b"x" * 5000}


def archive(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED, comment: bytes = b"") -> bytes:
    blob = io.BytesIO()
    with zipfile.ZipFile(blob, "w", method) as target:
        for name, content in files.items():
            target.writestr(name, content)
        target.comment = comment
    return blob.getvalue()


def read(blob: bytes, *wanted: str, member: int = 10_000, total: int = 20_000, members: int = 20) -> dict[str, bytes]:
    return MemberReader(io.BytesIO(blob), max_members=members).read(
        wanted, max_member_bytes=member, max_total_bytes=total
    )


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


def test_only_wanted_members_are_read_by_their_exact_names_and_missing_ones_are_absent() -> None:
    blob = archive({**FILES, "big": b"0" * 100_000})
    assert read(blob, "zelda-ci.json", "comparison.json") == {"zelda-ci.json": FILES["zelda-ci.json"]}
    hostile = {"../zelda-ci.json": b"1", "/zelda-ci.json": b"2", "./zelda-ci.json": b"3", "ZELDA-CI.JSON": b"4"}
    assert read(archive(hostile), "zelda-ci.json") == {}


def one(content: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive whose only member is the wanted one."""
    return archive({"zelda-ci.json": content}, method)


def twice() -> bytes:
    blob = io.BytesIO()
    with zipfile.ZipFile(blob, "w") as target, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target.writestr("zelda-ci.json", b"good")
        target.writestr("zelda-ci.json", b"evil")
    return blob.getvalue()


BLOB, MANY = archive(FILES), archive({f"f{number}": b"" for number in range(21)})
REFUSED: list[tuple[str, bytes]] = [
    *(
        ("no zip archive", blob)
        for blob in (b"", b"PK", b"a page of a proxy" * 10, b"PK\x05\x06", b"\0" * 22, BLOB[:-1])
    ),
    ("no zip archive", archive(FILES, comment=b"PK\x05\x06 and more")),
    ("damaged", BLOB[40:]),
    # A table of contents that lies outside.
    ("damaged", BLOB[:-6] + struct.pack("<L", 2**31) + BLOB[-2:]),
    # A name that is no UTF-8.
    ("damaged", patched(one(b"abc"), 8, "<H", 0x800).replace(b"zelda-ci", b"\xff\xfelda-ci")),
    # A 64-bit archive.
    ("unusual kind", BLOB[:-22] + b"PK\x06\x07" + b"\0" * 16 + BLOB[-22:]),
    ("same name", twice()),
    ("shorter", patched(one(b"abc"), 24, "<L", 9000)),
    *(("encrypted", patched(one(b"abc"), 8, "<H", flag)) for flag in (0x1, 0x20, 0x40, 0x2000)),
    *(("unusual way", patched(one(b"abc"), 10, "<H", method)) for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 93)),
    ("more than 20 files", MANY),
    # The same with another number of files in its end.
    ("more than 20 files", MANY[:-14] + struct.pack("<2H", 1, 1) + MANY[-10:]),
]


@pytest.mark.parametrize(("words", "blob"), REFUSED)
def test_an_archive_that_two_readers_could_understand_differently_is_refused(words: str, blob: bytes) -> None:
    assert words in refusal(blob)


def test_content_of_another_checksum_is_refused() -> None:
    assert "damaged" in refusal(archive(FILES, zipfile.ZIP_STORED).replace(b"xxxxx", b"xxyxx", 1), *FILES)


def test_what_is_too_large_is_refused_and_a_bomb_with_a_forged_size_is_not_unpacked() -> None:
    assert "more than 4999 bytes" in refusal(BLOB, *FILES, member=4999)
    assert "together" in refusal(BLOB, *FILES, total=5007)
    assert read(BLOB, *FILES, total=5008) == FILES
    assert "more than 1 files" in refusal(archive({"a" * 2000: b""}), members=1)
    bomb = one(b"\0" * 20_000_000)
    assert "more than 10000 bytes" in refusal(bomb)
    assert "damaged" in refusal(patched(bomb, 24, "<L", 100))


@given(st.binary(max_size=300), st.integers(0, 400))
def test_no_input_is_a_surprise(noise: bytes, start: int) -> None:
    blob = archive(FILES)
    garbled = blob[:start] + noise + blob[start + len(noise) :]
    try:
        found = read(garbled, *FILES)
    except ArtifactError:
        return
    assert all(zlib.crc32(content) == zlib.crc32(FILES[name]) for name, content in found.items())


@pytest.mark.parametrize("text", ["zelda-results", "Zelda results (2)", "résultats", "a.b_c", "日本語"])
def test_a_legal_name_stays(text: str) -> None:
    assert artifact_name(text) == text


def test_texts_that_look_alike_stay_apart() -> None:
    assert len({artifact_name(text) for text in ["a/b", "a:b", "a\\b", "a-b"]}) == 4


@given(st.text())
def test_any_text_becomes_a_legal_name_that_is_stable(text: str) -> None:
    name = artifact_name(text)
    assert not {*'":<>|*?\r\n\\/'} & {*name}
    assert not {*map(unicodedata.category, name)} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert artifact_name(name) == name
    assert 0 < len(name) <= MAX_ARTIFACT_NAME_LENGTH
