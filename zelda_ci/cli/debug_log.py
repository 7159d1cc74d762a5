"""The debug log: tracebacks and remarks of Zelda's own modules, without the secrets of this environment."""

import logging
import os
import sys
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from zelda_ci.cli.output import echo, typed_path
from zelda_ci.config import environment
from zelda_ci.errors import ConfigError, NotStoredError, ZeldaError
from zelda_ci.files import ownership, untrusted
from zelda_ci.imports import one_at_a_time
from zelda_ci.redact import Redactor, SafeText

MAX_LOG_BYTES = 5_000_000
NAME = "debug.log"
# The folder that the command was given; `options.project` sets it.
project = Path()


def redacted(text: str) -> SafeText:
    """Text without the secrets of this environment."""
    try:
        return Redactor(environment.read_environment(os.environ).secrets())(text)
    except ConfigError:
        # What is wrong with the environment is being told already; the shapes of well-known keys are masked still.
        return Redactor()(text)


def explain(problem: ZeldaError) -> None:
    """Tell the user of a failure: what is wrong, what to do next, and where the details are."""
    echo("error: ", fg="red", nl=False, err=True)
    echo(problem.message, err=True)
    if problem.hint:
        echo(problem.hint, dim=True, err=True)
    # Of a mistake in what the user wrote, the message says all there is.
    is_mistake = isinstance(problem, ConfigError | NotStoredError)
    log = keep(problem, anywhere=not is_mistake)
    if log and not is_mistake:
        echo(f"debug log: {log}", dim=True, err=True)


def keep(problem: BaseException, *, anywhere: bool = True) -> str | None:
    """Append the traceback to the log; show it when the user asked to. Where the log is, if it could be kept."""
    text = "".join(traceback.format_exception(problem))
    if "--verbose" in sys.argv:
        echo(redacted(text), dim=True, err=True)
    return append(text, anywhere=anywhere)


def append(text: str, *, anywhere: bool = True) -> str | None:
    """Add an entry; the log's path as the user would type it, or None where nothing was written.

    Where there are no results of a project that it could lie with, it goes into the user's own folder, or nowhere.
    """
    try:
        folder = _folder(Path.cwd() / project, anywhere=anywhere)
        if folder is None:
            return None
        path = folder / NAME
        untrusted.refuse_links(folder)
        if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
            path.replace(folder / f"{NAME}.1")
        with open(path, "a", encoding="utf-8", opener=untrusted.open_regular) as log:
            ownership.hand_over(log.fileno(), folder)
            log.write(f"--- {datetime.now(UTC).isoformat(timespec='seconds')}\n{redacted(text)}\n")
        return typed_path(path)
    except (OSError, RuntimeError):  # the latter of a user without a home
        return None


@cache
def _folder(start: Path, *, anywhere: bool) -> Path | None:
    """Where the log lies. A project in which nothing was run yet gets no folder for it."""
    with one_at_a_time("zelda_ci.config.project"):
        from zelda_ci.config.files import DEFAULT_RESULTS_DIR, find_root  # noqa: PLC0415
        from zelda_ci.config.project import results_folder  # noqa: PLC0415

    try:
        results = results_folder(start)
    except (ConfigError, OSError):  # the configuration is broken
        results = find_root(start) / DEFAULT_RESULTS_DIR
    if results.is_dir() or not anywhere:
        return results if results.is_dir() else None
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        # A home that is missing is not made.
        state = Path.home().resolve(strict=True) / ".local" / "state"
    own = state / "zelda"
    own.mkdir(parents=True, exist_ok=True)
    return own


class _ToDebugLog(logging.Handler):
    """Keeps finished lines, traceback included; what cannot be kept disturbs nobody."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            append(self.format(record), anywhere=False)


def listen() -> None:
    """Take the remarks of all modules: without a handler of their own they would be printed across the display."""
    logger = logging.getLogger("zelda_ci")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(_ToDebugLog())
