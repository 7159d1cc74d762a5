"""Sends requests to GitHub: again where that can help, and after as long as GitHub asks for."""

import logging
import math
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from urllib3.exceptions import HTTPError

from zelda_ci import __version__
from zelda_ci.errors import GitHubError
from zelda_ci.github.schemas import QUOTA_WORDS, RATE_LIMIT_WORDS, ApiResponse, HttpRequest, brief, refusal

MAX_ATTEMPTS = 5
MAX_PAUSE_SECONDS = 30.0
LIMIT_PAUSE = 4.0
# GitHub asks for a minute at least where it names no time.
SECONDARY_PAUSE = 60.0

# Answers of a server that may be well again in a moment, whether or not it carried the request out.
PASSING = frozenset({408, 500, 502, 503, 504})

# Methods that leave the same behind when they are carried out twice.
REPEATABLE = frozenset({"GET", "HEAD", "PUT", "PATCH", "DELETE"})

CHUNK = 1 << 16


class NoAnswerError(Exception):
    """An attempt brought no answer.

    Attributes:
        why: In words.
        unsent: Whether it is certain that the server never had the request.
        final: Whether another attempt would end the same.
        code: Of the error that users see.
    """

    def __init__(
        self, why: str, *, unsent: bool = False, final: bool = False, code: str = "GITHUB_UNREACHABLE"
    ) -> None:
        super().__init__(why)
        self.why, self.unsent, self.final, self.code = why, unsent, final, code


class Http:
    """Sends requests; one instance per process, since its patience is shared by all of them.

    Args:
        sleep: Waits; tests hand in one that does not.
        clock: Unix time.
        patience_seconds: How long all waiting and all failed attempts may take together, and any single attempt.
    """

    def __init__(
        self,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
        patience_seconds: float = 300,
    ) -> None:
        self._sleep = sleep
        self._clock = clock
        self._patience = self._left = patience_seconds
        self._session: requests.Session | None = None

    def send(self, request: HttpRequest) -> ApiResponse:
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
                if answer.status < 400 and not answer.is_limited:
                    return _unless_moved(answer, request)
                error, is_worthwhile = refused(answer, request)
            except NoAnswerError as problem:
                error, is_worthwhile = _unanswered(problem, request)
            self._left -= max(0.0, self._clock() - began)
            wait = pause(answer, attempt, self._clock())
            if not is_worthwhile or attempt == MAX_ATTEMPTS or wait > self._left:
                raise error
            self._left -= wait
            self._sleep(wait)
            attempt += 1

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _attempt(self, request: HttpRequest) -> ApiResponse:
        self._session = session = self._session or _new_session()
        body: dict[str, Any] = {"json": request.json} if request.data is None else {"data": request.data}
        headers = {"User-Agent": f"zelda-ci/{__version__}", **request.headers}
        timeouts = tuple(min(seconds, self._patience) for seconds in request.timeouts)
        options: dict[str, Any] = {"timeout": timeouts, "stream": True, "allow_redirects": False, **body}
        deadline = time.monotonic() + self._patience
        try:
            with session.request(
                request.method, request.url, params=request.params, headers=headers, **options
            ) as response:
                content = _content(response, request.max_bytes, deadline)
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            # Its text holds the whole address, signature included: only its kind is told.
            raise _kind(error) from None
        named = {name.lower(): value for name, value in response.headers.items()}
        return ApiResponse(response.status_code, named, content, request.asked)


def _content(response: requests.Response, max_bytes: int, deadline: float) -> bytes:
    """The body, read as it comes: timeouts are for single bytes, of which a server may send many."""
    body = bytearray()
    while chunk := response.raw.read1(CHUNK, decode_content=True):
        body += chunk
        if len(body) > max_bytes:
            raise NoAnswerError(f"it is larger than {max_bytes} bytes", final=True, code="GITHUB_TOO_LARGE")
        if time.monotonic() > deadline:
            raise NoAnswerError("it took too long")
    return bytes(body)


def _kind(error: Exception) -> NoAnswerError:
    match error:
        case requests.exceptions.SSLError():
            return NoAnswerError("its certificate is not trusted", unsent=True, final=True)
        case requests.exceptions.ProxyError():
            return NoAnswerError("the proxy of the runner does not let it through")
        case requests.ConnectTimeout():
            return NoAnswerError("it could not be connected to in time", unsent=True)
        case requests.Timeout():
            return NoAnswerError("it timed out")
        case requests.ConnectionError() if "NewConnectionError" in repr(error) or "NameResolution" in repr(error):
            return NoAnswerError("nothing listens there", unsent=True)
        case requests.RequestException() if isinstance(error, ValueError):
            return NoAnswerError("it cannot be sent like this", unsent=True, final=True)
        case ValueError():
            # Such as a Location that is no address, which requests looks at even where it does not follow.
            return NoAnswerError(f"it is not proper HTTP ({type(error).__name__})", final=True)
        case _:
            return NoAnswerError("the connection broke off")


def pause(answer: ApiResponse | None, attempts: int, now: float) -> float:
    """Seconds before the next attempt: as the server says, else longer each time.

    Args:
        answer: What the last attempt brought, if anything.
        attempts: How many there were.
        now: Unix time, for limits that end at a certain time.
    """
    backoff = 2.0 ** (attempts - 1)
    if answer is None:
        return min(MAX_PAUSE_SECONDS, backoff)
    stated = _seconds_in(answer.headers.get("retry-after", ""), now)
    if stated is not None or not answer.is_limited:
        return min(MAX_PAUSE_SECONDS, backoff) if stated is None else stated
    reset = answer.headers.get("x-ratelimit-reset", "")
    if answer.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        # A second more, since clocks differ.
        return max(0.0, int(reset[:15]) - now) + 1
    if answer.status == 403 or RATE_LIMIT_WORDS in answer.said.lower():
        return SECONDARY_PAUSE * backoff
    return min(MAX_PAUSE_SECONDS, LIMIT_PAUSE * backoff)


def _seconds_in(retry_after: str, now: float) -> float | None:
    """Seconds or a date; absent where it is neither, since it is a server's and may be anything."""
    is_number = retry_after.isascii() and retry_after.isdecimal() and len(retry_after) < 16
    try:
        seconds = float(retry_after) if is_number else parsedate_to_datetime(retry_after).timestamp() - now
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _is_repeatable(request: HttpRequest) -> bool:
    return request.repeatable or request.method in REPEATABLE


def refused(answer: ApiResponse, request: HttpRequest) -> tuple[GitHubError, bool]:
    """What an answer of status 400 or more means, and whether there should be another attempt."""
    error = refusal(answer, request.redactor)
    if answer.status in PASSING and not _is_repeatable(request):
        return _lost(request, f"HTTP {answer.status}", error.status), False
    return error, (answer.status in PASSING or answer.is_limited) and QUOTA_WORDS not in answer.said.lower()


def _unanswered(problem: NoAnswerError, request: HttpRequest) -> tuple[GitHubError, bool]:
    is_harmless = problem.unsent or _is_repeatable(request)
    if not is_harmless and problem.code == "GITHUB_UNREACHABLE":
        return _lost(request, problem.why), False
    hint = None if problem.final else "Check the network and the proxy settings of the runner."
    error = GitHubError(f"{request.asked} got no answer: {problem.why}.", hint=hint, code=problem.code)
    return error, is_harmless and not problem.final


def _unless_moved(answer: ApiResponse, request: HttpRequest) -> ApiResponse:
    if request.redirects or answer.status < 300:
        return answer
    target = brief(answer.target, request.redactor)
    message = f"{answer.asked} is redirected ({answer.status}) to {target}, which is not followed."
    raise GitHubError(message, code="GITHUB_REFUSED", status=answer.status)


def _lost(request: HttpRequest, why: str, status: int | None = None) -> GitHubError:
    message = f"{request.asked} may have been carried out, but its answer was lost: {why}."
    return GitHubError(message, code="GITHUB_ANSWER_LOST", status=status)


def _new_session() -> requests.Session:
    # At debug level it writes down addresses with their signatures.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    session = requests.Session()
    # Without an authenticator of its own, a .netrc of the runner would replace our Authorization header.
    session.auth = lambda prepared: prepared
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return session
