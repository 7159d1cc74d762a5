"""The `zelda` command; also `python -m zelda_ci`."""

import gc
import os
import sys

from zelda_ci import __version__

ALLOCATIONS = 100_000
"""Between two collections of garbage: the SDKs are half a million objects that stay, and Python's own 700 would have
them looked through again and again, for a quarter of the time that their import takes."""


def main() -> int:
    """Run the command line; returns the exit code, or ends the process with it."""
    # Asked for by scripts and prompts all the time: answered before anything else is imported.
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"zelda {__version__}")  # noqa: T201
        return 0
    gc.set_threshold(ALLOCATIONS)
    from zelda_ci.cli import boundary  # noqa: PLC0415

    code = boundary.run(sys.argv[1:])
    _flush()
    # Taking a thousand modules apart costs a tenth of a second, and nobody sees it.
    os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as exc:
            # Of the two, a reader that has gone is no failure; a full disk under a redirected output is.
            if not isinstance(exc, BrokenPipeError):
                os._exit(2)


if __name__ == "__main__":
    sys.exit(main())
