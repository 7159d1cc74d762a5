"""Artifacts of a run, stored the way GitHub's own client stores them (protocol version 4)."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from zelda_ci.errors import ArtifactError, GitHubError
from zelda_ci.github import artifact_protocol
from zelda_ci.github.api import no_mask, signatures
from zelda_ci.github.archives import artifact_name, is_artifact_name, packed
from zelda_ci.github.artifact_protocol import Backend, Twirp, TwirpReply, backend_of
from zelda_ci.github.schemas import QUOTA_WORDS
from zelda_ci.redact import Secret

if TYPE_CHECKING:
    # What is slow in it is paid for when something is sent.
    from zelda_ci.github.http import Http

__all__ = ["ArtifactService", "Uploaded", "artifact_name"]

VERSION = 7
ZIP, HTML = "application/zip", "text/html"
CONFLICT = 409
GONE = frozenset({"GITHUB_NOT_FOUND", "GITHUB_GONE"})
REFUSED_TWICE = frozenset({400, 404, 409, 412})


@dataclass(frozen=True)
class Uploaded:
    """An artifact that is stored."""

    id: int
    """Of the REST API, and of its page."""
    digest: str
    """`sha256:` and 64 hexadecimal digits, over the archive."""
    size: int
    """Of the archive, in bytes."""


class ArtifactService:
    """Stores artifacts in the name of the job that runs us."""

    def __init__(self, twirp: Twirp, http: "Http", *, longest_days: int | None, mask: Callable[[str], None]) -> None:
        self._twirp = twirp
        self._http = http
        self._longest_days = longest_days
        self._mask = mask

    @classmethod
    def open(
        cls, environ: Mapping[str, str], http: "Http", *, mask: Callable[[str], None] = no_mask
    ) -> "ArtifactService":
        """The service of this job.

        Args:
            environ: `ACTIONS_RUNTIME_TOKEN`, `ACTIONS_RESULTS_URL`, `GITHUB_SERVER_URL`, `GITHUB_RETENTION_DAYS`.
            http: Sends.
            mask: Told the signatures of signed addresses, for `::add-mask::`.

        Raises:
            ArtifactError: `ARTIFACTS_UNAVAILABLE` on GitHub Enterprise Server and outside a job.
        """
        if not _is_cloud(environ.get("GITHUB_SERVER_URL") or "https://github.com"):
            raise ArtifactError(
                "GitHub Enterprise Server does not offer artifacts of this kind.",
                hint="The results stay in the workspace; a step with actions/upload-artifact@v3 can store them.",
                code="ARTIFACTS_UNAVAILABLE",
            )
        token, results = environ.get("ACTIONS_RUNTIME_TOKEN"), urlsplit(environ.get("ACTIONS_RESULTS_URL") or "")
        if not token or not results.netloc:
            message = "There is no artifact service here: ACTIONS_RUNTIME_TOKEN and ACTIONS_RESULTS_URL are not set."
            hint = "GitHub gives them to actions, not to `run` steps: use zelda-ci/zelda-ci/runner in place of one."
            raise ArtifactError(message, hint=hint, code="ARTIFACTS_UNAVAILABLE")
        origin = f"{results.scheme}://{results.netloc}"
        twirp = Twirp(http, origin=origin, token=Secret(token), backend=backend_of(token))
        return cls(twirp, http, longest_days=_number(environ, "GITHUB_RETENTION_DAYS"), mask=mask)

    def upload(self, name: str, files: Mapping[str, Path | bytes], *, retention_days: int | None) -> Uploaded:
        """Store files under a name; one of this name that this very job stored before is replaced.

        Args:
            name: Of the artifact; see `artifact_name`.
            files: Contents or places by path within the artifact.
            retention_days: How long it is kept; absent or beyond what the repository allows: as long as that.

        Raises:
            ArtifactError: `ARTIFACT_QUOTA`, `ARTIFACT_EXISTS` (another job's), `ARTIFACT_NAME_INVALID`,
                `ARTIFACT_EMPTY`, `ARTIFACT_REFUSED`, or `ARTIFACT_FAILED`.
            GitHubError: As `Http.send`.
        """
        with _named(name), packed(files) as archive:
            return self._store(name, archive, ZIP, retention_days)

    def upload_page(self, name: str, page: Path, *, retention_days: int | None) -> Uploaded:
        """Store an HTML file as it is, so that a browser opens it; one of this name is replaced.

        Args:
            name: Of the artifact, and of the file that a reader saves: it ends in `.html`.
            page: The file.
            retention_days: As for `upload`.

        Raises:
            ArtifactError: As for `upload`; `ARTIFACT_FAILED` also where the file cannot be read.
            GitHubError: As `Http.send`; with status 400 where the service takes archives only.
        """
        with _named(name), _opened(page) as content:
            return self._store(name, content, HTML, retention_days)

    def _store(self, name: str, content: IO[bytes], mime_type: str, retention_days: int | None) -> Uploaded:
        url = self._create(name, mime_type, retention_days).text("signed_upload_url")
        for signature in signatures(url):
            self._mask(signature)
        stored = artifact_protocol.store_blob(self._http, url, content, mime_type)
        number = self._finish(name, stored)
        if number is None:
            raise ArtifactError("GitHub's artifact service did not name the artifact.", code="ARTIFACT_REFUSED")
        return Uploaded(number, stored.digest, stored.size)

    def _finish(self, name: str, stored: artifact_protocol.StoredBlob) -> int | None:
        request = {"name": name, "size": str(stored.size), "hash": stored.digest}
        try:
            return self._twirp.demand("FinalizeArtifact", request).number("artifact_id")
        except GitHubError as exc:
            # A second attempt is refused where the first was heard and its answer lost.
            artifact = self._newest(name) if exc.status in REFUSED_TWICE else None
            if artifact is None or artifact.text("digest") != stored.digest:
                raise
            return artifact.number("database_id")

    def _create(self, name: str, mime_type: str, retention_days: int | None) -> TwirpReply:
        request = {"name": name, "version": VERSION, "mime_type": mime_type, **self._expiry(retention_days)}
        try:
            return self._twirp.demand("CreateArtifact", request)
        except GitHubError as exc:
            if exc.status != CONFLICT:
                raise
        newest = self._newest(name)
        if newest is not None and _owner(newest) != self._twirp.backend:
            raise _taken(name)
        # An earlier step's, or from a request of a moment ago whose answer was lost.
        try:
            self._twirp.call("DeleteArtifact", {"name": name})
        except GitHubError as exc:
            # Gone meanwhile is as good. Anything else would look like another job's artifact afterwards.
            if exc.code not in GONE:
                raise
        try:
            return self._twirp.demand("CreateArtifact", request)
        except GitHubError as exc:
            raise (_taken(name) if exc.status == CONFLICT else exc) from None

    def _newest(self, name: str) -> TwirpReply | None:
        artifacts = self._twirp.call("ListArtifacts", {"name_filter": name}).items("artifacts")
        return max(artifacts, key=lambda item: item.number("database_id") or 0, default=None)

    def _expiry(self, retention_days: int | None) -> dict[str, str]:
        if retention_days is None:
            return {}
        days = min(max(retention_days, 1), self._longest_days or retention_days)
        return {"expires_at": f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"}


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Refuse a name that GitHub does not take, and say what it means that it has no room."""
    if not is_artifact_name(name):
        raise ArtifactError(f"An artifact cannot be called {name!a}.", code="ARTIFACT_NAME_INVALID")
    try:
        yield
    except GitHubError as exc:
        if QUOTA_WORDS in exc.detail.lower():
            raise _quota(exc) from None
        raise


@contextmanager
def _opened(page: Path) -> Iterator[IO[bytes]]:
    try:
        content = page.open("rb")
    except OSError as exc:
        raise ArtifactError(f"{page.name} cannot be read: {exc.strerror or exc}.") from exc
    with content:
        yield content


def _owner(item: TwirpReply) -> Backend:
    return Backend(item.text("workflow_run_backend_id"), item.text("workflow_job_run_backend_id"))


def _is_cloud(server_url: str) -> bool:
    host = (urlsplit(server_url).hostname or "").lower()
    return host == "github.com" or host.endswith((".ghe.com", ".localhost"))


def _number(environ: Mapping[str, str], name: str) -> int | None:
    value = environ.get(name, "")
    return int(value) if value.isascii() and value.isdecimal() and int(value) > 0 else None


def _taken(name: str) -> ArtifactError:
    return ArtifactError(
        f"An artifact called {name!a} already exists in this run of the workflow.",
        hint="Give each job of a matrix, and each call of a reusable workflow, a `comment-id` (or `artifact-name`) of "
        "its own.",
        code="ARTIFACT_EXISTS",
        status=CONFLICT,
    )


def _quota(exc: GitHubError) -> ArtifactError:
    hint = "Delete old artifacts or shorten their retention; GitHub counts anew every 6 to 12 hours."
    message = "The storage for artifacts that this account has is used up."
    return ArtifactError(message, hint=hint, code="ARTIFACT_QUOTA", status=exc.status, detail=exc.detail)
