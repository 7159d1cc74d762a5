"""The edge: failures become one clear sentence and an exit code; the details go to a log."""

import logging
import signal
import sys
import traceback
from contextlib import suppress
from types import FrameType
from typing import TextIO

import click

from zelda_ci.cli import streams
from zelda_ci.cli.commands import zelda
from zelda_ci.errors import ZeldaError

INTERRUPTED = 130
OUR_FAILURE = 2
MOST = 255
"""What a process can end with; the system cuts off more, and 256 would be a success."""


def run(argv: list[str]) -> int:
    """Run one command and return its exit code. Prints failures; raises nothing."""
    output = streams.take_over()
    text: TextIO = sys.stdout
    try:
        code = _obey(argv)
    except BaseException as exc:  # noqa: BLE001 - the last line of defence: whatever escapes is no success
        code = _exit_code(exc)
        with suppress(BaseException):  # a terminal, memory or patience may be at its end, and the code stays
            _tell(exc)
    return _delivered(code if 0 <= code <= MOST else OUR_FAILURE, text, output)


def _obey(argv: list[str]) -> int:
    signal.signal(signal.SIGTERM, _interrupt)
    _send_logs_to_the_debug_log()
    code = zelda.main(_verbose_first(argv), prog_name="zelda", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _delivered(code: int, text: TextIO, output: streams.Output | None) -> int:
    """The exit code, unless what was printed did not get to where it was to be kept: nobody would notice otherwise."""
    with suppress(BaseException):
        for stream in (text, sys.stderr):
            stream.flush()
    if output is None or output.failure is None:
        return code
    with suppress(BaseException):
        click.echo(f"error: Standard output could not be written: {output.failure.strerror}.", err=True)
    return max(code, OUR_FAILURE)


def _verbose_first(argv: list[str]) -> list[str]:
    """An option of `zelda` itself, which people type after the command as well."""
    end = argv.index("--") if "--" in argv else len(argv)
    others = [word for word in argv[:end] if word != "--verbose"]
    return ["--verbose"] * (len(others) < end) + others + argv[end:]


def _send_logs_to_the_debug_log() -> None:
    """Without a handler of their own, warnings of Zelda's modules would be printed across the live display."""
    logger = logging.getLogger("zelda_ci")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(_ToDebugLog())


class _ToDebugLog(logging.Handler):
    """Keeps finished lines, traceback included; what cannot be kept disturbs nobody."""

    def emit(self, record: logging.LogRecord) -> None:
        from zelda_ci.cli import debug_log  # noqa: PLC0415

        with suppress(Exception):
            debug_log.append(self.format(record))


def _exit_code(exc: BaseException) -> int:
    """What an exception means: Zelda's failure where nobody foresaw it, even one that asks to end with success."""
    match exc:
        case click.exceptions.Exit():
            return exc.exit_code
        case ZeldaError():
            return exc.exit_code
        case BaseExceptionGroup():
            return max(OUR_FAILURE, *map(_exit_code, exc.exceptions))
        case _ if _is_interruption(exc):
            return INTERRUPTED
        case _:
            return OUR_FAILURE


def _is_interruption(exc: BaseException) -> bool:
    # Of an input that ended somewhere inside, click makes an interruption.
    return isinstance(exc, click.Abort | KeyboardInterrupt) and not isinstance(exc.__cause__, EOFError)


def _tell(exc: BaseException) -> None:
    """Say what happened."""
    match exc:
        case click.exceptions.Exit():
            pass
        case click.ClickException():
            exc.show()
        case ZeldaError():
            _explain(exc)
        case BaseExceptionGroup():
            for inner in exc.exceptions:
                _tell(inner)
        case _ if _is_interruption(exc):
            click.echo("interrupted", err=True)
        case _:
            _apologise(exc)


def _interrupt(_signum: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _explain(exc: ZeldaError) -> None:
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(exc.message, err=True)
    if exc.hint:
        click.secho(exc.hint, dim=True, err=True)
    _log(exc)


def _apologise(exc: BaseException) -> None:
    # click and others turn what they caught into an end of the process: the cause says more.
    cause = exc.__context__ if isinstance(exc, SystemExit) and exc.__context__ else exc
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(f"Zelda failed in a way nobody expected ({type(cause).__name__}: {cause}).", err=True)
    log = _log(exc)
    where = f"The details are in {log}" if log else "Run it again with --verbose to see the details"
    click.secho(f"{where}; a report of them would help.", dim=True, err=True)


def _log(exc: BaseException) -> str | None:
    """Append the traceback to the project's debug log; show it when the user asked to."""
    from zelda_ci.cli import debug_log  # noqa: PLC0415

    text = "".join(traceback.format_exception(exc))
    if "--verbose" in sys.argv:
        click.secho(debug_log.redacted(text), dim=True, err=True)
    return debug_log.append(text)
