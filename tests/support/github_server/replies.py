"""What a part of the server answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DOCS = "https://docs.github.com/rest"
NOT_ACCESSIBLE = "Resource not accessible by integration"


@dataclass(frozen=True)
class Reply:
    """An answer; a body that is no bytes travels as JSON, None as nothing."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class RefusedError(Exception):
    """An answer of status 400 or more, from anywhere in the depths."""

    def __init__(self, status: int, message: str, *, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(message)
        body = {"message": message, "documentation_url": DOCS, "status": str(status), **more}
        self.reply = Reply(status, body, headers or {})


def missing_permission(accepted: str) -> RefusedError:
    """What GitHub says to a token that may not."""
    return RefusedError(403, NOT_ACCESSIBLE, headers={"x-accepted-github-permissions": accepted})


def not_found() -> RefusedError:
    """Nothing there, or nothing that the token may see."""
    return RefusedError(404, "Not Found")


def unprocessable(resource: str, message: str) -> RefusedError:
    """A value that GitHub does not take."""
    error = {"resource": resource, "code": "unprocessable", "field": "data", "message": message}
    return RefusedError(422, "Validation Failed", errors=[error])
