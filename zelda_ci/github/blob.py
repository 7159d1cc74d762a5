"""A file on its way into GitHub's storage, block by block."""

import base64
import hashlib
import uuid
from dataclasses import dataclass
from typing import IO
from urllib.parse import quote

from zelda_ci.github.http import Http

BLOCK_BYTES = 8 * 1024 * 1024
BLOCK_SECONDS = 300.0
STORAGE_VERSION = "2021-12-02"
ID_LENGTH = 48
"""Of a block's name before base64; all names of a blob must be equally long."""


@dataclass(frozen=True)
class Stored:
    """What arrived."""

    digest: str
    """`sha256:` and 64 hexadecimal digits."""
    size: int


def store(http: Http, url: str, file: IO[bytes]) -> Stored:
    """Send a file to a signed address; the signature is all the authorization there is.

    Raises:
        GitHubError: As `Http.send`.
    """
    base, digest, size = str(uuid.uuid4()), hashlib.sha256(), 0
    names: list[str] = []
    while (block := file.read(BLOCK_BYTES)) or not names:
        name = base64.b64encode((base + str(len(names)).zfill(ID_LENGTH - len(base))).encode()).decode()
        _put(http, f"{url}&comp=block&blockid={quote(name, safe='')}", block, "application/octet-stream")
        names.append(name)
        digest.update(block)
        size += len(block)
    _put(http, f"{url}&comp=blocklist", _block_list(names), "application/xml")
    return Stored(f"sha256:{digest.hexdigest()}", size)


def _put(http: Http, url: str, data: bytes, kind: str) -> None:
    headers = {
        "Content-Type": kind,
        "x-ms-version": STORAGE_VERSION,
        **({"x-ms-blob-content-type": "application/zip"} if url.endswith("=blocklist") else {}),
    }
    http.send("PUT", url, headers=headers, data=data, timeout=BLOCK_SECONDS, redirects=False)


def _block_list(names: list[str]) -> bytes:
    blocks = "".join(f"<Latest>{name}</Latest>" for name in names)
    return f'<?xml version="1.0" encoding="utf-8"?><BlockList>{blocks}</BlockList>'.encode()
