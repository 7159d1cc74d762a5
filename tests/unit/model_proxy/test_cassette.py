from pathlib import Path

import pytest

from zelda_ci.errors import ProxyError
from zelda_ci.model_proxy.cassettes.cassette import (
    Cassette,
    Exchange,
    RecordedRequest,
    RecordedResponse,
    dump,
    load,
    partial_file,
    write_whole,
)
from zelda_ci.redact import Redactor

SAFE = Redactor()
REQUEST = RecordedRequest(
    thread="main",
    arrival=0,
    turn=0,
    model=SAFE("claude-sonnet-5-5"),
    digest="d",
    parts={"last": "1"},
    tools=(SAFE("Bash"),),
    said=SAFE("Add a route.\nPlease: ä"),
)
EVENTS = (
    SAFE.json({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x" * 300}}),
    SAFE.json({"type": "message_stop"}),
)
CASSETTE = Cassette(
    zelda="1",
    cli=SAFE("claude-cli/2"),
    label="a",
    exchanges=(
        Exchange(request=REQUEST, response=RecordedResponse(status=200, events=EVENTS, cut=True)),
        Exchange(request=REQUEST, response=RecordedResponse(status=529, body=SAFE.json({"type": "error"}))),
    ),
)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write_whole(tmp_path / "new" / "a.json", dump(CASSETTE))
    assert load(tmp_path / "new" / "a.json") == CASSETTE
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"", "CASSETTE_DAMAGED", "is not JSON"),
        (b"{", "CASSETTE_DAMAGED", "is not JSON"),
        (b"\xff\xfe\x00", "CASSETTE_DAMAGED", "is not JSON"),
        (b"[" * 100_000, "CASSETTE_DAMAGED", "is not JSON"),
        (b"[]", "CASSETTE_DAMAGED", "the file"),
        (b'{"format": 1}', "CASSETTE_FORMAT", "has format 1, this Zelda reads format 2"),
        (
            b'{"format": 2, "zelda": "1", "cli": "x", "label": "a", "exchanges": [{}]}',
            "CASSETTE_DAMAGED",
            "exchanges.0",
        ),
        (dump(CASSETTE).replace("529", '"many"').encode(), "CASSETTE_DAMAGED", "exchanges.1.response.status"),
    ],
)
def test_a_damaged_recording_is_one_sentence(tmp_path: Path, content: bytes, code: str, words: str) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(content)
    with pytest.raises(ProxyError, match=words) as caught:
        load(file)
    assert caught.value.code == code
    assert str(file) in caught.value.message
    assert "record" in (caught.value.hint or "").lower()


def test_a_recording_that_is_missing_interrupted_or_a_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(ProxyError) as missing:
        load(tmp_path / "a.json")
    assert missing.value.code == "CASSETTE_MISSING"
    assert "zelda run --record" in (missing.value.hint or "")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ProxyError, match="cannot be read"):
        load(tmp_path / "folder.json")
    partial_file(tmp_path / "a.json").write_text(dump(CASSETTE))
    with pytest.raises(ProxyError) as caught:
        load(tmp_path / "a.json")
    assert "a.json.partial is left of a recording that was interrupted" in (caught.value.hint or "")


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_no_litter(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(file, "\ud83d")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
