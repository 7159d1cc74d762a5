"""The `zelda` command; also `python -m zelda_ci`."""

# Nothing else may be imported before `_leave_the_tree`: these are there before any folder is searched.
import atexit
import gc
import os
import sys

from zelda_ci import __version__

# Between two collections of garbage: Python's own 700 would have what a run keeps looked through again and again.
ALLOCATIONS = 100_000


def main() -> int:
    """Run the command line; returns the exit code, or ends the process with it."""
    if sys.argv[1:2] == ["help"]:
        sys.argv[1:] = [*sys.argv[2:], "--help"]
    # Asked for by scripts and people all the time: answered before anything else is imported.
    if answer := _stored_answer(sys.argv[1:]):
        return _say(answer)
    gc.set_threshold(ALLOCATIONS)
    # What is imported stays, so it is never looked through: a quarter of the time that its import takes.
    gc.disable()
    code = 2
    try:
        _leave_the_tree()
        from zelda_ci.cli import boundary  # noqa: PLC0415

        code = boundary.run(sys.argv[1:])
    except KeyboardInterrupt:  # before the edge was there to hear it
        code = 130
    except BaseException as exc:  # noqa: BLE001 - an installation that is broken ends like any other failure
        os.write(2, f"error: Zelda could not start ({type(exc).__name__}: {exc}).\n".encode("utf-8", "replace"))
    finally:
        try:
            # Removes the folders that a command needs to its end.
            atexit._run_exitfuncs()  # noqa: SLF001 - as multiprocessing does it
        finally:
            # Taking a thousand modules apart costs a tenth of a second, and nobody sees it.
            os._exit(code)


def _leave_the_tree() -> None:
    """Import no module, and start no program, from where the code under test may lie: this process holds the key.

    That is the working folder of `python -m`, what PYTHONPATH names in it or above it, and a relative folder in PATH.
    """
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - no import of pathlib yet
    try:
        here = os.path.realpath(os.getcwd())  # noqa: PTH109 - as above
    except OSError:  # it has been removed
        here = os.sep
    given = [] if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", "").split(os.pathsep)
    places = {os.path.realpath(os.path.join(here, entry)) for entry in given}  # noqa: PTH118 - as above
    # Everything lies below the top, which is nobody's project.
    tree = {place for place in places if os.path.commonpath([place, here]) in {place, here} - {os.sep}}
    tree.update([] if sys.flags.safe_path else [here])
    sys.path[:] = [entry for entry in sys.path if entry and (entry == own or os.path.realpath(entry) not in tree)]
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(filter(os.path.isabs, folders)) or os.defpath


def _stored_answer(words: list[str]) -> str | None:
    """What `--version` and `--help` print; the pages are click's in 80 columns, which `make reference` writes."""
    match words:
        case ["--version" | "-V"]:
            return f"zelda {__version__}\n"
        case ["--help" | "-h"]:
            page = "zelda"
        case [page, "--help" | "-h"] if page.isalpha():
            pass
        case _:
            return None
    try:
        with open(os.path.join(os.path.dirname(__file__), "cli", "help", f"{page}.txt")) as file:  # noqa: PTH118, PTH120, PTH123 - as below
            return file.read()
    except OSError:  # no such command
        return None


def _say(text: str) -> int:
    try:
        print(text, end="", flush=True)  # noqa: T201
    except OSError as exc:
        # Nothing of it may be left, or Python would try once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        # A reader that has gone is no failure; a full disk under a redirected output is.
        return 0 if isinstance(exc, BrokenPipeError) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
