"""A request, on its arrival and in memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote


@dataclass(frozen=True)
class Received:
    """A request as it came; `headers` have lower-case names, and `prefix` is where the REST API begins."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    prefix: str

    @property
    def path(self) -> str:
        """Without the query, and of the REST API as GitHub documents it; percent-encoding is left as it is."""
        return self.target.partition("?")[0].removeprefix(self.prefix) or "/"

    @property
    def queries(self) -> Mapping[str, list[str]]:
        return parse_qs(self.target.partition("?")[2], keep_blank_values=True)

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in self.queries.items()}

    @property
    def asked(self) -> str:
        return f"{self.method} {unquote(self.path)}"


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
