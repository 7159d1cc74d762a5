"""HTTP with retries: repeats what may be repeated, and waits as long as the server asks."""

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Self

import requests
from urllib3.exceptions import HTTPError, MaxRetryError, NewConnectionError
from urllib3.util import Retry

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


class GitHubRetry(Retry):
    """urllib3's rules for sending a request again, with GitHub's rate limits.

    `Http` applies them to whole answers. urllib3 itself would apply them before it reads the body; but only the body
    says that a 403 is a rate limit, or a 200 to a query, and a body may break off.
    """

    @classmethod
    def of(cls, request: HttpRequest) -> Self:
        """The rules before the first attempt."""
        return cls(
            total=MAX_ATTEMPTS - 1,
            allowed_methods=REPEATABLE | ({request.method} if request.repeatable else set()),
            status_forcelist=PASSING,
            backoff_factor=1,
            backoff_max=MAX_PAUSE_SECONDS,
        )

    def get_backoff_time(self) -> float:
        """Seconds that double each time; unlike urllib3's, from the first repetition on."""
        return min(self.backoff_max, self.backoff_factor * 2.0 ** (len(self.history) - 1))

    def parse_retry_after(self, retry_after: str) -> float:
        """Seconds; infinite where it makes no sense, since it is a server's and may be anything."""
        try:
            return super().parse_retry_after(retry_after)
        except (HTTPError, ValueError, TypeError, IndexError, OverflowError):
            return math.inf

    def pause(self, answer: ApiResponse | None, now: float) -> float:
        """Seconds before the next attempt.

        Args:
            answer: What came, if anything did.
            now: Unix time, for limits that end at a certain time.
        """
        stated = self.parse_retry_after(answer.headers.get("retry-after", "")) if answer else math.inf
        if math.isfinite(stated):
            return stated
        return self._limit_pause(answer, now) if answer and answer.is_limited else self.get_backoff_time()

    def _limit_pause(self, answer: ApiResponse, now: float) -> float:
        reset = answer.headers.get("x-ratelimit-reset", "")
        if answer.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
            # A second more, since clocks differ.
            return max(0.0, int(reset[:15]) - now) + 1
        if RATE_LIMIT_WORDS in answer.said.lower() or answer.status == 403:
            return self.new(backoff_factor=SECONDARY_PAUSE, backoff_max=math.inf).get_backoff_time()
        return self.new(backoff_factor=LIMIT_PAUSE).get_backoff_time()


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
        self._patience = patience_seconds
        self._left = patience_seconds
        self._session: requests.Session | None = None

    def send(self, request: HttpRequest) -> ApiResponse:
        """An answer with a status below 400, attempted until there is one, or no sense or patience left.

        Raises:
            GitHubError: `GITHUB_NOT_PERMITTED`, `GITHUB_RATE_LIMITED`, `GITHUB_NOT_FOUND`, `GITHUB_GONE`,
                `GITHUB_UNREACHABLE`, `GITHUB_TOO_LARGE`, `GITHUB_REFUSED` (anything else). And `GITHUB_ANSWER_LOST`
                where a request that is not repeatable was sent and no usable answer came: what it asks for may or may
                not have happened.
        """
        retry = GitHubRetry.of(request)
        while True:
            began = self._clock()
            outcome = self._attempt(request)
            if isinstance(outcome, ApiResponse) and outcome.status < 400 and not outcome.is_limited:
                return _unless_moved(outcome, request)
            self._left -= max(0.0, self._clock() - began)
            retry = self._wait(outcome, request, retry)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _attempt(self, request: HttpRequest) -> "ApiResponse | _NoResponse":
        """In a thread that can be left behind: timeouts are for single bytes, of which a server may send many."""
        self._session = session = self._session or _new_session()
        outcomes: list[ApiResponse | _NoResponse] = []
        worker = threading.Thread(target=lambda: outcomes.append(_sent(request, session)), daemon=True)
        worker.start()
        worker.join(self._patience)
        if worker.is_alive():
            self._session = None
            return _NoResponse("it took too long")
        return outcomes[0] if outcomes else _NoResponse("it broke off", final=True)

    def _wait(self, outcome: "ApiResponse | _NoResponse", request: HttpRequest, retry: GitHubRetry) -> GitHubRetry:
        """Wait for the next attempt, or raise what the last one means."""
        answer = outcome if isinstance(outcome, ApiResponse) else None
        error, is_worthwhile = assess(outcome, request, retry)
        if not is_worthwhile:
            raise error
        try:
            retry = retry.increment(request.method, request.asked)
        except MaxRetryError:
            raise error from None
        pause = retry.pause(answer, self._clock())
        if pause > self._left:
            raise error
        self._left -= pause
        self._sleep(pause)
        return retry


@dataclass(frozen=True)
class _NoResponse:
    """What became of an attempt that brought no answer."""

    why: str
    unsent: bool = False
    """Whether it is certain that nobody heard it."""
    final: bool = False
    """Whether another attempt would end the same."""
    code: str = "GITHUB_UNREACHABLE"

    def error(self, request: HttpRequest, *, lost: bool) -> GitHubError:
        if lost and self.code == "GITHUB_UNREACHABLE":
            return _lost(request, self.why)
        hint = "Check the network and the proxy settings of the runner." if not self.final else None
        return GitHubError(f"{request.asked} got no answer: {self.why}.", hint=hint, code=self.code)


def _sent(request: HttpRequest, session: requests.Session) -> "ApiResponse | _NoResponse":
    """One attempt."""
    body = {"json": request.json} if request.data is None else {"data": request.data}
    headers = {"User-Agent": f"zelda-ci/{__version__}", **request.headers}
    options: dict[str, Any] = {"timeout": request.timeouts, "stream": True, "allow_redirects": False, **body}
    try:
        with session.request(
            request.method, request.url, params=request.params, headers=headers, **options
        ) as response:
            return _whole(response, request)
    except requests.RequestException as error:
        # Its text holds the whole address, signature included: only its kind is told.
        return _no_response(error)
    except HTTPError:
        return _NoResponse("the connection broke off")
    except OSError as error:
        return _NoResponse(error.strerror or type(error).__name__)
    except ValueError as error:
        # Such as a Location that is no address, which requests looks at even where it does not follow.
        return _NoResponse(f"it is not proper HTTP ({type(error).__name__})", final=True)


def _whole(response: requests.Response, request: HttpRequest) -> "ApiResponse | _NoResponse":
    body = bytearray()
    for chunk in response.iter_content(CHUNK):
        body += chunk
        if len(body) > request.max_bytes:
            why = f"it is larger than {request.max_bytes} bytes"
            return _NoResponse(why, final=True, code="GITHUB_TOO_LARGE")
    headers = {name.lower(): value for name, value in response.headers.items()}
    return ApiResponse(response.status_code, headers, bytes(body), request.asked)


def assess(outcome: "ApiResponse | _NoResponse", request: HttpRequest, retry: GitHubRetry) -> tuple[GitHubError, bool]:
    """What a failed attempt means, and whether there should be another."""
    if isinstance(outcome, _NoResponse):
        is_harmless = outcome.unsent or request.method in (retry.allowed_methods or ())
        return outcome.error(request, lost=not is_harmless), is_harmless and not outcome.final
    error = refusal(outcome, request.redactor)
    is_passing = retry.is_retry(request.method, outcome.status)
    if outcome.status in PASSING and not is_passing:
        return _lost(request, f"HTTP {outcome.status}", error.status), False
    return error, (is_passing or outcome.is_limited) and QUOTA_WORDS not in outcome.said.lower()


def _unless_moved(answer: ApiResponse, request: HttpRequest) -> ApiResponse:
    if request.redirects or answer.status < 300:
        return answer
    target = brief(answer.target, request.redactor)
    message = f"{answer.asked} is redirected ({answer.status}) to {target}, which is not followed."
    raise GitHubError(message, code="GITHUB_REFUSED", status=answer.status)


def _lost(request: HttpRequest, why: str, status: int | None = None) -> GitHubError:
    message = f"{request.asked} may have been carried out, but its answer was lost: {why}."
    return GitHubError(message, code="GITHUB_ANSWER_LOST", status=status)


def _no_response(error: requests.RequestException) -> _NoResponse:
    if isinstance(error, ValueError):
        return _NoResponse("it cannot be sent like this", unsent=True, final=True)
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    if isinstance(reason, NewConnectionError):
        return _NoResponse("nothing listens there", unsent=True)
    kinds = (
        (requests.ConnectTimeout, _NoResponse("it could not be connected to in time", unsent=True)),
        (requests.exceptions.SSLError, _NoResponse("its certificate is not trusted", unsent=True, final=True)),
        (requests.exceptions.ProxyError, _NoResponse("the proxy of the runner does not let it through")),
        (requests.Timeout, _NoResponse("it timed out")),
    )
    return next(
        (outcome for kind, outcome in kinds if isinstance(error, kind)), _NoResponse("the connection broke off")
    )


def _new_session() -> requests.Session:
    # At debug level it writes down addresses with their signatures.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    session = requests.Session()
    # Without an authenticator of its own, a .netrc of the runner would replace our Authorization header.
    session.auth = lambda prepared: prepared
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return session
