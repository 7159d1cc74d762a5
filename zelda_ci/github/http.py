"""HTTP with retries: repeats what may be repeated, waits as long as the server asks, stops at once when cancelled."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.cookiejar import DefaultCookiePolicy
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from zelda_ci import __version__
from zelda_ci.errors import GitHubError
from zelda_ci.github.schemas import QUOTA_WORDS, RATE_LIMIT_WORDS, ApiResponse, brief, refusal
from zelda_ci.imports import one_at_a_time
from zelda_ci.redact import Redactor, Secret

MAX_ATTEMPTS = 5
MAX_PAUSE_SECONDS = 30.0
SECONDARY_PAUSE = 60.0
PASSING = frozenset({408, 500, 502, 503, 504})
"""Answers of a server that may be well again in a moment, whether or not it carried the request out."""


def after_answer(answer: ApiResponse, attempt: int, now: float) -> float | None:
    """Seconds to wait before the next attempt, or None where the answer is final.

    Args:
        answer: What came.
        attempt: How many there were before this one.
        now: Unix time, for limits that end at a certain time.
    """
    if (answer.status < 400 and not answer.is_limited) or QUOTA_WORDS in answer.said.lower():
        return None
    told = _retry_after(answer.headers.get("retry-after", ""), now)
    if answer.is_limited:
        return _limit_pause(answer, attempt, now) if told is None else told
    if answer.status in PASSING:
        return after_silence(attempt) if told is None else told
    return None


def after_silence(attempt: int) -> float:
    """Seconds to wait where nothing came."""
    return min(2.0**attempt, MAX_PAUSE_SECONDS)


def _limit_pause(answer: ApiResponse, attempt: int, now: float) -> float:
    reset = answer.headers.get("x-ratelimit-reset", "")
    if answer.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        # A second more, since clocks differ.
        return max(0.0, int(reset[:15]) - now) + 1
    exponential = SECONDARY_PAUSE * 2.0**attempt
    secondary = RATE_LIMIT_WORDS in answer.said.lower() or answer.status == 403
    return exponential if secondary else min(exponential, after_silence(attempt + 2))


def _retry_after(value: str, now: float) -> float | None:
    if value.isdecimal():
        return float(value[:15])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):  # it is a server's, and may be anything
        return None


if TYPE_CHECKING:
    import requests

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 30.0
MAX_BYTES = 50_000_000
POLL_SECONDS = 0.1
CHUNK = 1 << 16

REPEATABLE = frozenset({"GET", "HEAD", "PUT", "PATCH", "DELETE"})
"""Methods that leave the same behind when they are carried out twice."""


class Http:
    """Sends requests; one instance per process, since its patience is shared by all of them.

    Args:
        sleep: Waits; tests hand in one that does not.
        clock: Unix time.
        patience_seconds: How long all waiting and all failed attempts may take together, and any single attempt.
        stop: Asked many times a second while something is waited for; True ends it with `GITHUB_CANCELLED`.
    """

    def __init__(
        self,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
        patience_seconds: float = 300,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._sleep = sleep
        self._clock = clock
        self._patience = patience_seconds
        self._left = patience_seconds
        self._stop = stop
        self._session: requests.Session | None = None

    def send(  # noqa: PLR0913 - what a request has
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        data: bytes | None = None,
        timeout: float = ANSWER_SECONDS,
        stream_to: IO[bytes] | None = None,
        max_bytes: int = MAX_BYTES,
        repeatable: bool | None = None,
        redirects: bool = True,
    ) -> ApiResponse:
        """An answer with a status below 400; redirects are never followed, but answers to whoever expects them.

        Args:
            method: In capitals.
            url: Never shown with its query, which may hold a signature.
            headers: All of them but User-Agent.
            params: Of the query; values None are left out.
            json: Body as a value.
            data: Body as bytes.
            timeout: Seconds without a byte after which an attempt counts as failed.
            stream_to: Where the body goes instead of into memory; emptied before each attempt.
            max_bytes: Most that the body may have.
            repeatable: Whether a request that may have been carried out is sent again; by default, what the method
                promises (not for POST).
            redirects: Whether one is an answer, or a refusal.

        Raises:
            GitHubError: `GITHUB_NOT_PERMITTED`, `GITHUB_RATE_LIMITED`, `GITHUB_NOT_FOUND`, `GITHUB_GONE`,
                `GITHUB_UNREACHABLE`, `GITHUB_TOO_LARGE`, `GITHUB_CANCELLED`, `GITHUB_REFUSED` (anything else). And
                `GITHUB_ANSWER_LOST` where a request that is not repeatable was sent and no usable answer came: what
                it asks for may or may not have happened.
        """
        body = {"json": json} if data is None else {"data": data}
        arguments = {"headers": {"User-Agent": f"zelda-ci/{__version__}", **headers}, "params": params, **body}
        again = method in REPEATABLE if repeatable is None else repeatable
        return self._persist(_Request(method, url, arguments, timeout, stream_to, max_bytes, again, redirects))

    def _persist(self, request: "_Request") -> ApiResponse:
        """Attempt it until there is an answer, or no sense or patience left."""
        attempt = 0
        while True:
            started = self._clock()
            outcome = self._attempt(request)
            if isinstance(outcome, ApiResponse) and outcome.status < 400 and not outcome.is_limited:
                return self._unless_moved(outcome, request)
            self._left -= max(0.0, self._clock() - started)
            error, pause = self._judge(outcome, request, attempt)
            attempt += 1
            if pause is None or pause > self._left or attempt == MAX_ATTEMPTS:
                raise error
            self._wait(pause)

    def _unless_moved(self, answer: ApiResponse, request: "_Request") -> ApiResponse:
        if request.redirects or answer.status < 300:
            return answer
        to = brief(answer.target, request.redactor)
        message = f"{answer.asked} is redirected ({answer.status}) to {to}, which is not followed."
        raise GitHubError(message, code="GITHUB_REFUSED", status=answer.status)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _judge(
        self, outcome: "ApiResponse | _Silence", request: "_Request", attempt: int
    ) -> tuple[GitHubError, float | None]:
        """What a failed attempt means, and the pause before the next one, if there should be one."""
        if isinstance(outcome, _Silence):
            certain = request.repeatable or outcome.unsent
            error = outcome.error(request, lost=not certain)
            return error, after_silence(attempt) if certain and not outcome.final else None
        error = refusal(outcome, request.redactor)
        if outcome.status in PASSING and not request.repeatable:
            return _lost(request, f"HTTP {outcome.status}", error.status), None
        return error, after_answer(outcome, attempt, self._clock())

    def _wait(self, seconds: float) -> None:
        """Sleep in slices short enough to notice the end of the process."""
        self._left -= seconds
        while seconds > 0:
            self._heed_stop()
            self._sleep(min(seconds, POLL_SECONDS))
            seconds -= POLL_SECONDS
        self._heed_stop()

    def _heed_stop(self) -> None:
        if self._stop():
            raise GitHubError("Stopped while GitHub was being waited for.", code="GITHUB_CANCELLED")

    def _attempt(self, request: "_Request") -> "ApiResponse | _Silence":
        """One attempt, in a thread that can be left behind: a read from a silent server cannot be interrupted."""
        self._heed_stop()
        self._session = session = self._session or _new_session()
        outcome: list[ApiResponse | _Silence] = []
        worker = threading.Thread(target=lambda: outcome.append(request.send_by(session)), daemon=True)
        worker.start()
        deadline = time.monotonic() + self._patience
        while worker.is_alive():
            worker.join(POLL_SECONDS)
            if worker.is_alive() and (self._stop() or time.monotonic() > deadline):
                self._session = None
                self._heed_stop()
                return _Silence("it took too long")
        return outcome[0] if outcome else _Silence("it broke off", final=True)


@dataclass(frozen=True)
class _Silence:
    """An attempt without an answer."""

    why: str
    unsent: bool = False
    """Whether it is certain that nobody heard it."""
    final: bool = False
    """Whether another attempt would end the same."""
    code: str = "GITHUB_UNREACHABLE"

    def error(self, request: "_Request", *, lost: bool) -> GitHubError:
        if lost and self.code == "GITHUB_UNREACHABLE":
            return _lost(request, self.why)
        hint = "Check the network and the proxy settings of the runner." if not self.final else None
        return GitHubError(f"{request.asked} got no answer: {self.why}.", hint=hint, code=self.code)


def _lost(request: "_Request", why: str, status: int | None = None) -> GitHubError:
    message = f"{request.asked} may have been carried out, but its answer was lost: {why}."
    return GitHubError(message, code="GITHUB_ANSWER_LOST", status=status)


@dataclass(frozen=True)
class _Request:
    method: str
    url: str
    arguments: Mapping[str, Any]
    timeout: float
    stream_to: IO[bytes] | None
    max_bytes: int
    repeatable: bool
    redirects: bool

    @property
    def redactor(self) -> Redactor:
        """For what the server says: it may say our own token."""
        authorization = self.arguments["headers"].get("Authorization", "")
        return Redactor([Secret(authorization.rpartition(" ")[2])])

    @property
    def limits(self) -> tuple[float, float]:
        """Seconds to connect, and to wait for a byte; a body must be sent within the former, however large it is."""
        large = len(self.arguments.get("data") or b"") > CHUNK
        return self.timeout if large else min(CONNECT_SECONDS, self.timeout), self.timeout

    @property
    def asked(self) -> str:
        try:
            parts = urlsplit(self.url)
        except ValueError:
            return f"{self.method} of an impossible address"
        return f"{self.method} {parts.hostname}{parts.path[:100]}"

    def send_by(self, session: "requests.Session") -> ApiResponse | _Silence:
        with one_at_a_time("requests"):
            import requests  # noqa: PLC0415 - costs a tenth of a second, which `zelda --help` need not pay
            from urllib3.exceptions import HTTPError  # noqa: PLC0415 - see above

        try:
            with session.request(
                self.method, self.url, timeout=self.limits, stream=True, allow_redirects=False, **self.arguments
            ) as response:
                return self._read(response)
        except requests.RequestException as exc:
            # Its text holds the whole address, signature included: only its kind is told.
            return _silence(exc)
        except HTTPError:
            return _Silence("the connection broke off")
        except OSError as exc:
            return _Silence(exc.strerror or type(exc).__name__, final=self.stream_to is not None)
        except ValueError as exc:
            # Such as a Location that is no address, which requests looks at even where it does not follow.
            return _Silence(f"it is not proper HTTP ({type(exc).__name__})", final=True)

    def _read(self, response: "requests.Response") -> ApiResponse | _Silence:
        kept = bytearray()
        size = 0
        # A refusal is worth reading, but not worth much memory, and no part of the file.
        target = self.stream_to if response.status_code < 300 else None
        if target:
            target.seek(0)
            target.truncate()
        for chunk in response.iter_content(CHUNK):
            size += len(chunk)
            if size > self.max_bytes:
                return _Silence(f"it is larger than {self.max_bytes} bytes", final=True, code="GITHUB_TOO_LARGE")
            kept += b"" if target else chunk
            if target:
                target.write(chunk)
        headers = {name.lower(): value for name, value in response.headers.items()}
        return ApiResponse(response.status_code, headers, bytes(kept), self.asked)


def _silence(exc: "requests.RequestException") -> _Silence:
    with one_at_a_time("requests"):
        import requests  # noqa: PLC0415 - see above
        from urllib3.exceptions import NewConnectionError  # noqa: PLC0415 - see above

    if isinstance(exc, ValueError):
        return _Silence("it cannot be sent like this", unsent=True, final=True)
    reason = getattr(exc.args[0] if exc.args else None, "reason", None)
    if isinstance(reason, NewConnectionError):
        return _Silence("nothing listens there", unsent=True)
    kinds = (
        (requests.ConnectTimeout, _Silence("it could not be connected to in time", unsent=True)),
        (requests.exceptions.SSLError, _Silence("its certificate is not trusted", unsent=True, final=True)),
        (requests.exceptions.ProxyError, _Silence("the proxy of the runner does not let it through")),
        (requests.Timeout, _Silence("it timed out")),
    )
    found = (silence for kind, silence in kinds if isinstance(exc, kind))
    return next(found, _Silence("the connection broke off"))


def _new_session() -> "requests.Session":
    with one_at_a_time("requests"):
        import requests  # noqa: PLC0415 - see above

    # At debug level it writes down addresses with their signatures.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    session = requests.Session()
    # Without an authenticator of its own, a .netrc of the runner would replace our Authorization header.
    session.auth = lambda prepared: prepared
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return session
