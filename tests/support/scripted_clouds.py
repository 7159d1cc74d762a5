"""The forms of Amazon Bedrock and Vertex AI around a scripted Messages API: their paths in, their streams out."""

import base64
import hashlib
import hmac
import json
import re
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from tests.support.scripted_replies import Wire

BEDROCK = re.compile(r"/model/([^/]+)/(invoke|invoke-with-response-stream)")
VERTEX = re.compile(r"/v1/projects/p-1/locations/us-east5/publishers/anthropic/models/([^/:]+):(raw|streamRaw)Predict")


def as_messages(path: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """The body that the Messages API would have got; None where the path is neither cloud's."""
    if found := BEDROCK.fullmatch(path):
        assert not body.keys() & {"model", "stream"}, "Bedrock refuses what it has in its path"
        assert body["anthropic_version"] == "bedrock-2023-05-31" or body["anthropic_version"] >= "2026"
        return {**body, "model": unquote(found[1]), "stream": found[2] != "invoke"}
    if found := VERTEX.fullmatch(path):
        assert "model" not in body, "Vertex AI refuses what it has in its path"
        assert body["anthropic_version"] == "vertex-2023-10-16" or body["anthropic_version"] >= "2026"
        assert bool(body.get("stream")) == (found[2] == "streamRaw")
        return {**body, "model": unquote(found[1])}
    return None


@dataclass
class BedrockWire:
    """Writes what are server-sent events as messages of Amazon's event stream, torn in the middle."""

    inner: Wire
    _framed: bool = False

    def start(self, status: int, headers: Mapping[str, str], *, chunked: bool) -> None:
        self._framed = "event-stream" in headers.get("content-type", "")
        kind = {"content-type": "application/vnd.amazon.eventstream"} if self._framed else {}
        self.inner.start(status, {**headers, **kind}, chunked=chunked)

    def write(self, data: bytes) -> None:
        if not self._framed:
            self.inner.write(data)
            return
        event = next(line for line in data.splitlines() if line.startswith(b"data: "))[6:]
        message = frame({":message-type": "event", ":event-type": "chunk"}, chunk(event))
        self.inner.write(message[:9])
        self.inner.write(message[9:])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def chunk(event: bytes) -> bytes:
    return json.dumps({"bytes": base64.b64encode(event).decode(), "p": "abcdef"}).encode()


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """A message by the format's description: two lengths, their checksum, headers, payload, checksum of all."""
    coded = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in headers.items()
    )
    lengths = struct.pack(">II", 16 + len(coded) + len(payload), len(coded))
    message = lengths + struct.pack(">I", zlib.crc32(lengths)) + coded + payload
    return message + struct.pack(">I", zlib.crc32(message))


def signature(path: str, headers: Mapping[str, str], body: bytes, secret: str) -> str:
    """AWS's Signature Version 4 of a request, by its description, over the headers that its `authorization` names."""
    found = re.search(r"Credential=[^/]+/(?P<scope>[^,]+), SignedHeaders=(?P<names>[^,]+)", headers["authorization"])
    assert found
    scope, names = found["scope"], found["names"]
    signed = "".join(f"{name}:{headers[name]}\n" for name in names.split(";"))
    request = "\n".join(("POST", quote(path), "", signed, names, hashlib.sha256(body).hexdigest()))
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, f"AWS4-HMAC-SHA256\n{headers['x-amz-date']}\n{scope}\n{digest}".encode(), "sha256").hex()
