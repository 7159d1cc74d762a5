from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_replies import ApiRequest, Message, Tokens, events, text, tool_calls
from zelda_ci.errors import ProxyError
from zelda_ci.model_proxy.cassettes import (
    MAX_RECORDING_BYTES,
    Cassette,
    Exchange,
    RecordedRequest,
    joined,
    load,
    played,
    write,
)
from zelda_ci.redact import Redactor

SAFE = Redactor()
REQUEST = RecordedRequest(
    thread="main",
    turn=0,
    model=SAFE("claude-sonnet-5-5"),
    context={"tools": "1"},
    last_message=SAFE("Add a route.\nPlease: ä"),
)
ERROR = SAFE.json({"type": "error"})
EVENTS = (
    SAFE.json({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x" * 300}}),
    SAFE.json({"type": "message_stop"}),
)
CASSETTE = Cassette(
    zelda="1",
    cli=SAFE("claude-cli/2"),
    label="a",
    exchanges=(
        Exchange(request=REQUEST, status=200, content=EVENTS, cut=True),
        Exchange(request=REQUEST, status=529, content=ERROR),
    ),
)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write(tmp_path / "new" / "a.json", CASSETTE)
    assert load(tmp_path / "new" / "a.json") == CASSETTE
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file: Invalid JSON"),
        (b"\xff\xfe\x00", "the file: Invalid JSON"),
        (b"[" * 100_000, "the file: Invalid JSON"),
        (b"[]", "the file"),
        (b'{"format": 1}', "format: Input should be 5"),
        (b'{"format": 5, "zelda": "1", "cli": "x", "label": "a", "exchanges": [{}]}', r"exchanges\.0"),
        (b'{"format": 5, "zelda": "1", "cli": "x", "label": "a", "exchanges": 5}', r"exchanges"),
    ],
)
def test_a_damaged_recording_is_one_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(content)
    with pytest.raises(ProxyError, match=f"is damaged: {words}") as caught:
        load(file)
    assert caught.value.code == "CASSETTE_DAMAGED"
    assert str(file) in caught.value.message
    assert "record" in (caught.value.hint or "").lower()


def test_a_recording_that_is_missing_a_folder_or_too_large_says_so(tmp_path: Path) -> None:
    with pytest.raises(ProxyError) as missing:
        load(tmp_path / "a.json")
    assert missing.value.code == "CASSETTE_MISSING"
    assert "zelda run --record" in (missing.value.hint or "")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ProxyError, match="cannot be read"):
        load(tmp_path / "folder.json")
    with (tmp_path / "large.json").open("wb") as sparse:
        sparse.truncate(MAX_RECORDING_BYTES + 1)
    with pytest.raises(ProxyError, match=r"large\.json cannot be read: larger than"):
        load(tmp_path / "large.json")


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_no_litter(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("old")
    with pytest.raises(AttributeError):
        write(file, None)  # type: ignore[arg-type]
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


ASKED = ApiRequest("/v1/messages", {}, {"model": "claude-sonnet-5-5"}, b"", None, 0)
REPLY = tool_calls(
    [("Write", {"file_path": "/ws/a", "content": 'x\n"y"\\' * 20}), ("Bash", {"command": "ls"})],
    text="I write.",
    thinking="A long thought about the matter.",
    tokens=Tokens(cache_read=7),
)


def streamed(reply: Message) -> list[dict[str, Any]]:
    return list(events(reply.as_json(ASKED), reply.tokens))


@pytest.mark.parametrize("reply", [REPLY, text("Done."), text("")])
def test_a_joined_stream_is_the_same_message(reply: Message) -> None:
    once = list(joined(streamed(reply)))
    assert list(joined(played(once))) == once


def test_each_block_has_one_delta_and_tool_input_is_json() -> None:
    sent = list(joined(streamed(REPLY)))
    deltas = [event["delta"] for event in sent if event["type"] == "content_block_delta"]
    assert [delta["type"] for delta in deltas] == [
        "thinking_delta",
        "signature_delta",
        "text_delta",
        "input_json_delta",
        "input_json_delta",
    ]
    assert deltas[3]["input"]["file_path"] == "/ws/a"
    assert "ping" not in {event["type"] for event in sent}


def test_input_that_is_no_json_stays_as_the_model_wrote_it() -> None:
    def delta(piece: str) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}

    assert list(joined([delta('{"a": '), delta("oops")])) == [delta('{"a": oops')]
    assert list(played([delta('{"a": oops')])) == [delta('{"a": oops')]
