"""Where a command meets the world: what it prints, and how it ends: failures become a sentence and an exit code.

The debug log has tracebacks and remarks of Zelda's own modules, without the secrets of this environment.
"""

import errno
import io
import logging
import os
import select
import signal
import sys
import traceback
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, TextIO

import click
from click.shell_completion import shell_complete

from zelda_ci.cli.commands import zelda
from zelda_ci.errors import EXIT_INTERRUPTED, ConfigError, ZeldaError, explanations
from zelda_ci.files import atomic, untrusted
from zelda_ci.imports import one_at_a_time
from zelda_ci.report.text import inert

LOGGER = logging.getLogger("zelda_ci")
# What writing means where the reader (head, less) has gone: nothing is wrong, and nothing more can be said.
LEFT = {errno.EPIPE, errno.ECONNRESET}
OUR_FAILURE = 2
# What a process can end with; the system cuts off more, and 256 would be a success.
MAX_EXIT_CODE = 255


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

    def _open(self) -> io.TextIOWrapper:
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
    log = DebugLog(folder / "zelda/debug.log", maxBytes=5_000_000, backupCount=1, delay=True)
    log.setFormatter(logging.Formatter("--- %(asctime)s %(name)s: %(message)s"))
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    LOGGER.handlers = [log]


def explain(problem: ZeldaError) -> None:
    """Tell the user of a failure: what is wrong, what to do next, and where the details are."""
    print_error(problem.message, problem.hint)
    log = keep(problem)
    # Elsewhere the message says all there is.
    if log and "debug log" in explanations()[problem.code].action:
        echo(f"debug log: {log}", dim=True, err=True)


def keep(problem: BaseException) -> str | None:
    """Log the traceback; show it when the user asked to. Where the log is, if it could be kept."""
    if "--verbose" in sys.argv:
        echo(redacted("".join(traceback.format_exception(problem))), dim=True, err=True)
    LOGGER.error("failed", exc_info=problem)
    kept = [Path(log.baseFilename) for log in LOGGER.handlers if isinstance(log, DebugLog) and not log.is_lost]
    return typed_path(kept[0]) if kept else None


class CommandOutput(io.FileIO):
    """A descriptor that takes everything: what can no longer be written is dropped, and the first failure kept.

    Writing must not raise: between any two lines a command may hold what was paid for, and its exit code is the one of
    its work. So a BrokenPipeError that anybody sees is of another pipe or socket.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        self.failure: OSError | None = None  # why nothing is written any more, but for a reader who has gone
        self._silent = False

    def write(self, data: Any) -> int:
        """Write, waiting where a program that shares the descriptor made it return at once."""
        size = memoryview(data).nbytes
        if self._silent:
            return size
        try:
            while (written := super().write(data)) is None:
                select.select([], [self], [])
        except OSError as exc:
            self._silent = True
            self.failure = None if exc.errno in LEFT else exc
            return size
        return written


def take_over() -> CommandOutput | None:
    """Put such streams in the place of Python's own; returns standard output's, absent where another stands there."""
    # A closed one would become the next file that is opened, and what is printed would be written there.
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(opened)
    outputs = {}
    for number, name in ((1, "stdout"), (2, "stderr")):
        if (stream := getattr(sys, name)) is getattr(sys, f"__{name}__"):
            outputs[number] = CommandOutput(number)
            # Python has no stream where the descriptor was closed. What a terminal's encoding cannot show becomes a
            # question mark instead of an end.
            buffer, encoding = io.BufferedWriter(outputs[number]), stream.encoding if stream else "utf-8"
            setattr(sys, name, io.TextIOWrapper(buffer, encoding, errors="replace", line_buffering=True))
    return outputs.get(1)


def run(argv: list[str]) -> int:
    """Run one command and return its exit code. Prints failures; raises nothing."""
    output = take_over()
    text: TextIO = sys.stdout
    try:
        code = _run_command(argv)
    except BaseException as exc:  # noqa: BLE001 - the last line of defence: whatever escapes is no success
        code = _exit_code(exc)
        with suppress(BaseException):  # a terminal, memory or patience may be at its end, and the code stays
            _print_failure(exc)
    code = code if 0 <= code <= MAX_EXIT_CODE else OUR_FAILURE
    with suppress(BaseException):
        for stream in (text, sys.stderr):
            stream.flush()
    if output is None or output.failure is None:
        return code
    # What was printed did not get to where it was to be kept, and nobody would notice otherwise.
    with suppress(BaseException):
        print_error(f"Standard output could not be written: {output.failure.strerror}.")
    return max(code, OUR_FAILURE)


def _run_command(argv: list[str]) -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        # What nohup has set to be ignored stays so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    listen()
    if instruction := os.environ.get("_ZELDA_COMPLETE"):
        return shell_complete(zelda, {}, "zelda", "_ZELDA_COMPLETE", instruction)
    # An option of `zelda` itself, which people type after the command as well.
    end = argv.index("--") if "--" in argv else len(argv)
    others = [word for word in argv[:end] if word != "--verbose"]
    argv = ["--verbose"] * (len(others) < end) + others + argv[end:]
    code = zelda.main(argv, prog_name="zelda", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _exit_code(exc: BaseException) -> int:
    """What an exception means: Zelda's failure where nobody foresaw it, even one that asks to end with success."""
    match exc:
        case click.exceptions.Exit() | ZeldaError():
            return exc.exit_code
        case BaseExceptionGroup():
            return max(OUR_FAILURE, *map(_exit_code, exc.exceptions))
        case _:
            return EXIT_INTERRUPTED if _is_interruption(exc) else OUR_FAILURE


def _is_interruption(exc: BaseException) -> bool:
    # Of an input that ended somewhere inside, click makes an interruption.
    return isinstance(exc, click.Abort | KeyboardInterrupt) and not isinstance(exc.__cause__, EOFError)


def _print_failure(exc: BaseException) -> None:
    match exc:
        case click.exceptions.Exit():
            pass
        case click.ClickException():
            exc.show(shown := io.StringIO())
            echo(shown.getvalue(), nl=False, err=True)
        case ZeldaError():
            explain(exc)
        case _ if _is_interruption(exc):
            echo("interrupted", err=True)
        case _:
            # click and others turn what they caught into an end of the process: the cause says more.
            cause = exc.__context__ if isinstance(exc, SystemExit) and exc.__context__ else exc
            log = keep(exc)
            where = f"The details are in {log}" if log else "Run it again with --verbose to see the details"
            message = f"Zelda failed unexpectedly ({type(cause).__name__}: {cause})."
            print_error(message, f"{where}; a report of them would help.")
