"""Server-sent events: read from a byte stream as it comes, and written."""

import re
from collections.abc import Iterator
from typing import Any

from zelda_ci.model_proxy import json_text

MOST_BYTES = 16 << 20
"""Of one event; a stream beyond it is not an event stream."""

_END = re.compile(rb"\r?\n\r?\n")


class EventReader:
    """Cuts a byte stream into the data of its events, however the network has cut it."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self.malformed = False
        """True once bytes were seen that are no event with JSON data."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of every event that is complete now."""
        self._buffer += chunk
        start = 0
        while end := _END.search(self._buffer, max(start, self._searched)):
            block = bytes(self._buffer[start : end.start()])
            start = self._searched = end.end()
            if data := self._data(block):
                yield data
        del self._buffer[:start]
        # An end can be split between chunks.
        self._searched = max(0, len(self._buffer) - 3)
        if len(self._buffer) > MOST_BYTES:
            self._buffer.clear()
            self._searched = 0
            self.malformed = True

    @property
    def rest(self) -> bytes:
        """Bytes of an event that has not ended."""
        return bytes(self._buffer)

    def _data(self, block: bytes) -> bytes:
        lines = block.splitlines()
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
        if not data and not all(line.startswith((b":", b"event:", b"id:", b"retry:")) for line in lines if line):
            self.malformed = True
        return data


def written(event: dict[str, Any]) -> bytes:
    """An event as the API writes it."""
    return b"event: %b\ndata: %b\n\n" % (str(event.get("type", "message")).encode(), json_text.write(event))
