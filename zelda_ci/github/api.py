"""GitHub's REST and GraphQL API, for one repository and one token, by requests that are patient and bounded."""

import hashlib
import io
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import orjson
import requests
from urllib3.exceptions import HTTPError, InvalidHeader
from urllib3.util import Retry

from zelda_ci import __version__
from zelda_ci.errors import ArtifactError, GitHubError
from zelda_ci.redact import EMPTY, Redactor, SafeText, Secret

MAX_ATTEMPTS = 5
# GitHub asks for a minute at least where it names no time.
SECONDARY_PAUSE = 60.0
DOWNLOAD_SECONDS = 60.0
CHUNK = 1 << 16
MAX_DETAIL_LENGTH = 300
MAX_HOPS = 3

QUOTA_WORDS = "insufficient usage"
# Answers of a server that may be well again in a moment, whether or not it carried the request out.
PASSING = frozenset({408, 500, 502, 503, 504})
MOVED = frozenset({301, 302, 307, 308})
# Methods that leave the same behind when they are carried out twice.
REPEATABLE = frozenset({"GET", "PUT", "PATCH", "DELETE"})


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
    timeout: float = 30.0
    """Seconds without a byte after which an attempt counts as failed."""
    max_bytes: int = 50_000_000
    """Most that the body of the answer may have."""
    repeatable: bool = False
    """Whether it may be sent again even if it was carried out, although its method does not promise that."""
    redirects: bool = True
    """Whether a redirect is an answer, or a refusal; it is followed in no case."""
    into: io.BufferedIOBase | None = None
    """A file that gets the body in place of the answer."""

    @property
    def is_repeatable(self) -> bool:
        return self.repeatable or self.method in REPEATABLE

    @property
    def asked(self) -> str:
        """Method and address, without what may be secret in it, for messages."""
        return f"{self.method} {self.url.partition('?')[0].rpartition('//')[2].rpartition('@')[2][:120]}"

    def brief(self, text: str) -> SafeText:
        """Words of the server for the middle of a sentence: one short printable line, without the token sent to it."""
        redact = Redactor([Secret(self.headers.get("Authorization", "").rpartition(" ")[2])])
        line = " ".join("".join(char if char.isprintable() else " " for char in redact(text)).split())
        cut = line if len(line) <= MAX_DETAIL_LENGTH else f"{line[:MAX_DETAIL_LENGTH]}..."
        return redact(cut.rstrip(".")) if cut else EMPTY


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    request: HttpRequest
    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def json(self) -> Any:
        """The value in the body.

        Raises:
            GitHubError: `GITHUB_REFUSED` where the body is no JSON.
        """
        try:
            return orjson.loads(self.body)
        except ValueError:
            message = f"The answer to {self.request.asked} cannot be used: it is not JSON."
            hint = "Something between here and GitHub, like a proxy, may have answered instead."
            raise GitHubError(message, hint=hint, code="GITHUB_REFUSED", status=self.status) from None

    @property
    def fields(self) -> dict[str, Any]:
        """The object in the body; empty where it holds anything else."""
        try:
            reply = orjson.loads(self.body)
        except ValueError:
            return {}
        return reply if isinstance(reply, dict) else {}

    @property
    def errors(self) -> list[dict[str, Any]]:
        """What is listed under `errors`."""
        errors = self.fields.get("errors")
        return [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []

    @property
    def said(self) -> str:
        """What the server says went wrong, in its own words; outside text."""
        words = (self.fields.get("message"), self.fields.get("msg"), *(error.get("message") for error in self.errors))
        return ": ".join(word for word in words if isinstance(word, str))

    @property
    def is_limited(self) -> bool:
        """Whether the server says "too much", and not "never"; GraphQL says it with status 200."""
        if self.status == 403 and ("retry-after" in self.headers or self.headers.get("x-ratelimit-remaining") == "0"):
            return True
        if self.status == 403 or (self.status == 200 and b'"errors"' in self.body):
            is_typed = any(error.get("type") == "RATE_LIMITED" for error in self.errors)
            return is_typed or "rate limit" in self.said.lower()
        return self.status == 429

    @property
    def resets_at(self) -> int | None:
        """Unix time at which the limit of the hour ends, where that is what was reached."""
        reset = self.headers.get("x-ratelimit-reset", "")
        is_reached = self.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal()
        return int(reset[:10]) if is_reached else None


class Http:
    """Sends requests; one instance per process, since all of them share its patience.

    That is how long all waiting and all failed attempts may take together, and any single attempt.
    """

    def __init__(
        self,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
        patience_seconds: float = 300,
    ) -> None:
        self._sleep, self._clock = sleep, clock
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
            GitHubError: `GITHUB_NOT_PERMITTED`, `GITHUB_RATE_LIMITED`, `GITHUB_NOT_FOUND`, `GITHUB_GONE`,
                `GITHUB_UNREACHABLE`, `GITHUB_TOO_LARGE`, `GITHUB_REFUSED` (anything else). And `GITHUB_ANSWER_LOST`
                where a request that is not repeatable was sent and no usable answer came: what it asks for may or may
                not have happened.
        """
        attempt = 1
        while True:
            began, answer = self._clock(), None
            try:
                answer = self._attempt(request)
                is_taken = answer.status < 300 or (answer.status < 400 and request.redirects)
                if is_taken and not answer.is_limited:
                    return answer
                error, is_worthwhile = refused(answer)
            except (requests.RequestException, HTTPError, OSError, ValueError) as problem:
                # Its text holds the whole address, signature included: only its kind is told.
                error, is_worthwhile = _unanswered(problem, request)
            self._left -= max(0.0, self._clock() - began)
            wait = pause(answer, attempt, self._clock())
            if not is_worthwhile or attempt == MAX_ATTEMPTS or wait > self._left:
                raise error
            self._left -= wait
            self._sleep(wait)
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
            while chunk := response.raw.read1(CHUNK, decode_content=True):
                body.write(chunk)
                if body.tell() > request.max_bytes:
                    message = f"{request.asked} got no answer: it is larger than {request.max_bytes} bytes."
                    raise GitHubError(message, code="GITHUB_TOO_LARGE")
                if time.monotonic() > deadline:
                    raise TimeoutError
        body.seek(0)
        content = b"" if request.into else body.read()
        return Answer(request, response.status_code, response.headers, content)


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


def _unanswered(problem: Exception, request: HttpRequest) -> tuple[GitHubError, bool]:
    """Why an attempt brought no answer, and whether there should be another."""
    _, why, unsent, final = next(row for row in FAILURES if isinstance(problem, row[0]))
    if type(problem) is requests.ConnectionError and re.search("NewConnection|NameResolution", repr(problem)):
        why, unsent = "nothing listens there", True
    if not unsent and not request.is_repeatable:
        return _lost(request, why), False
    hint = None if final else "Check the network and the proxy settings of the runner."
    return GitHubError(f"{request.asked} got no answer: {why}.", hint=hint, code="GITHUB_UNREACHABLE"), not final


def refused(answer: Answer) -> tuple[GitHubError, bool]:
    """What an answer of status 400 or more, or a limited query, means, and whether there should be another attempt."""
    request, status = answer.request, answer.status
    if status in PASSING and not request.is_repeatable:
        return _lost(request, f"HTTP {status}", status), False
    hint: str | None
    if answer.is_limited:
        ends = f"after {datetime.fromtimestamp(answer.resets_at, UTC):%H:%M} UTC" if answer.resets_at else "later"
        code, hint = "GITHUB_RATE_LIMITED", f"GitHub limits how often it may be asked; run the job again {ends}."
    elif status < 400:
        code, hint = "GITHUB_REFUSED", "It is redirected, which is not followed."
    elif status >= 500:
        code, hint = "GITHUB_UNREACHABLE", "GitHub has a problem; run the job again later."
    else:
        code, hint = {
            401: ("GITHUB_NOT_PERMITTED", "The token is missing, wrong or no longer valid."),
            403: ("GITHUB_NOT_PERMITTED", _permission_hint(answer.headers.get("x-accepted-github-permissions", ""))),
            404: ("GITHUB_NOT_FOUND", "It does not exist, or the token may not see it."),
            410: ("GITHUB_GONE", None),
        }.get(status, ("GITHUB_REFUSED", None))
    detail = request.brief(answer.said)
    message = f"{request.asked} was answered with {status}{f' ({detail})' if detail else ''}."
    is_passing = (status in PASSING or answer.is_limited) and QUOTA_WORDS not in answer.said.lower()
    return GitHubError(message, hint=hint, code=code, status=status, detail=detail), is_passing


def _lost(request: HttpRequest, why: str, status: int | None = None) -> GitHubError:
    message = f"{request.asked} may have been carried out, but its answer was lost: {why}."
    return GitHubError(message, code="GITHUB_ANSWER_LOST", status=status)


def _permission_hint(wanted: str) -> str:
    # One of several sets is enough (";"), and each is a list (","). From outside: only names of permissions are shown.
    sets = [re.findall(r"([a-z_]+)=([a-z]+)", part) for part in wanted.split(";")]
    shown = " or ".join(" and ".join(map(": ".join, each)) for each in sets if each)
    if not shown:
        return "The token may not do this; check `permissions` in the workflow."
    return f"Give the job this under `permissions` in the workflow: {shown}."


def pause(answer: Answer | None, attempts: int, now: float) -> float:
    """Seconds before the next attempt, after so many, by Unix time: as the server says, else longer each time."""
    backoff = 2.0 ** (attempts - 1)
    if answer is None:
        return backoff
    # Seconds or a date, or anything, since it is a server's.
    with suppress(InvalidHeader, ValueError, OverflowError):
        return Retry().parse_retry_after(answer.headers.get("retry-after", ""))
    if not answer.is_limited:
        return backoff
    if answer.resets_at is not None:
        # A second more, since clocks differ.
        return max(0.0, answer.resets_at - now) + 1
    return SECONDARY_PAUSE * backoff


# What an error of GraphQL holds in its type, code or message, the gravest first.
GRAPHQL_CODES = {
    "FORBIDDEN": "GITHUB_NOT_PERMITTED",
    "INSUFFICIENT_SCOPES": "GITHUB_NOT_PERMITTED",
    "NOT_FOUND": "GITHUB_NOT_FOUND",
}


class Api:
    """Asks about one repository; a path is relative to it unless it begins with `/`.

    All methods raise `GitHubError` with the codes of `Http.send`. The token is sent to the two addresses only; `mask`
    is given the signatures of others, for `::add-mask::`.
    """

    def __init__(
        self,
        http: Http,
        *,
        base_url: str,
        graphql_url: str,
        token: Secret,
        repository: str,
        mask: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.repository = repository
        self._http, self._mask, self._graphql = http, mask, graphql_url
        self._base, self._token = base_url.rstrip("/"), token

    def get(self, path: str, **params: Any) -> Any:
        """The value at a path; parameters of None are left out."""
        return self._send("GET", path, params=params).json()

    def pages(self, path: str, *, key: str | None = None, limit: int = 10, **params: Any) -> Iterator[Any]:
        """The items of a list, asked for by the hundred as they are needed, up to so many pages.

        The list is under `key` in the answer, or the answer itself.
        """
        url, query = path, {"per_page": 100, **params}
        for _ in range(limit):
            answer = self._send("GET", url, params=query)
            page = answer.json()
            items = page.get(key) if key and isinstance(page, dict) else page
            if not isinstance(items, list):
                raise GitHubError(f"The answer to {answer.request.asked} is no list.", code="GITHUB_REFUSED")
            yield from items
            link = requests.utils.parse_header_links(answer.headers.get("link", ""))
            following = next((each["url"] for each in link if each.get("rel") == "next"), None)
            if following is None:
                return
            # It has the parameters in it.
            url, query = self._own(following), {}

    def post(self, path: str, body: Any) -> Any:
        """Create something; `GITHUB_ANSWER_LOST` where it may or may not have been created."""
        return self._send("POST", path, json=body).json()

    def patch(self, path: str, body: Any) -> Any:
        return self._send("PATCH", path, json=body).json()

    def delete(self, path: str) -> None:
        self._send("DELETE", path)

    def graphql(self, query: str, **variables: Any) -> Any:
        """The `data` of the answer to a query; data beside an error is only a part of it, and counts as none."""
        body = {"query": query, "variables": variables}
        answer = self._http.send(HttpRequest("POST", self._graphql, self._headers(), json=body, repeatable=True))
        reply = answer.json()
        if isinstance(reply, dict) and reply.get("errors") in (None, []):
            return reply.get("data")
        known = ((code, error) for sign, code in GRAPHQL_CODES.items() for error in answer.errors if sign in str(error))
        code, error = next(known, ("GITHUB_REFUSED", next(iter(answer.errors), {})))
        detail = answer.request.brief(str(error.get("message", "")))
        message = f"{answer.request.asked} was refused{f' ({detail})' if detail else ''}."
        raise GitHubError(message, code=code, status=answer.status, detail=detail)

    def download(
        self, artifact_id: int, *, digest: str | None, max_bytes: int, into: io.BufferedIOBase | None = None
    ) -> bytes:
        """The archive of an artifact, whose digest the API tells (`sha256:...`) unless an old client stored it.

        A large one is better written `into` a file, and not returned.

        Raises:
            ArtifactError: `ARTIFACT_EXPIRED`, `ARTIFACT_TOO_LARGE` or `ARTIFACT_INVALID` (other than its digest).
            GitHubError: What else hinders.
        """
        try:
            blob = self._download(f"actions/artifacts/{artifact_id}/zip", max_bytes, into)
        except GitHubError as exc:
            match exc.code:
                case "GITHUB_GONE":
                    raise ArtifactError("The artifact has expired.", code="ARTIFACT_EXPIRED", status=410) from None
                case "GITHUB_TOO_LARGE":
                    message = f"The artifact is too large: {exc.message}"
                    raise ArtifactError(message, code="ARTIFACT_TOO_LARGE") from None
                case _:
                    raise
        needs_one = digest or not self._base.endswith("/api/v3")
        if needs_one and (digest or "").lower() != f"sha256:{hashlib.sha256(blob).hexdigest()}":
            why = "another one" if digest else "not known"
            message = f"Artifact {artifact_id} may not be what was uploaded: its digest is {why}."
            raise ArtifactError(message, code="ARTIFACT_INVALID")
        return blob

    def _download(self, path: str, max_bytes: int, into: io.BufferedIOBase | None, *, again: bool = True) -> bytes:
        answer = self._send("GET", path, follow=False)
        if answer.status not in MOVED or "location" not in answer.headers:
            raise GitHubError(f"{answer.request.asked} led nowhere.", code="GITHUB_REFUSED", status=answer.status)
        signed = answer.headers["location"]
        for signature in signatures(signed):
            self._mask(signature)
        # Without our token: storage refuses requests that carry one, and has no business knowing it.
        request = HttpRequest("GET", signed, timeout=DOWNLOAD_SECONDS, max_bytes=max_bytes, redirects=False, into=into)
        try:
            return self._http.send(request).body
        except GitHubError as exc:
            if exc.status == 403 and again:
                # A signed address lives a minute, and may have died while storage was waited for.
                return self._download(path, max_bytes, into, again=False)
            if exc.status == 403:
                exc.hint = "The signed address that GitHub gave for it was not accepted."
            raise

    def _send(
        self, method: str, path: str, *, follow: bool = True, params: Mapping[str, Any] | None = None, json: Any = None
    ) -> Answer:
        """Follow what moved, like a repository of another name now; our token stays with GitHub's own address."""
        url = path
        if not path.startswith(self._base):
            url = f"{self._base}{path if path.startswith('/') else f'/repos/{self.repository}/{path}'}"
        for _ in range(MAX_HOPS):
            answer = self._http.send(HttpRequest(method, url, self._headers(), params, json))
            # What is found elsewhere (302) is the caller's; what moved for good or for now is asked for there.
            if answer.status not in MOVED or "location" not in answer.headers or (not follow and answer.status == 302):
                return answer
            url, params = self._own(answer.headers["location"]), None
        raise GitHubError(f"{method} {urlsplit(url).path} is redirected in circles.", code="GITHUB_REFUSED")

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._token.reveal()}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }

    def _own(self, link: str) -> str:
        """An address that GitHub points to, if our token may go there."""
        with suppress(ValueError):
            url = urljoin(f"{self._base}/", link)
            if urlsplit(url)[:2] == urlsplit(self._base)[:2]:
                return url
        raise GitHubError("GitHub points to an address that is not its own.", code="GITHUB_REFUSED")


def signatures(url: str) -> tuple[str, ...]:
    """The secret part of a signed address, in the spellings a log may show."""
    found = re.findall(r"[?&](?:sig|token)=([^&#]+)", url)
    return tuple(dict.fromkeys(form for signature in found for form in (unquote(signature), signature)))
