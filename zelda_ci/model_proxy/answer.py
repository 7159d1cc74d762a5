"""What messages of the API hold, and answers as events: of a stream as they arrive, of a message at its end."""

import re
from collections.abc import Iterator
from typing import Any

from zelda_ci.model_proxy import wire

# A CR at the end of what has come may be half of a CR LF.
LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def dicts(value: object) -> list[dict[str, Any]]:
    """Return the objects of a JSON list; none of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def blocks(content: object) -> list[dict[str, Any]]:
    """Return the blocks of a message's content, also of one that is a string."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else dicts(content)


def texts(content: object) -> list[str]:
    """Return the texts of a message's content."""
    return [text for block in blocks(content) if isinstance(text := block.get("text"), str)]


class AnswerEvents:
    """Reads events from the bytes of one answer, whatever its content type says: gateways have labels of their own."""

    def __init__(self) -> None:
        self._is_stream: bool | None = None
        self._rest = bytearray()
        """What is not read yet: a message that comes whole, or the beginning of a line."""
        self._data: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield the events that are complete now, however the network cuts them; an empty one for what is no JSON."""
        self._rest += data
        if self._is_stream is None and (start := self._rest.lstrip()):
            # The first bytes tell a message from a stream.
            self._is_stream = not start.startswith(b"{")
        if not self._is_stream or not (b"\n" in data or b"\r" in data):
            return
        *lines, rest = LINE_END.split(self._rest)
        self._rest = bytearray(rest)
        for line in (bytes(each).removeprefix(BYTE_ORDER_MARK).strip() for each in lines):
            if line.startswith(b"data:"):
                self._data.append(line[5:])
            elif not line and self._data:
                event, self._data = wire.read_object(b"\n".join(self._data)), []
                yield event or {}

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield the events that a message would have been streamed in; none where the answer was no whole message."""
        if self._is_stream:
            yield from self.feed(b"\n")
            return
        message = wire.read_object(bytes(self._rest)) or {}
        if not message:
            return
        yield {"type": "message_start", "message": message}
        for index, block in enumerate(dicts(message.get("content"))):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": {}, "usage": message.get("usage")}
        yield {"type": "message_stop"}
