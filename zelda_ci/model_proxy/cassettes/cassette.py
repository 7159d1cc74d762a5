"""A recorded run on disk: one readable JSON file, in which streams are stored joined."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from zelda_ci.domain.base import Record
from zelda_ci.errors import ProxyError
from zelda_ci.files import ownership, untrusted
from zelda_ci.files.atomic import replacing
from zelda_ci.model_proxy.limits import MAX_RECORDING_BYTES
from zelda_ci.redact import SafeJson, SafeText

# Raised also when requests are compared in another way: digests of before would fit nothing.
FORMAT: Literal[2] = 2


class RecordedRequest(Record):
    """What the answer was an answer to; see `RequestFingerprint`."""

    thread: str
    """`main`, or `agent-1` and so on by first appearance."""
    turn: int
    model: SafeText
    digest: str
    parts: dict[str, str]
    tools: tuple[SafeText, ...] = ()
    said: SafeText


class RecordedResponse(Record):
    """One answer: events of a stream, a JSON body, or any other text."""

    status: int = Field(ge=100, le=599)
    headers: dict[str, SafeText] = Field(default_factory=dict)
    events: tuple[SafeJson, ...] | None = Field(None, min_length=1)
    body: SafeJson | None = None
    text: SafeText | None = None
    cut: Literal[True] | None = None
    """Present where the answer broke off."""

    @model_validator(mode="after")
    def _has_one_content(self) -> Self:
        if sum(content is not None for content in (self.events, self.body, self.text)) != 1:
            raise ValueError("an answer has either events or a body or a text")
        return self


class Exchange(Record):
    """One request with its answer."""

    request: RecordedRequest
    response: RecordedResponse


class Cassette(Record):
    """One run; exchanges in the order in which their answers ended."""

    format: Literal[2] = FORMAT
    zelda: str
    cli: SafeText
    label: str
    exchanges: tuple[Exchange, ...] = ()


def cassette_file(folder: Path, label: str) -> Path:
    """The file of the run with this label, which is fit for a file name."""
    return folder / f"{label}.json"


def partial_file(file: Path) -> Path:
    """Where a recording grows until its run is over."""
    return file.with_name(f"{file.name}.partial")


def load(file: Path) -> Cassette:
    """Read a cassette.

    Raises:
        ProxyError: There is none, or it cannot be used.
    """
    again = "Record the session again with zelda run --record."
    try:
        data = untrusted.read(file, MAX_RECORDING_BYTES, follow_link=True)
    except FileNotFoundError:
        raise ProxyError(f"there is no recording {file}", hint=_missing_hint(file), code="CASSETTE_MISSING") from None
    except untrusted.TooLargeError as exc:
        of = f"the recording {file} is larger than {MAX_RECORDING_BYTES >> 20} MiB, the most that a recording may have"
        raise ProxyError(of, hint=again, code="CASSETTE_TOO_LARGE") from exc
    except OSError as exc:
        raise ProxyError(f"the recording {file} cannot be read: {exc.strerror}", code="CASSETTE_UNREADABLE") from exc
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise ProxyError(f"the recording {file} is not JSON: {exc}", hint=again, code="CASSETTE_DAMAGED") from exc
    if isinstance(value, dict) and value.get("format", FORMAT) != FORMAT:
        of = f"the recording {file} has format {value['format']!r}, this Zelda reads format {FORMAT}"
        raise ProxyError(of, hint=again, code="CASSETTE_FORMAT")
    try:
        return Cassette.model_validate(value)
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ProxyError(
            f"the recording {file} is damaged: {where}: {first['msg']}", hint=again, code="CASSETTE_DAMAGED"
        ) from exc


def _missing_hint(file: Path) -> str:
    if partial_file(file).exists():
        return f"{partial_file(file).name} is left of a recording that was interrupted; record it again."
    return "Record the session with zelda run --record first."


def write(file: Path, cassette: Cassette) -> None:
    """Write a cassette whole: readers see the old file or the new one, never half of either."""
    ownership.make_folder(file.parent)
    with replacing(file) as new:
        new.write(as_json(cassette, indent=1))


def as_json(record: Record, indent: int | None = None) -> bytes:
    """A record as JSON that ends with a line break; halves of characters stay as they are."""
    value = record.model_dump(mode="json", by_alias=True, exclude_none=True)
    return f"{json.dumps(value, ensure_ascii=False, indent=indent)}\n".encode(errors="surrogatepass")


# Deltas that grow a text, and the field that holds the next piece.
PIECES = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def joined(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the deltas of each block, so that no path is split between two of them."""
    events_joined: list[dict[str, Any]] = []
    for event in events:
        if event.get("type") == "ping":
            continue
        if events_joined and (longer := _continued(events_joined[-1], event)):
            events_joined[-1] = longer
        else:
            events_joined.append(event)
    return [_with_input(event) for event in events_joined]


def played(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The events as the API sends them."""
    for event in events:
        match event:
            case {"delta": {"type": "input_json_delta", "input": arguments, **rest}}:
                yield {**event, "delta": {"type": "input_json_delta", **rest, "partial_json": json.dumps(arguments)}}
            case _:
                yield event


def joined_message(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The message that `stream: false` would have given."""
    whole: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        match event:
            case {"type": "message_start", "message": dict(start)}:
                whole = dict(start)
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                blocks[index] = dict(block)
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)} if index in blocks:
                _grow(blocks[index], delta)
            case {"type": "message_delta", "delta": dict(delta)}:
                whole |= delta
                whole["usage"] = {**whole.get("usage", {}), **event.get("usage", {})}
            case _:
                pass
    return {**whole, "content": [blocks[index] for index in sorted(blocks)]}


def _continued(event: dict[str, Any], following: dict[str, Any]) -> dict[str, Any] | None:
    if event.get("type") != "content_block_delta" or event.get("index") != following.get("index"):
        return None
    old, new = event.get("delta"), following.get("delta")
    if not (isinstance(old, dict) and isinstance(new, dict) and old.get("type") == new.get("type")):
        return None
    field = PIECES.get(str(old.get("type")))
    if field is None:
        return None
    return {**event, "delta": {**old, **new, field: str(old.get(field, "")) + str(new.get(field, ""))}}


def _with_input(event: dict[str, Any]) -> dict[str, Any]:
    match event:
        case {"delta": {"type": "input_json_delta", "partial_json": str(text), **rest}}:
            try:
                arguments = json.loads(text)
            except ValueError:
                return event  # the model's mistake, kept as it is
            return {**event, "delta": {"type": "input_json_delta", **rest, "input": arguments}}
        case _:
            return event


def _grow(block: dict[str, Any], delta: dict[str, Any]) -> None:
    match delta:
        case {"type": "input_json_delta", "input": arguments}:
            block["input"] = arguments
        case {"type": "signature_delta", "signature": signature}:
            block["signature"] = signature
        case {"type": "citations_delta", "citation": citation}:
            block["citations"] = [*(block.get("citations") or []), citation]
        case {"type": str(kind)} if kind in PIECES:
            field = PIECES[kind]
            block[field] = str(block.get(field, "")) + str(delta.get(field, ""))
