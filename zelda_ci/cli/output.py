"""What commands print, besides what rich lays out in `report.terminal`, and the debug log of what failed.

The log has tracebacks and remarks of Zelda's own modules, without the secrets of this environment.
"""

import logging
import os
import sys
import traceback
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

import click

from zelda_ci.errors import ConfigError, NotStoredError, ZeldaError
from zelda_ci.files import atomic, untrusted
from zelda_ci.imports import one_at_a_time
from zelda_ci.report.text import inert

MAX_LOG_BYTES = 5_000_000
LOGGER = logging.getLogger("zelda_ci")


def echo(text: str = "", *, err: bool = False, nl: bool = True, fg: str | None = None, dim: bool = False) -> None:
    """Print a text for people: names and messages of a tested project cannot act on their terminal."""
    click.secho(inert(text), err=err, nl=nl, fg=fg, dim=dim or None, bold=fg == "red" or None)


def print_error(message: str, hint: str | None = None) -> None:
    """Print what is wrong, and on a line of its own what to do next."""
    echo("error: ", fg="red", nl=False, err=True)
    echo(message, err=True)
    if hint:
        echo(hint, dim=True, err=True)


def echo_raw(text: str, *, nl: bool = True) -> None:
    """Print a text for programs, which read it as it is."""
    click.echo(text, nl=nl)


def typed_path(path: Path) -> str:
    """A path that can be pasted into the shell that Zelda was started from."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def redacted(text: str) -> str:
    """Text without the secrets of this environment."""
    with one_at_a_time("zelda_ci.config.environment"):
        from zelda_ci.config.environment import read_environment  # noqa: PLC0415 - `zelda --help` needs none of it
        from zelda_ci.redact import Redactor  # noqa: PLC0415

    try:
        return Redactor(read_environment(os.environ).secrets)(text)
    except ConfigError:
        # What is wrong with the environment is being told already; the shapes of well-known keys are masked still.
        return Redactor()(text)


class DebugLog(RotatingFileHandler):
    """The user's own file. What cannot be kept disturbs nobody."""

    is_lost = False

    def _open(self) -> TextIOWrapper:
        folder = Path(self.baseFilename).parent
        atomic.make_folder(folder)
        log = open(self.baseFilename, "a", encoding="utf-8", opener=untrusted.open_regular)  # noqa: SIM115
        atomic.hand_over(log.fileno(), folder)
        return log

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
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
