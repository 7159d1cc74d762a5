"""The artifact service: Twirp, version 4 of the protocol, with GitHub's spelling."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.support.github_server.replies import Reply
from tests.support.github_server.seen import Received
from tests.support.github_server.tokens import backend_ids
from tests.support.github_server.world import Artifact, Run

if TYPE_CHECKING:
    from tests.support.github_server.server import GitHubServer

PREFIX = "/twirp/github.actions.results.api.v1.ArtifactService/"
IDS = {"workflow_run_backend_id", "workflow_job_run_backend_id"}
KNOWN = {
    "CreateArtifact": IDS | {"name", "version", "mime_type", "expires_at"},
    "FinalizeArtifact": IDS | {"name", "size", "hash"},
    "ListArtifacts": IDS | {"name_filter", "id_filter"},
    "GetSignedArtifactURL": IDS | {"name"},
    "DeleteArtifact": IDS | {"name"},
}


class TwirpError(Exception):
    """A refusal in Twirp's words."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.reply = Reply(status, {"code": code, "msg": message})


@dataclass
class Upload:
    """An artifact that was created and is not finished."""

    run: Run
    job: str
    name: str
    blob: str
    expires_at: datetime | None
    mime_type: str


@dataclass
class Service:
    """Answers the five methods; `quota` and `refuse` make it answer as GitHub does when it will not."""

    server: "GitHubServer"
    uploads: dict[tuple[int, int, str], Upload] = field(default_factory=dict)
    """By run, attempt and name."""
    quota_used_up: bool = False
    no_room_for: set[str] = field(default_factory=set)
    """Types of contents for which the quota is used up."""
    archives_only: bool = False
    """Know no files that are stored as they are, as services before version 7 of the protocol."""
    not_ok: set[str] = field(default_factory=set)
    """Methods that answer `ok: false` with HTTP 200."""

    def answer(self, received: Received) -> Reply:
        method, request = received.path.removeprefix(PREFIX), json.loads(received.body)
        token = received.headers.get("authorization", "").removeprefix("Bearer ")
        try:
            run, job = self._caller(token, request)
            self._check(method, request)
            if method in self.not_ok:
                return Reply(200, {"ok": False})
            told = self._methods[method](run, job, request)
        except TwirpError as exc:
            return exc.reply
        return Reply(200, told)

    @property
    def _methods(self) -> dict[str, Callable[[Run, str, Mapping[str, Any]], dict[str, Any]]]:
        return {
            "CreateArtifact": self._create,
            "FinalizeArtifact": self._finalize,
            "ListArtifacts": self._list,
            "GetSignedArtifactURL": self._sign,
            "DeleteArtifact": self._delete,
        }

    def _caller(self, token: str, request: Mapping[str, Any]) -> tuple[Run, str]:
        ids = backend_ids(token)
        runs = [run for each in self.server.repositories for run in each.runs if ids and run.backend_id == ids[0]]
        if ids is None or not runs:
            raise TwirpError(401, "unauthenticated", "invalid token")
        if IDS - request.keys():
            raise TwirpError(400, "malformed", "backend ids are missing")
        return runs[0], ids[1]

    def _check(self, method: str, request: Mapping[str, Any]) -> None:
        if self.server.enterprise:
            raise TwirpError(404, "bad_route", "no handler for path")
        unknown = request.keys() - KNOWN.get(method, set())
        if method not in KNOWN or unknown:
            self.server.violations.append(f"artifact service: {method} with {sorted(unknown)} is not known")
            raise TwirpError(404, "bad_route", f"no such method: {method}")

    def _create(self, run: Run, job: str, request: Mapping[str, Any]) -> dict[str, Any]:
        if self.quota_used_up or request.get("mime_type") in self.no_room_for:
            raise TwirpError(429, "resource_exhausted", "Artifact storage quota: insufficient usage to create artifact")
        name, key = request["name"], (run.id, run.attempt, request["name"])
        if not name or set('":<>|*?\r\n\\/') & set(name) or request.get("version") not in {4, 7}:
            raise TwirpError(400, "invalid_argument", "invalid artifact name or version")
        mime_type = request.get("mime_type", "application/zip")
        if mime_type != "application/zip" and (self.archives_only or request["version"] != 7):
            raise TwirpError(400, "invalid_argument", "unsupported mime type")
        if key in self.uploads or any(each.name == name and each.attempt == run.attempt for each in self._of(run)):
            conflict = "an artifact with this name already exists on the workflow run"
            raise TwirpError(409, "already_exists", conflict)
        expires = request.get("expires_at")
        blob = self.server.storage.new_blob()
        until = datetime.fromisoformat(expires) if expires else None
        self.uploads[key] = Upload(run, job, name, blob, until, mime_type)
        return {"ok": True, "signed_upload_url": self.server.storage.address(blob, "cw")}

    def _finalize(self, run: Run, job: str, request: Mapping[str, Any]) -> dict[str, Any]:
        upload = self.uploads.get((run.id, run.attempt, request["name"]))
        path = self.server.storage.whole(upload.blob) if upload else None
        if upload is None or path is None:
            raise TwirpError(404, "not_found", "artifact not found")
        if request["size"] != str(path.stat().st_size):
            raise TwirpError(400, "invalid_argument", "size does not match")
        artifact = Artifact(upload.name, run, run.repository, path, job=upload.job, attempt=run.attempt)
        artifact.expires_at = upload.expires_at or artifact.expires_at
        artifact.mime_type = upload.mime_type
        if request.get("hash") not in {None, artifact.digest}:
            raise TwirpError(400, "invalid_argument", "hash does not match")
        del self.uploads[run.id, run.attempt, request["name"]]
        run.repository.artifacts.append(artifact)
        return {"ok": True, "artifact_id": str(artifact.id)}

    def _list(self, run: Run, job: str, request: Mapping[str, Any]) -> dict[str, Any]:
        name, number = request.get("name_filter"), request.get("id_filter")
        found = [each for each in self._of(run) if name in {None, each.name} and number in {None, str(each.id)}]
        return {"artifacts": [self._told(each, run) for each in found]}

    def _told(self, artifact: Artifact, run: Run) -> dict[str, Any]:
        return {
            "workflow_run_backend_id": run.backend_id,
            "workflow_job_run_backend_id": artifact.job,
            "database_id": str(artifact.id),
            "name": artifact.name,
            "size": str(artifact.size),
            "created_at": f"{artifact.created_at:%Y-%m-%dT%H:%M:%SZ}",
            "digest": artifact.digest,
        }

    def _sign(self, run: Run, job: str, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"signed_url": self.server.storage.address_of(self._named(run, request))}

    def _delete(self, run: Run, job: str, request: Mapping[str, Any]) -> dict[str, Any]:
        key = (run.id, run.attempt, request["name"])
        if key in self.uploads and self.uploads[key].job == request["workflow_job_run_backend_id"]:
            del self.uploads[key]
            return {"ok": True, "artifact_id": "0"}
        artifact = self._named(run, request)
        run.repository.artifacts.remove(artifact)
        return {"ok": True, "artifact_id": str(artifact.id)}

    def _named(self, run: Run, request: Mapping[str, Any]) -> Artifact:
        owner = (request["workflow_run_backend_id"], request["workflow_job_run_backend_id"])
        for each in reversed(self._of(run)):
            if each.name == request["name"] and owner == (run.backend_id, each.job):
                return each
        raise TwirpError(404, "not_found", "artifact not found")

    def _of(self, run: Run) -> list[Artifact]:
        return [each for each in run.repository.artifacts if each.run is run]
