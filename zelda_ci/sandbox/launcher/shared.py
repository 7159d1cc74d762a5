"""What the launcher's programs share: calls of the C library, the tree of processes, and the step into a program."""

import ctypes
import os
import sys

TYPE_CHECKING = False  # what `typing` has of that name costs too much at every start
if TYPE_CHECKING:
    import signal as signal  # noqa: PLC0414  # others import it from here
    from typing import NoReturn
else:
    # `signal` itself gives the numbers names, which takes longer than everything else here.
    import _signal as signal

LINUX = sys.platform == "linux"
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
# Of a program that was not started, since it could not be confined.
NOT_CONFINED = 125
# Descriptors on which a program says that it has given up its rights, and finds its secret, and where a supervisor
# puts standard input and output, out of the reach of what comes between it and the program.
READY, SECRET, INPUT, OUTPUT = 3, 4, 5, 6
START = os.path.abspath(f"{__file__}/../start.py")
# Variable of a program that says itself that it is confined; `unreadable.js` reads it.
CLOSES_ITSELF = "ZELDA_CONFINED"


class suppress:  # noqa: N801  # as contextlib's, whose import takes longer than the rest of a start
    """Ends a block quietly where one of these errors is raised in it."""

    def __init__(self, *errors: type[BaseException]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: "type[BaseException] | None", *_: object) -> bool:
        return kind is not None and issubclass(kind, self._errors)


def call(purpose: str, function: "ctypes._NamedFuncPointer", *arguments: object) -> int:
    """Call a function of the C library; an OSError names the purpose where it fails."""
    result: int = function(*arguments)
    if result < 0:
        raise OSError(f"{purpose}: {os.strerror(ctypes.get_errno())}")
    return result


def prctl(purpose: str, option: int, *values: object) -> None:
    """Ask the Linux kernel to change something about this process."""
    # Several options are refused unless the arguments that they do not use are zero.
    call(purpose, LIBC.prctl, option, *values, *(ctypes.c_ulong(0),) * (4 - len(values)))


def become_user(uid: int) -> None:
    """Groups first, then the group, then the user: each step takes away the right to do the one before."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def report_ready() -> None:
    """Take the streams and report it, unless a program that closes itself first does so and gets the secret."""
    for place, stream in enumerate((INPUT, OUTPUT)):
        os.dup2(stream, place)
        os.close(stream)
    if os.environ.get(CLOSES_ITSELF) != "1":
        os.write(READY, b"R")
        os.close(READY)
        os.close(SECRET)


def execute(argv: list[str]) -> "NoReturn":
    """Become a program; exit code 126 or 127 where that fails."""
    # Python ignores these, and an ignored signal stays ignored: a program whose pipe is closed would write on for ever.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)  # noqa: S606  # what these programs are for
    except FileNotFoundError:
        fail(127, f"{argv[0]}: no such program")
    except OSError as error:
        fail(126, f"{argv[0]}: {error.strerror}")


def fail(code: int, message: str) -> "NoReturn":
    """End this process with a sentence."""
    os.write(2, f"{message}\n".encode("utf-8", "replace"))
    # No clean-up of Python's: it would flush and close what is the program's.
    os._exit(code)


def descendants() -> list[int]:
    """Every living process below this one, orphans included: the kernel makes them our children."""
    tree, found = children(), [os.getpid()]
    for parent in found:  # grows meanwhile
        found += [pid for _, pid in tree.get(parent, [])]
    return found[1:]


def children() -> dict[int, list[tuple[int, int]]]:
    """Start time and number of every living process, by its parent."""
    tree: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc") if LINUX else ():
        with suppress(OSError, ValueError):
            pid = int(name)
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            # The first thread of a process may be dead while others run.
            if fields[0] not in {b"Z", b"X"} or int(fields[17]) > 1:
                tree.setdefault(int(fields[1]), []).append((int(fields[19]), pid))
    return tree
