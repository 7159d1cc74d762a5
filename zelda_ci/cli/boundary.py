"""The edge: failures become one clear sentence and an exit code; the details go to a log."""

import io
import logging
import os
import signal
import sys
import traceback
from types import FrameType

import click

from zelda_ci.cli.commands import zelda
from zelda_ci.errors import ZeldaError

INTERRUPTED = 130
OUR_FAILURE = 2


def run(argv: list[str]) -> int:
    """Run one command and return its exit code. Prints failures; raises nothing."""
    signal.signal(signal.SIGTERM, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        # What a terminal's encoding cannot show becomes a question mark instead of an end.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    _send_logs_to_the_debug_log()
    try:
        code = zelda.main(_verbose_first(argv), prog_name="zelda", standalone_mode=False)
    except (KeyboardInterrupt, Exception) as exc:  # noqa: BLE001 - the last line of defence: nobody sees a bare traceback
        return _settle(exc)
    return code if isinstance(code, int) else 0


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

        debug_log.append(self.format(record))


def _settle(exc: BaseException) -> int:
    """Say what happened and choose the exit code."""
    code = OUR_FAILURE
    match exc:
        case click.exceptions.Exit():
            code = exc.exit_code
        case click.ClickException():
            exc.show()
        case click.Abort() | KeyboardInterrupt():
            click.echo("interrupted", err=True)
            code = INTERRUPTED
        case BrokenPipeError():
            # The reader (head, less) has gone: nothing is wrong, and nothing more can be said.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        case ZeldaError():
            _explain(exc)
            code = exc.exit_code
        case _:
            _apologise(exc)
    return code


def _interrupt(_signum: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _explain(exc: ZeldaError) -> None:
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(exc.message, err=True)
    if exc.hint:
        click.secho(exc.hint, dim=True, err=True)
    _log(exc)


def _apologise(exc: BaseException) -> None:
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(f"Zelda failed in a way nobody expected ({type(exc).__name__}: {exc}).", err=True)
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
