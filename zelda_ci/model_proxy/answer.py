"""An answer of the API as events: those of a stream as they arrive, those of a message that came whole at its end."""

from collections.abc import Iterator
from typing import Any

from zelda_ci.model_proxy import wire


def dicts(value: object) -> list[dict[str, Any]]:
    """Return the objects of a JSON list; none of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


class AnswerEvents:
    """Reads events from the bytes of one answer, whatever its content type says: gateways have labels of their own."""

    def __init__(self) -> None:
        self._stream: wire.EventReader | None = None
        self._body = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield the events that are complete now."""
        if self._stream is None and not self._body:
            # The first bytes tell a message from a stream.
            data = data.lstrip()
            if data and not data.startswith(b"{"):
                self._stream = wire.EventReader()
        if self._stream is None:
            self._body += data
            return
        for event in self._stream.feed(data):
            yield wire.read_object(event) or {}

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield the events that a message would have been streamed in; none where the answer was no whole message."""
        message = wire.read_object(bytes(self._body)) or {}
        if not message:
            return
        yield {"type": "message_start", "message": message}
        for index, block in enumerate(dicts(message.get("content"))):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": {}, "usage": message.get("usage")}
        yield {"type": "message_stop"}
