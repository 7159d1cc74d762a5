"""The debug log: tracebacks and remarks of Zelda's own modules, without the secrets of this environment."""

import logging
import os
import sys
import traceback
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from zelda_ci.cli.output import echo, print_error, typed_path
from zelda_ci.config import environment
from zelda_ci.errors import ConfigError, NotStoredError, ZeldaError
from zelda_ci.files import ownership, untrusted
from zelda_ci.redact import Redactor, SafeText

MAX_LOG_BYTES = 5_000_000
LOGGER = logging.getLogger("zelda_ci")


def redacted(text: str) -> SafeText:
    """Text without the secrets of this environment."""
    try:
        return Redactor(environment.read_environment(os.environ).secrets())(text)
    except ConfigError:
        # What is wrong with the environment is being told already; the shapes of well-known keys are masked still.
        return Redactor()(text)


class DebugLog(RotatingFileHandler):
    """The user's own file. What cannot be kept disturbs nobody."""

    is_lost = False

    def _open(self) -> TextIOWrapper:
        folder = Path(self.baseFilename).parent
        ownership.make_folder(folder)
        log = open(self.baseFilename, "a", encoding="utf-8", opener=untrusted.open_regular)  # noqa: SIM115
        ownership.hand_over(log.fileno(), folder)
        return log

    def format(self, record: logging.LogRecord) -> str:
        """Lines without secrets, traceback included."""
        return redacted(super().format(record))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Note that there is no room or no permission."""
        self.is_lost = True


def listen() -> None:
    """Take the remarks of all modules: without a handler of their own they would be printed across the display."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    # Without a home nothing can be kept.
    folder = state if state.is_absolute() else Path(os.environ.get("HOME", os.devnull), ".local/state")
    log = DebugLog(folder / "zelda/debug.log", maxBytes=MAX_LOG_BYTES, backupCount=1, delay=True)
    log.setFormatter(logging.Formatter("--- %(asctime)s %(name)s: %(message)s"))
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    LOGGER.handlers = [log]


def explain(problem: ZeldaError) -> None:
    """Tell the user of a failure: what is wrong, what to do next, and where the details are."""
    print_error(problem.message, problem.hint)
    log = keep(problem)
    # Of a mistake in what the user wrote, the message says all there is.
    if log and not isinstance(problem, ConfigError | NotStoredError):
        echo(f"debug log: {log}", dim=True, err=True)


def keep(problem: BaseException) -> str | None:
    """Log the traceback; show it when the user asked to. Where the log is, if it could be kept."""
    if "--verbose" in sys.argv:
        echo(redacted("".join(traceback.format_exception(problem))), dim=True, err=True)
    LOGGER.error("failed", exc_info=problem)
    kept = [Path(log.baseFilename) for log in LOGGER.handlers if isinstance(log, DebugLog) and not log.is_lost]
    return typed_path(kept[0]) if kept else None
