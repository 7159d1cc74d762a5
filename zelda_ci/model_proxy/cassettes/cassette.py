"""A recorded run on disk: one readable JSON file, in which the pieces of a stream are joined."""

import itertools
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from zelda_ci.domain.base import Record
from zelda_ci.errors import ProxyError
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import write_whole
from zelda_ci.redact import SafeJson, SafeText

MAX_RECORDING_BYTES = 256 << 20


class RecordedRequest(Record):
    """A request, reduced to what two runs of the same session have in common; see `SessionTexts`."""

    thread: str
    """`main` or `sub-agent`."""
    turn: int
    """Number of assistant messages in the conversation."""
    model: SafeText
    last_message: SafeText
    context: dict[str, str]
    """Digests of the conversation's prompt, of tools and the like, by name."""

    @property
    def asked(self) -> str:
        """What a recorded request must have word for word in common with one that gets its answer."""
        return f"{self.place}, {self.model} is told:\n{self.last_message}"

    @property
    def place(self) -> str:
        """Where in the session it is asked, in words."""
        return f"{self.thread} after {self.turn} model responses"

    def differences(self, other: "RecordedRequest") -> list[str]:
        """Return in what two requests differ beside what they ask."""
        return [name for name, digest in other.context.items() if self.context.get(name) != digest]


class Exchange(Record):
    """One request with its answer: the events of a stream, a JSON object, or any other text."""

    request: RecordedRequest
    status: int = Field(ge=100, le=599)
    headers: dict[str, SafeText] = Field(default_factory=dict)
    content: tuple[SafeJson, ...] | SafeJson | SafeText
    cut: Literal[True] | None = None
    """Present where the answer broke off."""


class Cassette(Record):
    """One run; exchanges in the order in which their answers ended."""

    format: Literal[5] = 5
    """Raised also when requests are compared in another way: recordings of before would fit nothing."""
    zelda: str
    cli: SafeText
    label: str
    exchanges: tuple[Exchange, ...] = ()


def load(file: Path) -> Cassette:
    """Read a cassette; a `ProxyError` says why it cannot be used."""
    code = "CASSETTE_DAMAGED"
    try:
        return Cassette.model_validate_json(untrusted.read(file, MAX_RECORDING_BYTES, follow_link=True))
    except FileNotFoundError:
        code, why = "CASSETTE_MISSING", f"there is no recording {file}"
    except OSError as exc:
        why = f"the recording {file} cannot be read: {exc.strerror}"
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        why = f"the recording {file} is damaged: {where}: {first['msg']}"
    raise ProxyError(why, hint="Record the session with zelda run --record.", code=code)


def write(file: Path, cassette: Cassette) -> None:
    """Write a cassette whole: readers see the old file or the new one, never half of either."""
    text = json.dumps(cassette.model_dump(mode="json", by_alias=True, exclude_none=True), ensure_ascii=False, indent=1)
    # Halves of characters become question marks.
    write_whole(file, [f"{text}\n".encode(errors="replace")])


# Deltas that grow a text, and the field that holds the next piece.
PIECES = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def joined(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the deltas of each block, so that no path is split between two of them, and read a call's input."""
    result: list[dict[str, Any]] = []
    sent = (event for event in events if event.get("type") != "ping")
    for (_, kind), group in itertools.groupby(sent, key=_block_and_kind):
        if kind is None:
            result += group
            continue
        pieces = list(group)
        delta = pieces[0]["delta"] | {PIECES[kind]: "".join(str(it["delta"].get(PIECES[kind], "")) for it in pieces)}
        if kind == "input_json_delta":
            # The model's mistake is kept as it is.
            with suppress(ValueError):
                delta = {"type": kind, "input": json.loads(delta["partial_json"])}
        result.append(pieces[0] | {"delta": delta})
    return result


def _block_and_kind(event: dict[str, Any]) -> tuple[object, str | None]:
    match event:
        case {"type": "content_block_delta", "index": index, "delta": {"type": str(kind)}} if kind in PIECES:
            return index, kind
        case _:
            return None, None


def played(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield joined events as the API sends them."""
    for event in events:
        match event:
            case {"delta": {"type": "input_json_delta" as kind, "input": arguments}}:
                yield {**event, "delta": {"type": kind, "partial_json": json.dumps(arguments)}}
            case _:
                yield event
