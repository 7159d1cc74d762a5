"""Storage that looks like Azure's: signed addresses, blocks, and no patience with an Authorization header."""

import re
import secrets
import time
from pathlib import Path
from urllib.parse import quote

from tests.support.github_server.replies import Reply
from tests.support.github_server.seen import Received
from tests.support.github_server.world import Artifact

PREFIX = "/storage/"
MOST_BLOCK_BYTES = 100 * 1024 * 1024


class Storage:
    """Blobs as files in a folder; `signed_seconds` is how long a signed address lives."""

    def __init__(self, origin: str, folder: Path) -> None:
        self.signed_seconds = 60.0
        self.block_sizes: list[int] = []
        self.signatures: set[str] = set()
        self._origin = origin
        self._folder = folder
        self._artifacts: dict[str, Artifact] = {}

    def new_blob(self) -> str:
        name = secrets.token_hex(8)
        (self._folder / name).mkdir()
        return name

    def address(self, name: str, permission: str) -> str:
        """Signed: whoever has it needs nothing else."""
        # Real signatures are base64, so that they look different in an address.
        signature = f"{secrets.token_hex(8)}+/{permission}="
        self.signatures.add(signature)
        ends = int(time.time() + self.signed_seconds)
        return f"{self._origin}{PREFIX}{name}?se={ends}&sig={quote(signature, safe='')}&sp={permission}&sv=2024-01-01"

    def address_of(self, artifact: Artifact) -> str:
        name = f"artifact-{artifact.id}"
        self._artifacts[name] = artifact
        return self.address(name, "r")

    def whole(self, name: str) -> Path | None:
        """The file of a blob whose blocks were put in order."""
        path = self._folder / name / "whole"
        return path if path.exists() else None

    def answer(self, request: Received) -> Reply:
        name, query = request.path.removeprefix(PREFIX), request.query
        if "authorization" in request.headers:
            return _error(400, "InvalidAuthenticationInfo")
        if query.get("sig") not in self.signatures or float(query.get("se", 0)) < time.time():
            return _error(403, "AuthenticationFailed")
        if request.method == "GET" and name in self._artifacts:
            return Reply(200, self._artifacts[name].content, {"content-type": "application/zip"})
        if request.method != "PUT" or not (self._folder / name).is_dir():
            return _error(404, "BlobNotFound")
        return self._put(self._folder / name, request)

    def _put(self, folder: Path, request: Received) -> Reply:
        query, body = request.query, request.body
        match query.get("comp"):
            case "block" if len(body) <= MOST_BLOCK_BYTES:
                self.block_sizes.append(len(body))
                (folder / quote(query["blockid"], safe="")).write_bytes(body)
            case "blocklist":
                return self._put_together(folder, body.decode())
            case None if request.headers.get("x-ms-blob-type") == "BlockBlob":
                (folder / "whole").write_bytes(body)
            case _:
                return _error(400, "InvalidQueryParameterValue")
        return Reply(201, b"")

    def _put_together(self, folder: Path, listed: str) -> Reply:
        names = re.findall(r"<(?:Latest|Uncommitted)>([^<]+)</", listed)
        blocks = [folder / quote(name, safe="") for name in names]
        if len({len(name) for name in names}) > 1 or not all(block.exists() for block in blocks):
            return _error(400, "InvalidBlockList")
        with (folder / "whole").open("wb") as whole:
            for block in blocks:
                whole.write(block.read_bytes())
                block.unlink()
        return Reply(201, b"")


def _error(status: int, code: str) -> Reply:
    body = f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code></Error>'
    return Reply(status, body.encode(), {"content-type": "application/xml", "x-ms-error-code": code})
