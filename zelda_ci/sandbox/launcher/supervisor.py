"""A program of its own: starts another one and sees to it that nothing of it is left.

Run as `python -I -S supervisor.py [--OPTION VALUE]… -- PROGRAM ARGUMENT…`, it imports nothing of Zelda but from
`launcher`. PROGRAM gets standard input, output and error, and a session of its own. When it ends, when SIGTERM, SIGINT
or SIGHUP comes (passed on, then a few seconds of grace), when SIGQUIT comes (without grace) or when the process
`--parent` dies, every descendant is killed, daemons included. Exit code: PROGRAM's, or 128 + n where signal n ended it;
125 to 127 where it could not be started.

`--environment FILE`: PROGRAM's whole environment, as a JSON object.
`--status FILE`: tells a failure of ours from any exit code of PROGRAM: our process id stands there first, "begun" once
nothing of ours can fail any more before PROGRAM runs, "ended" with its exit code once that is known. No other process
has it open.
`--confined DEPTH`: PROGRAM is a launcher that writes a byte to descriptor 3 once it has given up its rights; if it ends
before, the exit code is 125. What it starts lies DEPTH generations below it, and gets the signals that are passed on.
The launcher finds standard input and output on descriptors 5 and 6: what stays between us and the program, such as the
first process of a namespace, holds neither, since others of the program's user could open them there.
`--secret NAME`: a variable that is left out of the environment, and stands as a JSON object on descriptor 4.
`--memory`, `--disk`, `--processes`, `--folder`, `--report`: all is killed as soon as these `Bounds` are reached.
"""

import ctypes
import fcntl
import os
import select
import sys
import time

sys.path.append(os.path.abspath(f"{__file__}/../../../.."))  # noqa: PTH100  # pathlib would slow the start
from zelda_ci.sandbox.launcher.shared import (
    LINUX,
    children,
    descendants,
    suppress,  # not found before
)

TYPE_CHECKING = False  # what `typing` has of that name costs too much at every start
if TYPE_CHECKING:
    import signal

    from zelda_ci.sandbox.launcher.bounds import Bounds
else:
    # `signal` itself gives the numbers names, which takes longer than everything else here; so does `json`.
    import _signal as signal

GRACE_SECONDS = 3.0
# After this much killing, what is left cannot be killed (another user's, or stuck in the kernel).
KILL_SECONDS = 5.0
TICK_SECONDS = 1.0
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# What Python or a parent may ignore, and a program expects to find at its default.
RESTORED = (*PASSED_ON, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)

NOT_CONFINED = 125
# The descriptors on which a launcher says that it has given up its rights, and finds the secrets and its streams.
READY, SECRETS, INPUT, OUTPUT = 3, 4, 5, 6
# Beyond these, where nothing is in the way of another.
FREE = 16

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> int:
    """Supervise one program."""
    border = arguments.index("--")
    options, argv = dict(zip(arguments[:border:2], arguments[1:border:2], strict=True)), arguments[border + 1 :]
    parent = int(options.get("--parent", os.getppid()))
    environment = _read_json(options["--environment"]) if "--environment" in options else dict(os.environ)
    # Before anything is opened here: a descriptor of Zelda's, such as a lock, must not outlive it in a daemon.
    _close_inherited()
    status_file = _Status(options.get("--status"))
    status_file.say(str(os.getpid()))
    with suppress(PermissionError):  # a leader already
        os.setsid()
    # Daemons whose parents have ended become our children instead of init's, and so are found in the end.
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    # The kernel tells when Zelda dies, however it dies; `_watched` also looks, since it may have died before this
    # line.
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    wakeups = _wakeups()
    secret = options.get("--secret", "")
    secrets = {secret: environment.pop(secret)} if secret in environment else {}
    launcher = _Launcher(int(options["--confined"]), status_file, secrets) if "--confined" in options else None
    bounds = _bounds(options) if "--memory" in options else None
    child = _started(argv, environment, launcher)
    if not launcher:
        status_file.say("begun")
    # After the fork: the child has its own copies of the three streams by now.
    _let_go_of_streams()
    status = _watched(child, parent, wakeups, launcher, bounds)
    _end_descendants(child)
    _reaped()
    code = 128 - status if status < 0 else status
    if launcher and not launcher.has_confined():
        if status < 0:
            return code
        launcher.complain()
        return NOT_CONFINED
    status_file.say(f"ended {code}")
    return code


def _read_json(file: str) -> dict[str, str]:
    import json  # noqa: PLC0415  # for sessions only

    with open(file, "rb") as opened:  # noqa: PTH123  # pathlib would slow the start
        return {str(name): str(value) for name, value in json.load(opened).items()}


def _bounds(options: dict[str, str]) -> "Bounds":
    from zelda_ci.sandbox.launcher.bounds import Bounds  # noqa: PLC0415  # not everybody needs it

    memory, disk, processes = (int(options[name]) for name in ("--memory", "--disk", "--processes"))
    return Bounds(options["--folder"], options["--report"], memory=memory, disk=disk, processes=processes)


def _started(argv: list[str], environment: dict[str, str], launcher: "_Launcher | None") -> int:
    supervisor = os.getpid()
    # Blocked, so that a signal that is passed on at once waits until the child can take it.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    child = os.fork()
    if child == 0:
        if launcher:
            launcher.hand_down()
        _become(argv, environment, supervisor)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    if launcher:
        launcher.listen()
    return child


def _close_inherited() -> None:
    # One by one: the highest number that could be open may be a billion.
    for name in os.listdir("/dev/fd"):  # noqa: PTH208  # pathlib would slow the start
        if int(name) > 2:
            with suppress(OSError):
                os.close(int(name))


class _Status:
    def __init__(self, file: str | None) -> None:
        """Open it, for this process alone."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._number = os.open(file, flags, 0o600) if file else -1

    def say(self, word: str) -> None:
        if self._number >= 0:
            with suppress(OSError):  # a full disk: what is not said counts as our failure
                os.write(self._number, f"{word}\n".encode())


class _Launcher:
    """What the program is until it has given up its rights; nothing else of it may run before."""

    def __init__(self, depth: int, status: _Status, secrets: dict[str, str]) -> None:
        """Make the pipe on which it says so; standard error stays ours until then, to say if it does not."""
        self.depth, self._status = depth, status
        self._reader, self._writer = os.pipe()
        self._secrets, writer = os.pipe()
        if secrets:
            import json  # noqa: PLC0415  # as above

            # A pipe holds more than any secret is long.
            os.write(writer, json.dumps(secrets).encode())
        os.close(writer)
        self._errors = os.dup(2)
        self._ready = False

    def hand_down(self) -> None:
        """In the child: put everything on the agreed descriptors, which are the only ones that it inherits."""
        null = os.open(os.devnull, os.O_RDWR)
        places = {READY: self._writer, SECRETS: self._secrets, INPUT: 0, OUTPUT: 1, 0: null, 1: null}
        # All out of the way first, because any of them may lie where another belongs.
        sources = {place: fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, FREE) for place, number in places.items()}
        for place, source in sources.items():
            os.dup2(source, place)

    def listen(self) -> None:
        os.close(self._writer)
        os.close(self._secrets)
        os.set_blocking(self._reader, False)

    def has_confined(self) -> bool:
        """Whether it has said so by now."""
        if not self._ready:
            with suppress(BlockingIOError):
                self._ready = os.read(self._reader, 1) == b"R"
            if self._ready:
                os.close(self._errors)
                self._status.say("begun")
        return self._ready

    def complain(self) -> None:
        """Say that nothing was run."""
        # Standard error itself was given up with the other streams.
        os.write(self._errors, b"The program was not started, because it could not be confined.\n")

    def program_of(self, child: int) -> int:
        """The process that became the program: the oldest child of each generation in between."""
        process = child
        for _ in range(self.depth if self.has_confined() else 0):
            process = min(children().get(process, [(0, process)]))[1]
        return process


def _prctl(option: int, value: int) -> None:
    """Ask the Linux kernel; elsewhere there is nothing like it, and only the process group is ended."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _wakeups() -> int:
    """A pipe from which each signal that arrives can be read as one byte."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (*PASSED_ON, signal.SIGQUIT, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return reader


def _become(argv: list[str], environment: dict[str, str], supervisor: int) -> None:
    """Turn this forked child into the program."""
    try:
        # The pipe is shared with the supervisor, which would take the child's signals for its own.
        signal.set_wakeup_fd(-1)
        for number in RESTORED:
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            # The supervisor died before the kernel was asked to end this child with it.
            os._exit(128 + signal.SIGKILL)
        # The mask is inherited across exec, unlike handlers: a program started with SIGTERM blocked could not be
        # ended.
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.execvpe(argv[0], argv, environment)  # noqa: S606  # what this program is for
    except FileNotFoundError:
        _fail(127, f"{argv[0]}: no such program")
    except OSError as error:
        _fail(126, f"{argv[0]}: {error.strerror}")


def _fail(code: int, message: str) -> None:
    os.write(2, f"{message}\n".encode("utf-8", "replace"))
    os._exit(code)


def _let_go_of_streams() -> None:
    # The pipes must end with the program, not with us.
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)


def _watched(child: int, parent: int, wakeups: int, launcher: _Launcher | None, bounds: "Bounds | None") -> int:
    """Wait for the program, passing signals on; the exit code is negative where a signal ended it."""
    deadline = None
    while True:
        # First of all, so that a program that has ended is not reported as one that had to be killed.
        status = _reaped(child)
        if status is not None:
            return status
        if deadline is not None and time.monotonic() > deadline:
            return -signal.SIGKILL
        if bounds and bounds.reached(descendants()):
            return -signal.SIGKILL
        orphaned = deadline is None and os.getppid() != parent
        numbers: set[int] = {signal.SIGTERM} if orphaned else _arrived(wakeups, deadline)
        if launcher:
            launcher.has_confined()
        if signal.SIGQUIT in numbers:
            return -signal.SIGKILL
        for number in numbers:
            _pass_on(number, launcher.program_of(child) if launcher else child)
            deadline = deadline or time.monotonic() + GRACE_SECONDS


def _pass_on(number: int, child: int) -> None:
    try:
        # To the whole group, as a terminal does it: a shell does not pass signals on to what it waits for.
        os.killpg(child, number)
    except ProcessLookupError:  # not yet the leader of a group of its own
        with suppress(ProcessLookupError):
            os.kill(child, number)


def _arrived(wakeups: int, deadline: float | None) -> set[int]:
    """The signals to act on that arrive within a moment."""
    ready, _, _ = select.select([wakeups], [], [], TICK_SECONDS if deadline is None else 0.1)
    return set(os.read(wakeups, 4096) if ready else b"") & {*PASSED_ON, signal.SIGQUIT}


def _reaped(child: int | None = None) -> int | None:
    """Reap all dead children; returns the exit code of `child` if it was among them."""
    code = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
    return code


def _end_descendants(child: int) -> None:
    """Stop all descendants first, so that none can start another; then kill them, until none is left."""
    if not LINUX:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
    deadline = time.monotonic() + KILL_SECONDS
    stopped: set[int] = set()
    # A fork bomb makes new processes faster than they can be killed one by one; stopped ones make none.
    while time.monotonic() < deadline:
        _reaped()
        living = set(descendants())
        if not living:
            return
        fresh = living - stopped
        for pid in fresh or living:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP if fresh else signal.SIGKILL)
        stopped |= fresh
        if not fresh:
            time.sleep(0.002)


if __name__ == "__main__":
    try:
        os._exit(main(sys.argv[1:]))
    except Exception as error:  # noqa: BLE001  # nobody is above to explain it
        _fail(125, f"the supervisor failed: {type(error).__name__}: {error}")
