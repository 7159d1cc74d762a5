"""Starts a program and sees to it that nothing of it is left.

Run as `start.py supervisor [--OPTION VALUE]… -- PROGRAM ARGUMENT…`. PROGRAM gets standard input, output and error, and
a session of its own. When it ends, when SIGTERM, SIGINT or SIGHUP comes (passed on, then a few seconds of grace), when
SIGQUIT comes (without grace) or when the process `--parent` dies, every descendant is killed, daemons included. Exit
code: PROGRAM's, or 128 + n where signal n ended it; 125 to 127 where it could not be started.

`--environment FILE`: PROGRAM's whole environment, as a JSON object.
`--status FILE`: tells a failure of ours from any exit code of PROGRAM: our process id stands there first, "begun" once
nothing of ours can fail any more before PROGRAM runs, "ended" with its exit code once that is known. No other process
has it open.
`--confined DEPTH`: PROGRAM is a launcher that gives up rights and reports it (`report_ready`); if it ends before, the
exit code is 125. What it starts lies DEPTH generations below it, and gets the signals that are passed on.
`--secret NAME`: a variable that is left out of the environment, and stands as a JSON object on a descriptor.
`--memory`, `--disk`, `--processes`, `--folder`, `--report`: all is killed as soon as these `Bounds` are reached.
"""

import fcntl
import os
import select
import time

from zelda_ci.sandbox.launcher import shared
from zelda_ci.sandbox.launcher.shared import suppress

TYPE_CHECKING = False  # as in `shared`
if TYPE_CHECKING:
    import signal

    from zelda_ci.sandbox.launcher.bounds import Bounds
else:
    import _signal as signal

GRACE_SECONDS = 3.0
# After this much killing, what is left cannot be killed (another user's, or stuck in the kernel).
KILL_SECONDS = 5.0
TICK_SECONDS = 1.0
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
HANDLED = (*PASSED_ON, signal.SIGQUIT, signal.SIGCHLD)
# Descriptors from here on are in the way of no other.
FREE = 16
PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> None:
    """Supervise one program, and end with its exit code."""
    try:
        border = arguments.index("--")
        options = dict(zip(arguments[:border:2], arguments[1:border:2], strict=True))
        os._exit(_supervise(arguments[border + 1 :], options))
    except Exception as error:  # noqa: BLE001  # nobody is above to explain it
        shared.fail(shared.NOT_CONFINED, f"the supervisor failed: {type(error).__name__}: {error}")


def _supervise(argv: list[str], options: dict[str, str]) -> int:
    parent = int(options.get("--parent", os.getppid()))
    secrets = _take_environment(options)
    # Before anything is opened here: a descriptor of Zelda's, such as a lock, must not outlive it in a daemon.
    _close_inherited()
    start = _Start(options.get("--status"), secrets)
    with suppress(PermissionError):  # a leader already
        os.setsid()
    if shared.LINUX:
        # Daemons whose parents have ended become our children instead of init's, and so are found in the end.
        shared.prctl("subreaper", PR_SET_CHILD_SUBREAPER, 1)
        # The kernel tells when Zelda dies, however; `_watched` also looks, since it may have died before this line.
        shared.prctl("parent death signal", shared.PR_SET_PDEATHSIG, signal.SIGTERM)
    wakeups = _wakeups()
    bounds = _bounds(options) if "--memory" in options else None
    child = _started(argv, options.get("--confined"), start)
    status = _watched(child, int(options.get("--confined", 0)), parent, wakeups, start, bounds)
    _end_descendants(child)
    _reaped()
    code = 128 - status if status < 0 else status
    if start.is_made():
        start.say(f"ended {code}")
    elif status >= 0:
        start.complain()
        return shared.NOT_CONFINED
    return code


def _take_environment(options: dict[str, str]) -> bytes:
    """Take over the program's environment, and return what is secret in it and so left out."""
    name = options.get("--secret", "")
    if not name and "--environment" not in options:
        return b""
    import json  # noqa: PLC0415  # for sessions only

    if "--environment" in options:
        with open(options["--environment"], "rb") as file:  # noqa: PTH123  # pathlib would slow the start
            environment = json.load(file)
        os.environ.clear()
        os.environ.update({str(variable): str(value) for variable, value in environment.items()})
    return json.dumps({name: os.environ.pop(name)}).encode() if name in os.environ else b""


def _close_inherited() -> None:
    # One by one: the highest number that could be open may be a billion.
    for name in os.listdir("/dev/fd"):  # noqa: PTH208  # pathlib would slow the start
        if int(name) > 2:
            with suppress(OSError):
                os.close(int(name))


def _bounds(options: dict[str, str]) -> "Bounds":
    from zelda_ci.sandbox.launcher.bounds import Bounds  # noqa: PLC0415  # not everybody needs it

    return Bounds(options)


class _Start:
    """How far the start of the program has come: it reports itself that nothing of ours can fail any more."""

    def __init__(self, status_file: str | None, secrets: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._status = os.open(status_file, flags, 0o600) if status_file else -1
        self.say(str(os.getpid()))
        self.reader, self._writer = os.pipe()
        self._secrets, writer = os.pipe()
        # A pipe holds more than any secret is long.
        os.write(writer, secrets)
        os.close(writer)
        # Standard error stays ours until the report, to say if there is none.
        self._errors = os.dup(2)
        self._is_made = False

    def say(self, word: str) -> None:
        """Write a line into the status file."""
        if self._status >= 0:
            with suppress(OSError):  # a full disk: what is not said counts as our failure
                os.write(self._status, f"{word}\n".encode())

    def hand_down(self) -> None:
        """Put everything on the agreed descriptors in the child, which inherits no others."""
        null = os.open(os.devnull, os.O_RDWR)
        places = {shared.READY: self._writer, shared.SECRETS: self._secrets, shared.INPUT: 0, shared.OUTPUT: 1}
        places |= {0: null, 1: null}
        # All out of the way first, because any of them may lie where another belongs.
        sources = {place: fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, FREE) for place, number in places.items()}
        for place, source in sources.items():
            os.dup2(source, place)

    def listen(self) -> None:
        """Keep the reading end alone in this process, whose own streams end with the program's."""
        os.close(self._writer)
        os.close(self._secrets)
        os.set_blocking(self.reader, False)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)

    def is_made(self) -> bool:
        """Whether the program has reported by now; anything else than its report is its last word."""
        if self.reader >= 0:
            with suppress(BlockingIOError):
                self._is_made = os.read(self.reader, 1) == b"R"
                os.close(self.reader)
                self.reader = -1
                if self._is_made:
                    os.close(self._errors)
                    self.say("begun")
        return self._is_made

    def complain(self) -> None:
        """Say that nothing was run."""
        os.write(self._errors, b"The program was not started, because it could not be confined.\n")


def _wakeups() -> int:
    """A pipe from which each signal that arrives can be read as one byte."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in HANDLED:
        signal.signal(number, lambda *_: None)
    return reader


def _started(argv: list[str], confined: str | None, start: _Start) -> int:
    """Start the program in a child, whose process id is returned."""
    supervisor = os.getpid()
    # Blocked, so that a signal that is passed on at once waits until the child can take it.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    child = os.fork()
    if child == 0:
        start.hand_down()
        _become(argv, confined, supervisor)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    start.listen()
    return child


def _become(argv: list[str], confined: str | None, supervisor: int) -> None:
    """Turn this forked child into the program."""
    # The pipe is shared with the supervisor, which would take the child's signals for its own.
    signal.set_wakeup_fd(-1)
    for number in HANDLED:
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    if shared.LINUX:
        shared.prctl("parent death signal", shared.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        # The supervisor died before the kernel was asked to end this child with it.
        os._exit(128 + signal.SIGKILL)
    # The mask is inherited across exec, unlike handlers: a program started with SIGTERM blocked could not be ended.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if confined is None:
        shared.report_ready()
    elif confined == "0" and argv[3:5] == [shared.START, "inside"]:
        # A Python is here already. Not where a process stays between us and the program: its memory would hold ours.
        from zelda_ci.sandbox.launcher import inside  # noqa: PLC0415  # see above

        inside.main(argv[5:])
    shared.execute(argv)


def _watched(child: int, depth: int, parent: int, wakeups: int, start: _Start, bounds: "Bounds | None") -> int:
    """Wait for the program, passing signals on; the exit code is negative where a signal ended it."""
    deadline = None
    while True:
        # First of all, so that a program that has ended is not reported as one that had to be killed.
        status = _reaped(child)
        if status is not None:
            return status
        if deadline is not None and time.monotonic() > deadline:
            return -signal.SIGKILL
        if bounds and bounds.reached(shared.descendants()):
            return -signal.SIGKILL
        if deadline is None and os.getppid() != parent:
            numbers: set[int] = {signal.SIGTERM}
        else:
            waited = [wakeups, *([start.reader] if start.reader >= 0 else [])]
            ready, _, _ = select.select(waited, [], [], TICK_SECONDS if deadline is None else 0.1)
            numbers = set(os.read(wakeups, 4096) if wakeups in ready else b"")
        is_made = start.is_made()
        if signal.SIGQUIT in numbers:
            return -signal.SIGKILL
        for number in numbers & {*PASSED_ON}:
            _pass_on(number, _program_of(child, depth if is_made else 0))
            deadline = deadline or time.monotonic() + GRACE_SECONDS


def _program_of(child: int, depth: int) -> int:
    """The process that became the program: the oldest child of each generation in between."""
    for _ in range(depth):
        child = min(shared.children().get(child, [(0, child)]))[1]
    return child


def _pass_on(number: int, process: int) -> None:
    try:
        # To the whole group, as a terminal does it: a shell does not pass signals on to what it waits for.
        os.killpg(process, number)
    except ProcessLookupError:  # not yet the leader of a group of its own
        with suppress(ProcessLookupError):
            os.kill(process, number)


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


def _has_children() -> bool:
    with suppress(ChildProcessError):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    return False


def _end_descendants(child: int) -> None:
    """Stop all descendants first, so that none can start another; then kill them, until none is left."""
    if not shared.LINUX:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
    deadline = time.monotonic() + KILL_SECONDS
    stopped: set[int] = set()
    # Who has no child has no descendant, as orphans become children. A fork bomb makes new processes faster than they
    # can be killed one by one; stopped ones make none.
    while _has_children() and time.monotonic() < deadline:
        _reaped()
        living = set(shared.descendants())
        if not living:
            return
        fresh = living - stopped
        for pid in fresh or living:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP if fresh else signal.SIGKILL)
        stopped |= fresh
        if not fresh:
            time.sleep(0.002)
