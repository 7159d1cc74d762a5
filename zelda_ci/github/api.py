"""GitHub's REST and GraphQL API, for one repository and one token, by requests that are patient and bounded."""

import hashlib
import io
import logging
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.cookiejar import DefaultCookiePolicy
from tempfile import TemporaryFile
from typing import IO, Any
from urllib.parse import unquote, urljoin, urlsplit

import orjson
import requests
from urllib3.exceptions import HTTPError, InvalidHeader
from urllib3.util import Retry

from zelda_ci import __version__
from zelda_ci.errors import ArtifactError, GitHubError
from zelda_ci.redact import Redactor, SafeText, Secret

MAX_ATTEMPTS, MAX_HOPS, MAX_DETAIL_LENGTH = 5, 3, 300
# GitHub asks for a minute at least where it names no time.
SECONDARY_PAUSE = 60.0
# Answers of a server that may be well again in a moment, whether or not it carried the request out.
PASSING = frozenset({408, 500, 502, 503, 504})
MOVED = frozenset({301, 302, 307, 308})
# What GitHub says with 403 and no permission would change: of conversations, runs and repositories.
OTHER_REASONS = re.compile(r"\b(is locked|already running|month ago|no failed jobs|was archived)\b", re.IGNORECASE)
# Of a thing that is not there, or not any more.
ABSENT = frozenset({"GITHUB_NOT_FOUND", "GITHUB_GONE"})


@dataclass(frozen=True)
class Tolerating:
    """Goes on behind the block where GitHub refuses with one of these codes, or statuses."""

    codes: Collection[str | int | None]

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: object, __: object) -> bool:
        return isinstance(error, GitHubError) and (error.code in self.codes or error.status in self.codes)


@dataclass(frozen=True)
class HttpRequest:
    """A request, and which answers to it are taken."""

    method: str
    url: str = field(repr=False)
    """Never shown with its query, which may hold a signature."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    params: Mapping[str, Any] | None = None
    json: Any = None
    data: bytes | None = field(default=None, repr=False)
    timeout: float = 60.0
    """Seconds without a byte after which an attempt counts as failed."""
    max_bytes: int = 50_000_000
    """Most that the body of the answer may have."""
    repeatable: bool = False
    """Whether it may be sent again even if it was carried out, although it is a POST."""
    redirects: bool = True
    """Whether a redirect is an answer, or a refusal; it is followed in no case."""
    into: IO[bytes] | None = None
    """A file for the body, where that may be large."""

    @property
    def asked(self) -> str:
        """Method and address, without what may be secret in it, for messages."""
        return f"{self.method} {self.url.partition('?')[0].rpartition('//')[2].rpartition('@')[2][:120]}"

    def lost(self, why: str, status: int | None = None) -> GitHubError | None:
        """The error where it may have been carried out, and must not be sent again."""
        if self.repeatable or self.method != "POST":
            return None
        message = f"{self.asked} may have been carried out, but its answer was lost: {why}."
        return GitHubError(message, code="GITHUB_ANSWER_LOST", status=status)


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    request: HttpRequest
    status: int
    headers: Mapping[str, str]
    body: IO[bytes] = field(repr=False)

    def json(self) -> Any:
        """The value in the body; raises `GitHubError` (`GITHUB_REFUSED`) where that is no JSON."""
        try:
            self.body.seek(0)
            return orjson.loads(self.body.read())
        except ValueError:
            message = f"The answer to {self.request.asked} cannot be used: it is not JSON."
            hint = "Something between here and GitHub, like a proxy, may have answered instead."
            raise GitHubError(message, hint=hint, code="GITHUB_REFUSED", status=self.status) from None

    @property
    def fields(self) -> dict[str, Any]:
        """The object in the body; empty where it holds anything else."""
        with suppress(GitHubError):
            if isinstance(reply := self.json(), dict):
                return reply
        return {}

    @property
    def said(self) -> SafeText:
        """What the server says went wrong: one short printable line for the middle of a sentence, without our token."""
        errors = self.fields.get("errors")
        objects = [it for it in (self.fields, *(errors if isinstance(errors, list) else ())) if isinstance(it, dict)]
        words = (each.get(key) for each in objects for key in ("message", "msg"))
        redact = Redactor([Secret(self.request.headers.get("Authorization", "").rpartition(" ")[2])])
        text = redact(": ".join(word for word in words if isinstance(word, str)))
        line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
        return redact((line if len(line) <= MAX_DETAIL_LENGTH else f"{line[:MAX_DETAIL_LENGTH]}...").rstrip("."))

    @property
    def graphql_errors(self) -> str:
        """The errors of a query, which GraphQL answers with status 200; empty where there are none."""
        return str(self.fields.get("errors") or "") if self.status == 200 and self.request.method == "POST" else ""

    @property
    def is_taken(self) -> bool:
        return self.status < (400 if self.request.redirects else 300) and not self.graphql_errors


class Http:
    """Sends requests that share its patience: seconds that all waiting and failed attempts may take, and each attempt.

    `mask` is given the signatures of addresses, for `::add-mask::`.
    """

    def __init__(
        self,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
        patience_seconds: float = 300,
        mask: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._sleep, self._clock, self._mask = sleep, clock, mask
        self._patience = self._left = patience_seconds
        # At debug level it writes down addresses with their signatures.
        logging.getLogger("urllib3").setLevel(logging.ERROR)
        self._session = requests.Session()
        # Without an authenticator of its own, a .netrc of the runner would replace our Authorization header.
        self._session.auth = lambda prepared: prepared
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    def send(self, request: HttpRequest) -> Answer:
        """An answer with a status below 400, attempted until there is one, or no sense or patience left.

        Raises:
            GitHubError: `GITHUB_NOT_PERMITTED`, `_RATE_LIMITED`, `_NOT_FOUND`, `_GONE`, `_UNREACHABLE`, `_TOO_LARGE`,
                `_ANSWER_LOST` (what must not happen twice may have happened), or else `_REFUSED`; `ARTIFACT_QUOTA`.
        """
        for signature in re.findall(r"[?&](?:sig|token)=([^&#]+)", request.url):
            # A log may show it in two spellings.
            for spelling in dict.fromkeys((unquote(signature), signature)):
                self._mask(spelling)
        attempt = 1
        while True:
            began = self._clock()
            try:
                answer = self._attempt(request)
                if answer.is_taken:
                    return answer
                error, pause = refused(answer, attempt, self._clock())
            except (requests.RequestException, HTTPError, OSError, ValueError) as problem:
                # Its text holds the whole address, signature included: only its kind is shown.
                error, pause = _unanswered(problem, request, attempt)
            self._left -= max(0.0, self._clock() - began)
            if pause is None or attempt == MAX_ATTEMPTS or pause > self._left:
                raise error
            self._left -= pause
            self._sleep(pause)
            attempt += 1

    def _attempt(self, request: HttpRequest) -> Answer:
        deadline = time.monotonic() + self._patience
        with self._session.request(
            request.method,
            request.url,
            params=request.params,
            headers={"User-Agent": f"zelda-ci/{__version__}", **request.headers},
            json=request.json if request.data is None else None,
            data=request.data,
            timeout=min(request.timeout, self._patience),
            stream=True,
            allow_redirects=False,
        ) as response:
            body = request.into or io.BytesIO()
            # What an attempt before this one has left.
            body.truncate(body.seek(0))
            # As it comes: timeouts are for single bytes, of which a server may send many.
            while chunk := response.raw.read1(1 << 16, decode_content=True):
                body.write(chunk)
                if body.tell() > request.max_bytes:
                    message = f"{request.asked} got no answer: it is larger than {request.max_bytes} bytes."
                    raise GitHubError(message, code="GITHUB_TOO_LARGE")
                if time.monotonic() > deadline:
                    raise TimeoutError
        return Answer(request, response.status_code, response.headers, body)


# What an error of GraphQL holds in its type, code or message, the gravest first.
FORBIDDEN = dict.fromkeys(("FORBIDDEN", "INSUFFICIENT_SCOPES"), "GITHUB_NOT_PERMITTED")
GRAPHQL_CODES = {**FORBIDDEN, "NOT_FOUND": "GITHUB_NOT_FOUND"}
# Why an attempt brought no answer: the words, whether the server never had the request, whether another ends the same.
FAILURES: tuple[tuple[type[Exception], str, bool, bool], ...] = (
    (requests.exceptions.SSLError, "its certificate is not trusted", True, True),
    (requests.exceptions.ProxyError, "the proxy of the runner does not let it through", False, False),
    (requests.ConnectTimeout, "it could not be connected to in time", True, False),
    (requests.Timeout, "it timed out", False, False),
    (TimeoutError, "it took too long", False, False),
    # Such as a Location that is no address, which requests looks at even where it does not follow.
    (ValueError, "it is not proper HTTP", False, True),
    (Exception, "the connection broke off", False, False),
)


def _unanswered(problem: Exception, request: HttpRequest, attempts: int) -> tuple[GitHubError, float | None]:
    """Why an attempt brought no answer, and seconds until the next; absent where there should be none."""
    _, why, unsent, final = next(row for row in FAILURES if isinstance(problem, row[0]))
    if type(problem) is requests.ConnectionError and re.search("NewConnection|NameResolution", repr(problem)):
        why, unsent = "nothing listens there", True
    if not unsent and (lost := request.lost(why)):
        return lost, None
    hint = None if final else "Check the network and the proxy settings of the runner."
    error = GitHubError(f"{request.asked} got no answer: {why}.", hint=hint, code="GITHUB_UNREACHABLE")
    return error, None if final else 2.0 ** (attempts - 1)


def refused(answer: Answer, attempts: int, now: float) -> tuple[GitHubError, float | None]:
    """What an answer that is not taken means, and seconds until the next attempt, if any; `now` is Unix time."""
    request, status, headers, detail = answer.request, answer.status, answer.headers, answer.said
    if status in PASSING and (lost := request.lost(f"HTTP {status}", status)):
        return lost, None
    hint: str | None = None
    pause = 2.0 ** (attempts - 1)
    # Whether the server says "too much", and not "never".
    is_named = status in {200, 403} and ("RATE_LIMITED" in answer.graphql_errors or "rate limit" in detail.lower())
    is_timed = status == 403 and ("retry-after" in headers or headers.get("x-ratelimit-remaining") == "0")
    if is_limited := status == 429 or is_named or is_timed:
        ends, pause = "later", SECONDARY_PAUSE * pause
        reset = headers.get("x-ratelimit-reset", "")
        # Where the limit of the hour is what was reached.
        if headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
            resets_at = int(reset[:10])
            # A second more, since clocks differ.
            ends, pause = f"after {datetime.fromtimestamp(resets_at, UTC):%H:%M} UTC", max(0.0, resets_at - now) + 1
        code, hint = "GITHUB_RATE_LIMITED", f"GitHub limits how often it may be asked; run the job again {ends}."
    elif status < 300:
        code = next((code for sign, code in GRAPHQL_CODES.items() if sign in answer.graphql_errors), "GITHUB_REFUSED")
    elif status < 400:
        code, hint = "GITHUB_REFUSED", "It is redirected, which is not followed."
    elif status >= 500:
        code, hint = "GITHUB_UNREACHABLE", "GitHub has a problem; run the job again later."
    elif status == 403 and OTHER_REASONS.search(detail):
        code = "GITHUB_REFUSED"
    else:
        code, hint = {
            401: ("GITHUB_NOT_PERMITTED", "The token is missing, wrong or no longer valid."),
            403: ("GITHUB_NOT_PERMITTED", _permission_hint(headers.get("x-accepted-github-permissions", ""))),
            404: ("GITHUB_NOT_FOUND", "It does not exist, or the token may not see it."),
            410: ("GITHUB_GONE", None),
        }.get(status, ("GITHUB_REFUSED", None))
    if "insufficient usage" in detail.lower():
        message = "The storage for artifacts that this account has is used up."
        hint = "Delete old artifacts or shorten their retention; GitHub counts anew every 6 to 12 hours."
        return ArtifactError(message, hint=hint, code="ARTIFACT_QUOTA", status=status, detail=detail), None
    how = "refused" if status < 300 else f"answered with {status}"
    message = f"{request.asked} was {how}{f' ({detail})' if detail else ''}."
    error = GitHubError(message, hint=hint, code=code, status=status, detail=detail)
    if not (status in PASSING or is_limited):
        return error, None
    # Seconds or a date, or anything, since it is a server's.
    with suppress(InvalidHeader, ValueError, OverflowError):
        pause = Retry().parse_retry_after(headers.get("retry-after", ""))
    return error, pause


def _permission_hint(wanted: str) -> str:
    # One of several sets is enough (";"), and each is a list (","). From outside: only names of permissions are shown.
    sets = [re.findall(r"([a-z_]+)=([a-z]+)", part) for part in wanted.split(";")]
    shown = " or ".join(" and ".join(map(": ".join, each)) for each in sets if each)
    if not shown:
        return "The token may not do this; check `permissions` in the workflow."
    return f"Give the job this under `permissions` in the workflow: {shown}."


@dataclass(frozen=True)
class Api:
    """Asks about one repository; a path is relative to it unless it begins with `/`. Errors are those of `Http.send`.

    The token is sent to the two addresses only, which end without a slash.
    """

    http: Http
    base_url: str
    graphql_url: str
    token: Secret
    repository: str

    def get(self, path: str, **params: Any) -> Any:
        """The value at a path; parameters of None are left out."""
        return self._send("GET", path, params=params).json()

    def pages(self, path: str, *, key: str | None = None, limit: int = 10, **params: Any) -> Iterator[Any]:
        """The items of a list, which is the answer or under `key` in it, by the hundred as they are needed."""
        url, query = path, {"per_page": 100, **params}
        for _ in range(limit):
            answer = self._send("GET", url, params=query)
            page = answer.json()
            items = page.get(key) if key and isinstance(page, dict) else page
            if not isinstance(items, list):
                raise GitHubError(f"The answer to {answer.request.asked} is no list.", code="GITHUB_REFUSED")
            yield from items
            links = requests.utils.parse_header_links(answer.headers.get("link", ""))
            following = next((each["url"] for each in links if each.get("rel") == "next"), None)
            if following is None:
                return
            # It has the parameters in it.
            url, query = self._own(following), {}

    def post(self, path: str, body: Any) -> Any:
        return self._send("POST", path, json=body).json()

    def patch(self, path: str, body: Any) -> Any:
        return self._send("PATCH", path, json=body).json()

    def delete(self, path: str) -> None:
        self._send("DELETE", path)

    def graphql(self, query: str, **variables: Any) -> Any:
        """The `data` of the answer to a query; data beside an error is only a part of it, and counts as none."""
        body = {"query": query, "variables": variables}
        reply = self.http.send(HttpRequest("POST", self.graphql_url, self._headers, json=body, repeatable=True)).json()
        return reply.get("data") if isinstance(reply, dict) else None

    @contextmanager
    def download(self, artifact_id: int, *, digest: str | None, max_bytes: int) -> Iterator[IO[bytes]]:
        """The archive of an artifact, whose digest the API tells (`sha256:...`), but on Enterprise Server.

        Raises `ArtifactError`: `ARTIFACT_EXPIRED`, `ARTIFACT_TOO_LARGE` or `ARTIFACT_INVALID` (other than its digest).
        """
        with TemporaryFile(prefix="zelda-artifact-") as file:
            try:
                self._download(f"actions/artifacts/{artifact_id}/zip", file, max_bytes)
            except GitHubError as exc:
                # Who asks for it has it from GitHub's list; what storage lacks is gone, too.
                if exc.code in ABSENT:
                    raise ArtifactError("The artifact has expired or was deleted.", code="ARTIFACT_EXPIRED") from None
                if exc.code == "GITHUB_TOO_LARGE":
                    message = f"The artifact is too large: {exc.message}"
                    raise ArtifactError(message, code="ARTIFACT_TOO_LARGE") from None
                raise
            file.seek(0)
            found = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
            if found != (digest or "").lower() and (digest or not self.base_url.endswith("/api/v3")):
                why = "another one" if digest else "not known"
                message = f"Artifact {artifact_id} may not be what was uploaded: its digest is {why}."
                raise ArtifactError(message, code="ARTIFACT_INVALID")
            yield file

    def _download(self, path: str, file: IO[bytes], max_bytes: int, *, again: bool = True) -> None:
        answer = self._send("GET", path, follow=False)
        if answer.status not in MOVED or "location" not in answer.headers:
            raise GitHubError(f"{answer.request.asked} led nowhere.", code="GITHUB_REFUSED", status=answer.status)
        # Without our token: storage refuses requests that carry one, and has no business knowing it.
        storage = HttpRequest("GET", answer.headers["location"], max_bytes=max_bytes, redirects=False, into=file)
        try:
            self.http.send(storage)
        except GitHubError as exc:
            if exc.status == 403 and again:
                # A signed address lives a minute, and may have died while storage was waited for.
                return self._download(path, file, max_bytes, again=False)
            if exc.code != "GITHUB_NOT_PERMITTED":
                raise
            # It knows no token, and no permission would help.
            message = f"GitHub's storage does not accept the address that GitHub gave for an artifact ({exc.status})."
            raise GitHubError(message, code="GITHUB_REFUSED") from None

    def _send(self, method: str, path: str, *, params: Any = None, json: Any = None, follow: bool = True) -> Answer:
        """Follow what moved, like a repository of another name now; our token stays with GitHub's own address."""
        url = path
        if not path.startswith(self.base_url):
            url = f"{self.base_url}{path if path.startswith('/') else f'/repos/{self.repository}/{path}'}"
        for _ in range(MAX_HOPS):
            answer = self.http.send(HttpRequest(method, url, self._headers, params, json))
            # What is found elsewhere (302) is the caller's; what moved for good or for now is asked for there.
            if answer.status not in MOVED or "location" not in answer.headers or (not follow and answer.status == 302):
                return answer
            url, params = self._own(answer.headers["location"]), None
        raise GitHubError(f"{method} {urlsplit(url).path} is redirected in circles.", code="GITHUB_REFUSED")

    @property
    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.token.reveal()}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }

    def _own(self, link: str) -> str:
        """An address that GitHub points to, if our token may go there."""
        with suppress(ValueError):
            url = urljoin(f"{self.base_url}/", link)
            if urlsplit(url)[:2] == urlsplit(self.base_url)[:2]:
                return url
        raise GitHubError("GitHub points to an address that is not its own.", code="GITHUB_REFUSED")
