"""Requests to GitHub, and its answers, checked as far as Zelda reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from zelda_ci.errors import GitHubError
from zelda_ci.redact import EMPTY, Redactor, SafeText, Secret


class Described(BaseModel):
    """A thing as GitHub describes it; keys that Zelda does not read are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Artifact(Described):
    id: int
    name: str = ""
    size_in_bytes: int
    expired: bool
    created_at: AwareDatetime | None = None
    digest: str | None = None
    """`sha256:` and hex; absent where it was stored in the old way."""


class GitHubRepository(Described):
    """One repository among a network of forks."""

    id: int


class WorkflowRun(Described):
    """A run of a workflow."""

    id: int
    workflow_id: int
    path: str = ""
    """Of the workflow's file, in some answers with `@` and the ref behind it."""
    event: str
    head_branch: str | None = None
    head_sha: str
    head_repository: GitHubRepository | None = None
    """Absent where the fork was deleted."""
    run_attempt: int = 1
    status: str | None = None
    conclusion: str | None = None
    """Absent as long as it runs."""
    url: str = Field("", alias="html_url")

    @property
    def workflow(self) -> str:
        """Path of the workflow's file."""
        return self.path.partition("@")[0]

    def is_of(self, branch: str, repository_id: int) -> bool:
        """Whether it was for a branch of the repository itself, and not for a fork's of the same name."""
        is_own = self.head_repository is not None and self.head_repository.id == repository_id
        return is_own and self.head_branch == branch


class Commit(Described):
    """A commit in a list."""

    sha: str


class CommitComparison(Described):
    """How far two commits are apart."""

    behind_by: int
    merge_base_commit: Commit


class BranchHead(Described):
    """Head or base of a pull request."""

    sha: str
    repo: GitHubRepository | None = None
    """Absent where the fork was deleted."""


class PullRequest(Described):
    """A pull request in a list or alone."""

    number: int
    state: str
    head: BranchHead
    base: BranchHead


_Described = TypeVar("_Described", bound=Described)


def understand(kind: type[_Described], answer: Any) -> _Described:
    """The thing that a value of an answer describes.

    Raises:
        GitHubError: `GITHUB_REFUSED` where it is something else.
    """
    try:
        return kind.model_validate(answer)
    except ValidationError as error:
        message = f"An answer of GitHub cannot be used: it describes no {kind.__name__}."
        raise GitHubError(message, code="GITHUB_REFUSED") from error


CONNECT_TIMEOUT = 10.0
RESPONSE_TIMEOUT = 30.0
MAX_BYTES = 50_000_000
LARGE_BODY = 1 << 16


@dataclass(frozen=True)
class HttpRequest:
    """A request, and which answers to it are taken."""

    method: str
    """In capitals."""
    url: str = field(repr=False)
    """Never shown with its query, which may hold a signature."""
    headers: Mapping[str, str] = field(repr=False)
    """All of them but User-Agent."""
    params: Mapping[str, Any] | None = None
    """Of the query; values None are left out."""
    json: Any = None
    """Body as a value."""
    data: bytes | None = field(default=None, repr=False)
    """Body as bytes."""
    timeout: float = RESPONSE_TIMEOUT
    """Seconds without a byte after which an attempt counts as failed."""
    max_bytes: int = MAX_BYTES
    """Most that the body of the answer may have."""
    repeatable: bool = False
    """Whether it may be sent again even if it was carried out, although its method does not promise that."""
    redirects: bool = True
    """Whether a redirect is an answer, or a refusal; it is followed in no case."""

    @property
    def redactor(self) -> Redactor:
        """For what the server says: it may say our own token."""
        return Redactor([Secret(self.headers.get("Authorization", "").rpartition(" ")[2])])

    @property
    def timeouts(self) -> tuple[float, float]:
        """Seconds to connect, and to wait for a byte; a body must be sent within the former, however large it is."""
        is_large = len(self.data or b"") > LARGE_BODY
        return self.timeout if is_large else min(CONNECT_TIMEOUT, self.timeout), self.timeout

    @property
    def asked(self) -> str:
        """Method and address without the query, for messages."""
        try:
            parts = urlsplit(self.url)
        except ValueError:
            return f"{self.method} of an impossible address"
        return f"{self.method} {parts.hostname}{parts.path[:100]}"


MAX_DETAIL_LENGTH = 300

RATE_LIMIT_WORDS = "rate limit"
QUOTA_WORDS = "insufficient usage"


@dataclass(frozen=True)
class ApiResponse:
    """A whole answer; `headers` have lower-case names."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    asked: str
    """Method and address without the query, for messages."""

    def json(self) -> Any:
        """The value in the body.

        Raises:
            GitHubError: `GITHUB_REFUSED` where the body is no JSON.
        """
        try:
            return orjson.loads(self.body)
        except ValueError:
            message = f"The answer to {self.asked} cannot be used: it is not JSON."
            hint = "Something between here and GitHub, like a proxy, may have answered instead."
            raise GitHubError(message, hint=hint, code="GITHUB_REFUSED", status=self.status) from None

    @property
    def said(self) -> str:
        """What the server says went wrong, in its own words; outside text."""
        reply = self._object
        more = [error.get("message") for error in _errors(reply)]
        return ": ".join(part for part in (reply.get("message"), reply.get("msg"), *more) if isinstance(part, str))

    @property
    def target(self) -> str:
        """The host that a redirect leads to, which is all of its address that is no secret."""
        try:
            return urlsplit(self.headers.get("location", "")).hostname or "another address there"
        except ValueError:
            return "an address that is none"

    @property
    def is_limited(self) -> bool:
        """Whether the server says "too much", and not "never"."""
        if self.status == 429:
            return True
        signs = "retry-after" in self.headers or self.headers.get("x-ratelimit-remaining") == "0"
        return (self.status == 403 and (signs or RATE_LIMIT_WORDS in self.said.lower())) or self._is_limited_query

    @property
    def _is_limited_query(self) -> bool:
        """Whether this is GraphQL's way to say so: with status 200."""
        if self.status != 200 or b'"errors"' not in self.body:
            return False
        return any(
            error.get("type") == "RATE_LIMITED" or RATE_LIMIT_WORDS in str(error.get("message")).lower()
            for error in _errors(self._object)
        )

    @property
    def _object(self) -> dict[str, Any]:
        """The object in the body; empty where it holds anything else."""
        try:
            reply = orjson.loads(self.body)
        except ValueError:
            return {}
        return reply if isinstance(reply, dict) else {}


def _errors(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    errors = reply.get("errors")
    return [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []


def refusal(answer: ApiResponse, redact: Redactor) -> GitHubError:
    """The refusal in an answer of status 400 or more, or in a limited query, as an error that says what to do."""
    code, hint = _meaning(answer)
    detail = brief(answer.said, redact)
    message = f"{answer.asked} was answered with {answer.status}{f' ({detail})' if detail else ''}."
    return GitHubError(message, hint=hint, code=code, status=answer.status, detail=detail)


def _meaning(answer: ApiResponse) -> tuple[str, str | None]:
    """Code and hint."""
    if answer.is_limited:
        return "GITHUB_RATE_LIMITED", f"GitHub limits how often it may be asked; run the job again {_when(answer)}."
    if answer.status >= 500:
        return "GITHUB_UNREACHABLE", "GitHub has a problem; run the job again later."
    meanings = {
        401: ("GITHUB_NOT_PERMITTED", "The token is missing, wrong or no longer valid."),
        403: ("GITHUB_NOT_PERMITTED", _permission_hint(answer)),
        404: ("GITHUB_NOT_FOUND", "It does not exist, or the token may not see it."),
        410: ("GITHUB_GONE", None),
    }
    return meanings.get(answer.status, ("GITHUB_REFUSED", None))


def _when(answer: ApiResponse) -> str:
    """When the limit ends."""
    reset = answer.headers.get("x-ratelimit-reset", "")
    if answer.headers.get("x-ratelimit-remaining") != "0" or not reset.isdecimal() or len(reset) > 10:
        return "later"
    return f"after {datetime.fromtimestamp(int(reset), UTC):%H:%M} UTC"


def _permission_hint(answer: ApiResponse) -> str:
    wanted = answer.headers.get("x-accepted-github-permissions", "")
    # One of several sets is enough (";"), and each is a list (",").
    lists = [part.strip().replace("=", ": ").replace(",", " and ") for part in wanted.split(";") if part.strip()]
    # From outside, and about to be printed: it names permissions, so it has no other characters.
    safe = [text for text in lists if text.replace("_", "").replace(":", "").replace(" ", "").isalnum()]
    if not safe:
        return "The token may not do this; check `permissions` in the workflow."
    return f"Give the job this under `permissions` in the workflow: {' or '.join(safe)}."


def brief(text: str, redact: Redactor) -> SafeText:
    """Outside text for the middle of a sentence: one line, printable, short, redacted."""
    line = " ".join("".join(char if char.isprintable() else " " for char in redact(text)).split())
    cut = line if len(line) <= MAX_DETAIL_LENGTH else f"{line[:MAX_DETAIL_LENGTH]}..."
    return redact(cut.rstrip(".")) if cut else EMPTY
