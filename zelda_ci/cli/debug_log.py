"""`.zelda/debug.log`: what a failure looked like inside, for those who help."""

import os
from datetime import UTC, datetime
from pathlib import Path

from zelda_ci import ownership
from zelda_ci.config import settings
from zelda_ci.errors import ConfigError
from zelda_ci.redact import Redactor, SafeText

MOST_BYTES = 5_000_000


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)


def redacted(text: str) -> SafeText:
    """Text without the secrets of this environment."""
    try:
        return Redactor(settings.read(os.environ).secrets())(text)
    except ConfigError:
        # What is wrong with the environment is being told already; the shapes of well-known keys are masked still.
        return Redactor()(text)


def append(text: str) -> str | None:
    """Add an entry to the log of the project in the current folder; its path, or None where there is no such folder."""
    folder = Path(".zelda")
    if not folder.is_dir():
        return None
    path = folder / "debug.log"
    try:
        if path.exists() and path.stat().st_size > MOST_BYTES:
            path.replace(folder / "debug.log.1")
        with open(path, "a", encoding="utf-8", opener=_no_link) as log:
            ownership.hand_over(log.fileno(), folder)
            log.write(f"--- {datetime.now(UTC).isoformat(timespec='seconds')}\n{redacted(text)}\n")
    except OSError:
        return None
    return str(path)
