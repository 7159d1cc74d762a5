"""Where a command ends: failures become one sentence and an exit code, and details go to a log."""

import errno
import io
import os
import select
import signal
import sys
from contextlib import suppress
from typing import Any, TextIO

import click
from click.shell_completion import shell_complete

from zelda_ci.cli.commands import zelda
from zelda_ci.cli.output import echo, explain, keep, listen, print_error
from zelda_ci.errors import EXIT_INTERRUPTED, ZeldaError

# What writing means where the reader (head, less) has gone: nothing is wrong, and nothing more can be said.
LEFT = {errno.EPIPE, errno.ECONNRESET}


class CommandOutput(io.FileIO):
    """A descriptor that takes everything: what can no longer be written is dropped, and the first failure kept.

    Writing must not raise: between any two lines a command may hold what was paid for, and its exit code is the one of
    its work. So a BrokenPipeError that anybody sees is of another pipe or socket.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        self.failure: OSError | None = None
        """Why nothing is written any more; absent also where it is only that nobody reads."""
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


OUR_FAILURE = 2
# What a process can end with; the system cuts off more, and 256 would be a success.
MAX_EXIT_CODE = 255


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
