"""Why the API cannot be reached, in words that name no more than was configured; and whether to try again."""

import errno
import os
import socket
import ssl
import time
from collections.abc import Iterator
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx2

# Seconds in which an API that never answered is tried: a wrong address does not become right.
FIRST_TIMEOUT = 5.0

# Seconds in which one that has answered before is tried.
LATER_TIMEOUT = 60.0

MAX_PATH_LENGTH = 200

LASTING_NAME_ERRORS = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


class Outage:
    """Since when the API has been silent, and whether it is worth trying again."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._has_answered = False

    def over(self) -> None:
        """The API has answered."""
        self._since, self._has_answered = None, True

    def may_pass(self, error: httpx2.HTTPError, began: float) -> bool:
        """Whether the next attempt may be luckier than this one, which began at a moment of `time.monotonic`."""
        # From the first failure on, not from this one: otherwise each attempt would start the time anew.
        self._since = began if self._since is None else self._since
        limit = LATER_TIMEOUT if self._has_answered else FIRST_TIMEOUT
        return not any(map(_lasts, _causes(error))) and time.monotonic() - self._since < limit


def reason(error: httpx2.HTTPError, connect_seconds: float) -> str:
    """What went wrong, without the addresses that it went wrong at."""
    if cause := next(filter(None, map(_of_cause, _causes(error))), None):
        return cause
    kinds = {
        httpx2.ConnectTimeout: f"no connection within {connect_seconds:g} s",
        httpx2.TimeoutException: "it fell silent",
        httpx2.RemoteProtocolError: "it hung up without an answer",
    }
    # Some of these exceptions have no words of their own.
    return next((why for kind, why in kinds.items() if isinstance(error, kind)), str(error) or type(error).__name__)


def _of_cause(cause: BaseException) -> str | None:
    match cause:
        case ssl.SSLError():
            why = getattr(cause, "verify_message", "")
            return f"TLS failed: {cause.reason or cause}{f' ({why})' if why else ''}"
        case socket.gaierror():
            return f"its name cannot be resolved ({cause.strerror})"
        case OSError(errno=int(number)) if number in errno.errorcode:
            # Asyncio's own text is about addresses.
            return os.strerror(number).lower()
        case _:
            return None


def shown(url: str) -> str:
    """An address without what may be secret in it: user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        netloc = parts.netloc.rpartition("@")[2]
        return SplitResult(parts.scheme, netloc, parts.path, "", "").geturl()[:MAX_PATH_LENGTH].rstrip("/")
    except ValueError:
        return "an address that is none"


def target(url: str, location: str) -> str:
    try:
        return shown(urljoin(url, location))
    except ValueError:
        return shown(location)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all that led to it, whether or not it was to be shown."""
    visited: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop()
        if cause is None or id(cause) in visited:
            continue
        visited.add(id(cause))
        yield cause
        waiting += [*(cause.exceptions if isinstance(cause, BaseExceptionGroup) else ()), cause.__context__]
        waiting.append(cause.__cause__)


def _lasts(cause: BaseException) -> bool:
    """Whether a cause stays: a certificate, or a name that does not exist."""
    is_unknown = isinstance(cause, socket.gaierror) and cause.errno in LASTING_NAME_ERRORS
    return isinstance(cause, ssl.SSLError) or is_unknown
