"""Results, transcripts and journal lines as bytes. Pure: no disk."""

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from zelda_ci.domain.base import Record
from zelda_ci.domain.comparison import Calibration
from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.run import SCHEMA_VERSION, BatchResult, RunResult
from zelda_ci.domain.session import SessionRecord, SessionTranscript
from zelda_ci.errors import StorageError
from zelda_ci.redact import SafeText

_RECORD: Final = TypeAdapter[SessionRecord](SessionRecord)
_Stored = TypeVar("_Stored", bound=Record)


class UnreadableError(StorageError):
    """A file is not what its name says: `RESULT_DAMAGED`, `RESULT_FOREIGN` or `RESULT_NEWER`."""


class Provisional(Record):
    """What will be true of a run if nothing more is heard of it."""

    schema_version: Literal[1] = SCHEMA_VERSION
    result: RunResult
    prompt: SafeText


def encode_result(result: RunResult) -> bytes:
    """A file that people read, too."""
    return orjson.dumps(_tree(result), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def decode_result(data: bytes, name: str) -> RunResult:
    """The result in a file; unknown keys are ignored.

    Args:
        data: The whole file.
        name: What a message calls the file.

    Raises:
        UnreadableError: The file is damaged, foreign or of a newer Zelda.
    """
    return _decoded(RunResult, data, name)


def decode_batch(data: bytes, name: str) -> BatchResult:
    """The results in what `zelda run --json` printed; arguments and errors as for `decode_result`."""
    return _decoded(BatchResult, data, name)


def encode_calibration(calibration: Calibration) -> bytes:
    """A file that people read, too."""
    tree = _tree(calibration)
    return orjson.dumps(tree, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE)


def decode_calibration(data: bytes, name: str) -> Calibration:
    """The calibration in a file; arguments and errors as for `decode_result`."""
    return _decoded(Calibration, data, name)


def encode_transcript(transcript: SessionTranscript) -> Iterator[bytes]:
    """One entry per line, so that no more than one is held in memory twice."""
    yield orjson.dumps(_tree(transcript, without={"entries"}))[:-1]
    separator = b',"entries":[\n'
    for entry in transcript.entries:
        yield separator + orjson.dumps(_tree(entry))
        separator = b",\n"
    yield b"\n]}\n" if transcript.entries else b"}\n"


def decode_transcript(data: bytes, name: str) -> SessionTranscript:
    """The transcript in a file; arguments and errors as for `decode_result`."""
    return _decoded(SessionTranscript, data, name)


def encode_manifest(manifest: ToolsManifest) -> bytes:
    """What a project offers, for whoever judges the run again."""
    return orjson.dumps(_tree(manifest), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def decode_manifest(data: bytes, name: str) -> ToolsManifest:
    """The manifest in a file; arguments and errors as for `decode_result`."""
    return _decoded(ToolsManifest, data, name)


def encode_provisional(provisional: Provisional) -> bytes:
    """The provisional result, as readable as the final one."""
    return orjson.dumps(_tree(provisional), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def decode_provisional(data: bytes, name: str) -> Provisional:
    """The provisional result in a file; arguments and errors as for `decode_result`."""
    return _decoded(Provisional, data, name)


def encode_record(record: SessionRecord) -> bytes:
    """One line of the journal, its end included."""
    return orjson.dumps(_tree(record), option=orjson.OPT_APPEND_NEWLINE)


def decode_record(line: bytes) -> SessionRecord | None:
    """The record in a line of the journal; nothing where the line is torn or was never ours."""
    try:
        return _RECORD.validate_json(line)
    except ValidationError:
        return None


def _tree(record: Record, without: set[str] | None = None) -> dict[str, Any]:
    return record.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=without)


def _decoded(model: type[_Stored], data: bytes, name: str) -> _Stored:
    try:
        return model.model_validate_json(data)
    except ValidationError as problem:
        return _second_try(model, data, name, problem)


def _second_try(model: type[_Stored], data: bytes, name: str, problem: ValidationError) -> _Stored:
    tree = _parsed(data, name)
    # Settings refuse unknown keys where users write them; in a result they tell of another version, and are ignored.
    for place in [error["loc"] for error in problem.errors() if error["type"] == "extra_forbidden"]:
        _drop(tree, place)
    try:
        return model.model_validate(tree)
    except ValidationError as still:
        # Keys of a foreign file are foreign text: spelled out, none of it acts on a terminal.
        key = ascii(".".join(map(str, still.errors()[0]["loc"])))[1:-1]
        raise _foreign(f"{name} is not a file that Zelda wrote: {key} is missing or has an unexpected value.") from None


def _parsed(data: bytes, name: str) -> dict[str, Any]:
    try:
        tree = orjson.loads(data)
    except orjson.JSONDecodeError as problem:
        hint = "Delete its folder; the run has to be repeated."
        raise UnreadableError(f"{name} is damaged: {problem}.", hint=hint, code="RESULT_DAMAGED") from None
    version = tree.get("schemaVersion") if isinstance(tree, dict) else None
    if not isinstance(version, int):
        raise _foreign(f"{name} is not a file that Zelda wrote.")
    if version > SCHEMA_VERSION:
        message = f"{name} was written by a newer Zelda (schema {version}, this one reads up to {SCHEMA_VERSION})."
        raise UnreadableError(message, hint="Update Zelda, or repeat the run.", code="RESULT_NEWER")
    return dict(tree)


def _foreign(message: str) -> UnreadableError:
    return UnreadableError(message, hint="Move it away, or make it anew with a run.", code="RESULT_FOREIGN")


def _drop(tree: Any, place: tuple[int | str, ...]) -> None:
    for step in place[:-1]:
        tree = tree[step]
    del tree[place[-1]]
