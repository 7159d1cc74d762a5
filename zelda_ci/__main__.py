"""The `zelda` command; also `python -m zelda_ci`."""

import sys

from zelda_ci import __version__


def main() -> int:
    """Run the command line and return the exit code."""
    # Asked for by scripts and prompts all the time: answered before anything else is imported.
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"zelda {__version__}")  # noqa: T201
        return 0
    from zelda_ci.cli import boundary  # noqa: PLC0415

    return boundary.run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
