"""How large a request, an answer or a recording may be, and how long each may take."""

from dataclasses import dataclass

MAX_RECORDING_BYTES = 256 << 20

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Bytes and seconds; the defaults are far beyond what Claude Code and the API do."""

    request_bytes: int = 64 * MIB
    """Twice what the API takes."""
    answer_bytes: int = 64 * MIB
    """Three times the longest stream: 128,000 tokens, each in an event of its own."""
    error_bytes: int = MIB
    request_seconds: float = 120.0
    """For a request to arrive in full, from a process on the same machine."""
    connect_seconds: float = 10.0
    head_seconds: float = 120.0
    """For the head of an answer that streams; Claude Code waits for longer, because it counts what we wait."""
    silence_seconds: float = 600.0
    """Without a byte from the API; Claude Code's own patience is shorter."""
    answer_seconds: float = 3600.0
    """For an answer to arrive in full: 128,000 tokens at 40 a second are 53 minutes."""


def in_mib(count: int) -> str:
    """A number of bytes for people."""
    return f"{count // MIB} MiB" if count >= MIB and count % MIB == 0 else f"{count} bytes"
