"""Artifacts of a run, stored the way GitHub's own client does: Twirp calls (JSON over POST), and blob storage."""

import base64
import hashlib
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import quote, urlsplit

import orjson

from zelda_ci.errors import ArtifactError, GitHubError
from zelda_ci.github.api import Http, HttpRequest, Tolerating
from zelda_ci.github.archives import packed
from zelda_ci.github.repository import Described
from zelda_ci.redact import Secret

SERVICE, VERSION = "github.actions.results.api.v1.ArtifactService", 7
GONE, CONFLICT = 404, 409
REFUSED_TWICE = frozenset({400, GONE, CONFLICT, 412})
BLOCK_BYTES, BLOCK_SECONDS = 8 << 20, 300.0
# Of a block's name before base64; all names of a blob must be equally long.
ID_LENGTH = 48

_unavailable = partial(ArtifactError, code="ARTIFACTS_UNAVAILABLE")


class Uploaded(NamedTuple):
    id: int
    size: int
    """In bytes."""


class _Stored(Described):
    database_id: int
    digest: str = ""


class ArtifactReply(Described):
    """What a method answers, each of them a part of it."""

    ok: bool = False
    signed_upload_url: str = ""
    artifact_id: int = 0
    artifacts: tuple[_Stored, ...] = ()


class ArtifactService:
    """Stores artifacts in the name of the job that runs us; elsewhere, `ArtifactError` (`ARTIFACTS_UNAVAILABLE`)."""

    def __init__(self, environ: Mapping[str, str], http: Http) -> None:
        host = (urlsplit(environ.get("GITHUB_SERVER_URL") or "https://github.com").hostname or "").lower()
        if host != "github.com" and not host.endswith((".ghe.com", ".localhost")):
            hint = "The results stay in the workspace; a step with actions/upload-artifact@v3 can store them."
            raise _unavailable("GitHub Enterprise Server does not offer artifacts of this kind.", hint=hint)
        token, results = environ.get("ACTIONS_RUNTIME_TOKEN"), urlsplit(environ.get("ACTIONS_RESULTS_URL") or "")
        if not token or not results.netloc:
            message = "There is no artifact service here: ACTIONS_RUNTIME_TOKEN and ACTIONS_RESULTS_URL are not set."
            hint = "GitHub gives them to actions, not to `run` steps: use zelda-ci/zelda-ci/runner in place of one."
            raise _unavailable(message, hint=hint)
        self._http, self._token, self._backend = http, Secret(token), _backend(token)
        self._service = f"{results.scheme}://{results.netloc}/twirp/{SERVICE}"
        longest = environ.get("GITHUB_RETENTION_DAYS", "")
        self._longest_days = int(longest) if longest.isascii() and longest.isdecimal() else 0

    def upload(self, name: str, content: Mapping[str, Path | bytes] | Path, *, retention_days: int | None) -> Uploaded:
        """Store an archive of contents or places by path in it, or an HTML file as it is, so that a browser opens it.

        No other artifact of the run has its name, which for a file ends in `.html`.

        Raises `ArtifactError` (`ARTIFACT_EXISTS`, `_REFUSED`, `_FAILED`), or `GitHubError` with status 400 where the
        service takes archives only.
        """
        mime_type = "text/html" if isinstance(content, Path) else "application/zip"
        request: dict[str, str | int] = {"name": name, "version": VERSION, "mime_type": mime_type}
        if retention_days is not None:
            days = min(max(retention_days, 1), self._longest_days or retention_days)
            request["expires_at"] = f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
        try:
            opened = content.open("rb") if isinstance(content, Path) else packed(content)
        except OSError as exc:
            raise ArtifactError(f"{content} cannot be read: {exc.strerror or exc}.") from exc
        with opened as file:
            digest, size = self._send(self._create(name, request), file, mime_type)
            return Uploaded(self._finish(name, digest, size), size)

    def _create(self, name: str, request: Mapping[str, str | int]) -> str:
        """The signed address of a new artifact."""
        for attempt in (1, 2):
            with Tolerating({CONFLICT}):
                return self._call("CreateArtifact", request).signed_upload_url
            # What is finished stays, whoever stored it. What is not is of a request of ours whose answer was lost.
            if attempt == 2 or self._stored(name):
                break
            with Tolerating({GONE}):
                self._call("DeleteArtifact", {"name": name})
        raise ArtifactError(
            f"An artifact called {name!a} already exists in this run of the workflow.",
            hint="Give each step, each job of a matrix, and each call of a reusable workflow, a `comment-id` (or "
            "`artifact-name`) of its own.",
            code="ARTIFACT_EXISTS",
            status=CONFLICT,
        )

    def _finish(self, name: str, digest: str, size: int) -> int:
        try:
            return self._call("FinalizeArtifact", {"name": name, "size": str(size), "hash": digest}).artifact_id
        except GitHubError as exc:
            # A second attempt is refused where the first was heard and its answer lost.
            stored = self._stored(name) if exc.status in REFUSED_TWICE else ()
            if found := [artifact.database_id for artifact in stored if artifact.digest == digest]:
                return max(found)
            raise

    def _stored(self, name: str) -> tuple[_Stored, ...]:
        return self._call("ListArtifacts", {"name_filter": name}).artifacts

    def _call(self, method: str, request: Mapping[str, str | int]) -> ArtifactReply:
        """The reply to a method; repeated like GET, because the service itself refuses to do a thing twice."""
        headers = {"Authorization": f"Bearer {self._token.reveal()}"}
        body, url = {**self._backend, **request}, f"{self._service}/{method}"
        answer = self._http.send(HttpRequest("POST", url, headers, json=body, repeatable=True, redirects=False))
        reply = ArtifactReply.of(answer.json())
        made = {"CreateArtifact": reply.signed_upload_url, "FinalizeArtifact": reply.artifact_id}
        # Refusals come with HTTP 200, too.
        if method in made and not (reply.ok and made[method]):
            raise ArtifactError(f"GitHub's artifact service refused {method}.", code="ARTIFACT_REFUSED")
        return reply

    def _send(self, url: str, content: IO[bytes], mime_type: str) -> tuple[str, int]:
        """Send a file to a signed address, whose signature is all the authorization there is; its digest and size."""
        base, digest, size = str(uuid.uuid4()), hashlib.sha256(), 0
        names = list[str]()
        while (block := content.read(BLOCK_BYTES)) or not names:
            name = base64.b64encode((base + str(len(names)).zfill(ID_LENGTH - len(base))).encode()).decode()
            self._put(f"{url}&comp=block&blockid={quote(name, safe='')}", block, "application/octet-stream")
            names.append(name)
            digest.update(block)
            size += len(block)
        blocks = "".join(f"<Latest>{name}</Latest>" for name in names)
        listed = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{blocks}</BlockList>'.encode()
        self._put(f"{url}&comp=blocklist", listed, "application/xml", {"x-ms-blob-content-type": mime_type})
        return f"sha256:{digest.hexdigest()}", size

    def _put(self, url: str, data: bytes, kind: str, more: Mapping[str, str] | None = None) -> None:
        headers = {"Content-Type": kind, "x-ms-version": "2021-12-02", **(more or {})}
        self._http.send(HttpRequest("PUT", url, headers, data=data, timeout=BLOCK_SECONDS, redirects=False))


def _backend(token: str) -> dict[str, str]:
    """What the service calls our run and our job, as every request says it; the token's signature is its business."""
    with suppress(ValueError, AttributeError):
        payload = f"{token}.".split(".")[1]
        claims = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        for scope in str(claims.get("scp", "")).split(" "):
            match scope.split(":"):
                case ["Actions.Results", run, job] if run and job:
                    return {"workflow_run_backend_id": run, "workflow_job_run_backend_id": job}
    raise _unavailable("The token for artifacts (ACTIONS_RUNTIME_TOKEN) is not one of GitHub's.")
