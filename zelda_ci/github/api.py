"""GitHub's REST and GraphQL API, for one repository and one token."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urljoin, urlsplit

from zelda_ci.errors import ArtifactError, GitHubError
from zelda_ci.github.schemas import ApiResponse, HttpRequest, brief
from zelda_ci.redact import Redactor, Secret

if TYPE_CHECKING:
    # What is slow in it is paid for when something is sent.
    from zelda_ci.github.http import Http

API_VERSION = "2022-11-28"
MAX_HOPS = 3
FOUND = 302
MOVED = frozenset({301, FOUND, 307, 308})
DOWNLOAD_SECONDS = 60.0


def no_mask(_: str) -> None:
    """For a caller whose log masks nothing."""


class Api:
    """Asks about one repository; a path is relative to it unless it begins with `/`.

    All methods raise `GitHubError` with the codes of `Http.send`.

    Args:
        http: Sends.
        base_url: `GITHUB_API_URL`.
        graphql_url: `GITHUB_GRAPHQL_URL`.
        token: Sent to these two only.
        repository: `owner/name`.
        mask: Told the signatures of signed addresses, for `::add-mask::`.
    """

    def __init__(
        self,
        http: "Http",
        *,
        base_url: str,
        graphql_url: str,
        token: Secret,
        repository: str,
        mask: Callable[[str], None] = no_mask,
    ) -> None:
        self.repository = repository
        self._http = http
        self._base = base_url.rstrip("/")
        self._graphql = graphql_url
        self._token = token
        self._mask = mask

    def get(self, path: str, **params: Any) -> Any:
        """The value at a path; parameters of None are left out."""
        return self._send("GET", self._url(path), params=_spelt(params)).json()

    def pages(
        self, path: str, *, key: str | None = None, limit: int = 10, whole: bool = False, **params: Any
    ) -> Iterator[Any]:
        """The items of a list, asked for by the hundred as they are needed.

        Args:
            path: As everywhere.
            key: Where the list stands in the answer; absent where the answer is the list.
            limit: Most pages to ask for.
            whole: Whether a list that is longer is an error at its end, `GITHUB_TOO_LARGE`.
            params: As of `get`.
        """
        url: str | None = self._url(path)
        query: Mapping[str, Any] | None = {"per_page": 100, **_spelt(params)}
        for _ in range(limit):
            if url is None:
                return
            answer = self._send("GET", url, params=query)
            yield from _items(answer, key)
            # The link to the next page has the parameters in it.
            url, query = self._next(answer), None
        if whole and url is not None:
            raise GitHubError(f"The list {path} is longer than {limit} pages.", code="GITHUB_TOO_LARGE")

    def post(self, path: str, body: Any) -> Any:
        """Create something; `GITHUB_ANSWER_LOST` where it may or may not have been created."""
        return self._send("POST", self._url(path), json=body).json()

    def patch(self, path: str, body: Any) -> Any:
        return self._send("PATCH", self._url(path), json=body).json()

    def delete(self, path: str) -> None:
        self._send("DELETE", self._url(path))

    def graphql(self, query: str, **variables: Any) -> Any:
        """The `data` of an answer without errors; queries are repeated like GET, mutations are not.

        Data beside an error is a part of what was asked for, and counts as none. Besides the codes of `Http.send`, the
        error may have `GITHUB_NOT_OFFERED`: this server has no such field.
        """
        body = {"query": query, "variables": variables}
        repeatable = not query.lstrip().startswith("mutation")
        answer = self._send("POST", self._graphql, json=body, repeatable=repeatable)
        reply = answer.json()
        if not isinstance(reply, dict) or reply.get("errors") not in (None, []):
            raise self._graphql_error(answer, reply)
        return reply.get("data")

    def download(self, artifact_id: int, *, digest: str | None, max_bytes: int) -> bytes:
        """The archive of an artifact.

        Args:
            artifact_id: Of the REST API.
            digest: As the API tells it (`sha256:...`); absent for artifacts of old clients, which are not verified.
            max_bytes: Most that the archive may have.

        Raises:
            ArtifactError: `ARTIFACT_EXPIRED`, `ARTIFACT_TOO_LARGE` or `ARTIFACT_INVALID` (other than its digest).
            GitHubError: What else hinders.
        """
        try:
            blob = self._download(f"actions/artifacts/{artifact_id}/zip", max_bytes=max_bytes).body
        except GitHubError as exc:
            raise _unavailable(exc) from None
        computed = f"sha256:{hashlib.sha256(blob).hexdigest()}"
        if digest is not None and digest.lower() != computed:
            message = f"Artifact {artifact_id} is not what was uploaded: its digest is another one."
            raise ArtifactError(message, code="ARTIFACT_INVALID")
        return blob

    def _download(self, path: str, *, max_bytes: int) -> ApiResponse:
        """A signed address lives a minute; one that died while storage was waited for is asked for once more."""
        limits: dict[str, Any] = {"timeout": DOWNLOAD_SECONDS, "max_bytes": max_bytes}
        try:
            return self._follow(path, limits)
        except _StorageRefusalError:
            return self._follow(path, limits)

    def _follow(self, path: str, limits: Mapping[str, Any]) -> ApiResponse:
        answer = self._send("GET", self._url(path), follow=False)
        if answer.status not in MOVED or "location" not in answer.headers:
            raise GitHubError(f"{answer.asked} led nowhere.", code="GITHUB_REFUSED", status=answer.status)
        signed = answer.headers["location"]
        for signature in signatures(signed):
            self._mask(signature)
        try:
            # Without our token: storage refuses requests that carry one, and has no business knowing it.
            return self._http.send(HttpRequest("GET", signed, {}, redirects=False, **limits))
        except GitHubError as exc:
            if exc.status == 403:
                hint = "The signed address that GitHub gave for it was not accepted."
                raise _StorageRefusalError(exc.message, hint=hint, code=exc.code, status=403) from None
            raise

    def _send(self, method: str, url: str, *, follow: bool = True, **more: Any) -> ApiResponse:
        """Follow what moved, like a repository of another name now; our token stays with GitHub's own address."""
        for _ in range(MAX_HOPS):
            answer = self._http.send(HttpRequest(method, url, self._headers(), **more))
            if answer.status not in MOVED or "location" not in answer.headers:
                return answer
            # What is found elsewhere (302) is the caller's; what moved for good or for now is asked for there.
            if not follow and answer.status == FOUND:
                return answer
            url = self._own(answer.headers["location"])
            more["params"] = None
        raise GitHubError(f"{method} {urlsplit(url).path} is redirected in circles.", code="GITHUB_REFUSED")

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._token.reveal()}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": API_VERSION,
        }

    def _url(self, path: str) -> str:
        return f"{self._base}{path if path.startswith('/') else f'/repos/{self.repository}/{path}'}"

    def _next(self, answer: ApiResponse) -> str | None:
        link = next_page(answer.headers.get("link", ""))
        return self._own(link) if link else None

    def _own(self, link: str) -> str:
        """An address that GitHub points to, if our token may go there."""
        try:
            url = urljoin(f"{self._base}/", link)
            foreign = urlsplit(url)[:2] != urlsplit(self._base)[:2]
        except ValueError:
            foreign, url = True, ""
        if foreign:
            raise GitHubError("GitHub points to an address that is not its own.", code="GITHUB_REFUSED")
        return url

    def _graphql_error(self, answer: ApiResponse, reply: Any) -> GitHubError:
        """Of several errors, the one that says most about what to do."""
        errors = reply.get("errors") if isinstance(reply, dict) else None
        errors = [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
        codes = {_code(error): error for error in reversed(errors)}
        code = next((known_code for known_code in _CODES.values() if known_code in codes), "GITHUB_REFUSED")
        detail = brief(str(codes.get(code, {}).get("message", "")), Redactor([self._token]))
        message = f"{answer.asked} was refused{f' ({detail})' if detail else ''}."
        return GitHubError(message, code=code, status=answer.status, detail=detail)


# What GraphQL calls an error, in `type` or `extensions.code`, the gravest first.
_CODES = {
    "FORBIDDEN": "GITHUB_NOT_PERMITTED",
    "INSUFFICIENT_SCOPES": "GITHUB_NOT_PERMITTED",
    "undefinedField": "GITHUB_NOT_OFFERED",
    "NOT_FOUND": "GITHUB_NOT_FOUND",
}

_NO_FIELD = "doesn't exist on type"


def _code(error: Mapping[str, Any]) -> str:
    extensions = error.get("extensions")
    inner = extensions.get("code") if isinstance(extensions, Mapping) else None
    if _NO_FIELD in str(error.get("message")):
        return "GITHUB_NOT_OFFERED"
    return _CODES.get(str(error.get("type")), _CODES.get(str(inner), "GITHUB_REFUSED"))


class _StorageRefusalError(GitHubError):
    """Storage, not GitHub's API, said no."""


def next_page(link: str) -> str | None:
    """The address of the next page in a `Link` header."""
    for part in link.split(","):
        target, _, relation = part.partition(";")
        if 'rel="next"' in relation:
            return target.strip().removeprefix("<").removesuffix(">")
    return None


def signatures(url: str) -> tuple[str, ...]:
    """The secret part of a signed address, in the spellings a log may show."""
    try:
        query = parse_qs(urlsplit(url).query)
    except ValueError:
        return ()
    plain = [*query.get("sig", []), *query.get("token", [])]
    return tuple(dict.fromkeys(form for sig in plain for form in (sig, quote(sig, safe=""), unquote(sig))))


def _spelt(params: Mapping[str, Any]) -> dict[str, Any]:
    """Truth is lower-case on the wire."""
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in params.items()}


def _items(answer: ApiResponse, key: str | None) -> list[Any]:
    page = answer.json()
    items = page.get(key) if key and isinstance(page, dict) else page
    if not isinstance(items, list):
        raise GitHubError(f"The answer to {answer.asked} is no list.", code="GITHUB_REFUSED", status=answer.status)
    return items


def _unavailable(exc: GitHubError) -> GitHubError:
    match exc.code:
        case "GITHUB_GONE":
            return ArtifactError("The artifact has expired.", code="ARTIFACT_EXPIRED", status=exc.status)
        case "GITHUB_TOO_LARGE":
            return ArtifactError(f"The artifact is too large: {exc.message}", code="ARTIFACT_TOO_LARGE")
        case _:
            return exc
