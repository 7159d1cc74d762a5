"""Stored records as bytes, and back. Pure: no disk."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Final, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from zelda_ci.domain.base import SCHEMA_VERSION, Record
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.run import Pool
from zelda_ci.domain.session import SessionRecord, SessionTranscript
from zelda_ci.errors import StorageError

_RECORD: Final = TypeAdapter[SessionRecord](SessionRecord)
Stored = TypeVar("Stored", bound=Record)

MAX_PLACE_LENGTH = 200


class UnreadableError(StorageError):
    """A file is not what its name says: `RESULT_DAMAGED`, `RESULT_FOREIGN` or `RESULT_NEWER`."""


def encode(record: Record, *, indent: int | None = None) -> bytes:
    """A record in a line of JSON, or indented for people who read it, too; keys without a value are left out."""
    return f"{_json(record, indent=indent)}\n".encode()


def decode(model: type[Stored], data: bytes, name: str) -> Stored:
    """The record in a whole file, by its name in messages; raises `UnreadableError`. Unknown keys are ignored."""
    try:
        return model.model_validate_json(data)
    except ValidationError as problem:
        # Keys of a foreign file are foreign text: spelled out, none of it acts on a terminal.
        key = ascii(".".join(map(str, problem.errors()[0]["loc"])))[1:-1][:MAX_PLACE_LENGTH]
    try:
        tree = orjson.loads(data)
    except orjson.JSONDecodeError as broken:
        hint = "Delete its folder; the run has to be repeated."
        raise UnreadableError(f"{name} is damaged: {broken}.", hint=hint, code="RESULT_DAMAGED") from None
    version = tree.get("schemaVersion") if isinstance(tree, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        message = f"{name} was written by a newer Zelda (schema {version}, this one reads up to {SCHEMA_VERSION})."
        raise UnreadableError(message, hint="Update Zelda, or repeat the run.", code="RESULT_NEWER")
    why = f": {key} is missing or has an unexpected value" if isinstance(version, int) else ""
    hint = "Move it away, or make it anew with a run."
    raise UnreadableError(f"{name} is not a file that Zelda wrote{why}.", hint=hint, code="RESULT_FOREIGN")


def encode_within(record: Pool | NightlyHistory, max_bytes: int) -> bytes:
    """A pool or history that fits: where it is too large, its oldest trials or nights are left out."""
    name, age = ("trials", ("finished_at", "run_id")) if isinstance(record, Pool) else ("nights", ("at", "batch_id"))
    kept = sorted(getattr(record, name), key=attrgetter(*age))
    while len(data := encode(record.replace(**{name: tuple(kept)}))) > max_bytes and kept:
        del kept[: max(1, len(kept) // 4)]
    return data


def encode_transcript(transcript: SessionTranscript) -> Iterator[bytes]:
    """One entry per line, so that no more than one is held in memory twice."""
    yield _json(transcript, without={"entries"})[:-1].encode()
    separator = ',"entries":[\n'
    for entry in transcript.entries:
        yield f"{separator}{_json(entry)}".encode()
        separator = ",\n"
    yield b"\n]}\n" if transcript.entries else b"}\n"


def decode_record(line: bytes) -> SessionRecord | None:
    """The record in a line of the journal; nothing where the line is torn or was never ours."""
    try:
        return _RECORD.validate_json(line)
    except ValidationError:
        return None


def _json(record: Record, *, indent: int | None = None, without: set[str] | None = None) -> str:
    return record.model_dump_json(by_alias=True, exclude_none=True, exclude=without, indent=indent)
