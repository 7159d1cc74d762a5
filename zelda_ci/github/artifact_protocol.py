"""The wire of GitHub's artifact service: Twirp calls (JSON over POST), and uploads to blob storage."""

import base64
import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from zelda_ci.errors import ArtifactError, GitHubError
from zelda_ci.github.schemas import HttpRequest
from zelda_ci.redact import Secret

if TYPE_CHECKING:
    # What is slow in it is paid for when something is sent.
    from zelda_ci.github.http import Http

SERVICE = "github.actions.results.api.v1.ArtifactService"
SCOPE = "Actions.Results"
CALL_SECONDS = 60.0


@dataclass(frozen=True)
class Backend:
    """What the service calls this run of the workflow and this job."""

    run: str
    job: str

    @property
    def fields(self) -> dict[str, str]:
        """As every request has them."""
        return {"workflow_run_backend_id": self.run, "workflow_job_run_backend_id": self.job}


class Twirp:
    """Calls in the name of one job.

    Args:
        http: Sends.
        origin: Scheme and host of `ACTIONS_RESULTS_URL`.
        token: `ACTIONS_RUNTIME_TOKEN`.
        backend: Who we are, according to the token.
    """

    def __init__(self, http: "Http", *, origin: str, token: Secret, backend: Backend) -> None:
        self.backend = backend
        self._http = http
        self._origin = origin
        self._token = token

    def call(self, method: str, request: Mapping[str, Any], *, backend: Backend | None = None) -> "TwirpReply":
        """The reply to a method; repeated like GET, because the service itself refuses to do a thing twice."""
        answer = self._http.send(
            HttpRequest(
                "POST",
                f"{self._origin}/twirp/{SERVICE}/{method}",
                {"Authorization": f"Bearer {self._token.reveal()}"},
                json={**(backend or self.backend).fields, **request},
                timeout=CALL_SECONDS,
                repeatable=True,
                redirects=False,
            )
        )
        reply = answer.json()
        if not isinstance(reply, dict):
            raise GitHubError(f"The answer to {answer.asked} is no object.", code="GITHUB_REFUSED")
        return TwirpReply(reply)

    def demand(self, method: str, request: Mapping[str, Any]) -> "TwirpReply":
        """A reply that says `ok`: refusals come with HTTP 200, too.

        Raises:
            ArtifactError: `ARTIFACT_REFUSED`.
        """
        reply = self.call(method, request)
        if reply.field("ok") is not True:
            raise ArtifactError(f"GitHub's artifact service refused {method}.", code="ARTIFACT_REFUSED")
        return reply


@dataclass(frozen=True)
class TwirpReply:
    """An object of the service: GitHub writes snake_case, other servers of the protocol camelCase."""

    fields: Mapping[str, Any]

    def field(self, name: str) -> Any:
        """The value of a field, whatever it is; None where there is none."""
        head, *tail = name.split("_")
        return self.fields.get(name, self.fields.get(head + "".join(word.capitalize() for word in tail)))

    def text(self, name: str) -> str:
        """Empty where there is none."""
        value = self.field(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int | None:
        """64-bit numbers travel as text."""
        value = str(self.field(name))
        return int(value) if value.isascii() and value.isdecimal() and len(value) < 20 else None

    def items(self, name: str) -> list["TwirpReply"]:
        """The objects of a list."""
        items = self.field(name)
        return [TwirpReply(item) for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def backend_of(token: str) -> Backend:
    """Who we are, according to the runtime token; its signature is the service's business.

    Raises:
        ArtifactError: `ARTIFACTS_UNAVAILABLE` where the token does not say.
    """
    for scope in str(_claims(token).get("scp", "")).split(" "):
        name, *ids = scope.split(":")
        if name == SCOPE and len(ids) == 2 and all(ids):
            return Backend(*ids)
    message = "The token for artifacts (ACTIONS_RUNTIME_TOKEN) is not one of GitHub's."
    raise ArtifactError(message, code="ARTIFACTS_UNAVAILABLE")


def _claims(token: str) -> dict[str, Any]:
    payload = f"{token}..".split(".")[1]
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


BLOCK_BYTES = 8 * 1024 * 1024
BLOCK_SECONDS = 300.0
STORAGE_VERSION = "2021-12-02"
# Of a block's name before base64; all names of a blob must be equally long.
ID_LENGTH = 48


@dataclass(frozen=True)
class StoredBlob:
    digest: str
    """`sha256:` and 64 hexadecimal digits."""
    size: int


def store_blob(http: "Http", url: str, file: IO[bytes], mime_type: str) -> StoredBlob:
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
    _put(http, f"{url}&comp=blocklist", _block_list(names), "application/xml", {"x-ms-blob-content-type": mime_type})
    return StoredBlob(f"sha256:{digest.hexdigest()}", size)


def _put(http: "Http", url: str, data: bytes, kind: str, more: Mapping[str, str] | None = None) -> None:
    headers = {"Content-Type": kind, "x-ms-version": STORAGE_VERSION, **(more or {})}
    http.send(HttpRequest("PUT", url, headers, data=data, timeout=BLOCK_SECONDS, redirects=False))


def _block_list(names: list[str]) -> bytes:
    blocks = "".join(f"<Latest>{name}</Latest>" for name in names)
    return f'<?xml version="1.0" encoding="utf-8"?><BlockList>{blocks}</BlockList>'.encode()
