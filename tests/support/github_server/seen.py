"""A request that came."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Seen:
    """A request that came, and the status it was answered with (0 where the connection was broken off)."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """With lower-case names."""
    body: bytes
    status: int

    @property
    def asked(self) -> str:
        return f"{self.method} {self.path}"
