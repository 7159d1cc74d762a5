"""Starts a program and sees to it that nothing of it is left.

Run as `start.py supervisor [--OPTION VALUE]… -- PROGRAM ARGUMENT…`. PROGRAM gets standard input, output and error, and
a session of its own. When it ends, when SIGTERM, SIGINT or SIGHUP comes (passed on, then a few seconds of grace), when
SIGQUIT comes (without grace) or when the process `--parent` dies, every descendant is killed, daemons included. Exit
code: PROGRAM's, or 128 + n where signal n ended it; 125 to 127 where it could not be started.

`--environment FILE`: PROGRAM's whole environment, as `env -0` prints it.
`--status FILE`: tells a failure of ours from any exit code of PROGRAM: our process id stands there first, "begun" once
nothing of ours can fail any more before PROGRAM runs, "ended" with its exit code once that is known. No other process
has it open.
`--confined DEPTH`: PROGRAM is a launcher that gives up rights and reports it (`report_ready`); if it ends before, the
exit code is 125. What it starts lies DEPTH generations below it, and gets the signals that are passed on.
`--secret NAME`: a variable that is left out of the environment, and stands as NAME=VALUE on a descriptor.
`--memory`, `--disk` (bytes), `--processes`, `--folder` (of its files), `--report`: all is killed as soon as these
`Bounds` are reached.
"""

import fcntl
import os
import select
import time

from zelda_ci.sandbox.launcher import shared
from zelda_ci.sandbox.launcher.shared import signal, suppress

GRACE_SECONDS = 3.0
# After this much killing, what is left cannot be killed (another user's, or stuck in the kernel).
KILL_SECONDS = 5.0
TICK_SECONDS = 1.0
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
HANDLED = (*PASSED_ON, signal.SIGQUIT, signal.SIGCHLD)
# Bytes on the disk below which a run that has taken its share is ended, wherever its files are; the same of memory.
MIN_FREE_BYTES = 1 << 30
# A walk over a large tree takes a while, so the pause grows with it: 20 times what the last walk took.
WALK_SECONDS = 30.0
AVAILABLE = "/proc/meminfo", "MemAvailable:"
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
    if "--environment" in options:
        with open(options["--environment"], "rb") as file:
            entries = [entry.partition(b"=") for entry in file.read().split(b"\0") if entry]
        os.environ.clear()
        os.environb.update({name: value for name, _, value in entries})
    name = os.fsencode(options.get("--secret", ""))
    secret = name + b"=" + os.environb.pop(name) if name in os.environb else b""
    # Before anything is opened here: a descriptor of Zelda's, such as a lock, must not outlive it in a daemon. One by
    # one, since the highest number that could be open may be a billion.
    for number in map(int, os.listdir("/dev/fd")):
        if number > 2:
            with suppress(OSError):
                os.close(number)
    program = _Program(options, secret)
    with suppress(PermissionError):  # a leader already
        os.setsid()
    if shared.LINUX:
        # Daemons whose parents have ended become our children instead of init's, and so are found in the end.
        shared.prctl("subreaper", PR_SET_CHILD_SUBREAPER, 1)
        # The kernel tells when Zelda dies, however; `_watched` also looks, since it may have died before this line.
        shared.prctl("parent death signal", shared.PR_SET_PDEATHSIG, signal.SIGTERM)
    # A pipe from which each signal that arrives can be read as one byte.
    wakeups, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in HANDLED:
        signal.signal(number, lambda *_: None)
    bounds = Bounds(options) if "--memory" in options else None
    program.start(argv)
    status = _watched(program, parent, wakeups, bounds)
    _end_descendants(program.child)
    _reaped()
    code = 128 - status if status < 0 else status
    if program.has_begun():
        program.say(f"ended {code}")
    elif status >= 0:
        os.write(program.errors, b"The program was not started, because it could not be confined.\n")
        return shared.NOT_CONFINED
    return code


class _Program:
    """The supervised program, which reports itself once nothing of ours can fail any more before it runs."""

    def __init__(self, options: dict[str, str], secret: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._status = os.open(options.get("--status", os.devnull), flags, 0o600)
        self.say(str(os.getpid()))
        self._confined = options.get("--confined")
        self.child = 0
        self.report, self._writer = os.pipe()
        self._secret, writer = os.pipe()
        # A pipe holds more than any secret is long.
        os.write(writer, secret)
        os.close(writer)
        # Standard error stays ours until the report, to say if there is none.
        self.errors = os.dup(2)
        self._has_begun = False

    def say(self, word: str) -> None:
        """Write a line into the status file."""
        with suppress(OSError):  # a full disk: what is not said counts as our failure
            os.write(self._status, f"{word}\n".encode())

    def start(self, argv: list[str]) -> None:
        """Start it in a child, with which alone the streams of this process shall end."""
        supervisor = os.getpid()
        # Blocked, so that a signal that is passed on at once waits until the child can take it.
        signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
        null = os.open(os.devnull, os.O_RDWR)
        self.child = os.fork()
        if self.child == 0:
            # The agreed descriptors are the only ones that the program inherits.
            places = {shared.READY: self._writer, shared.SECRET: self._secret, shared.INPUT: 0, shared.OUTPUT: 1}
            places |= {0: null, 1: null}
            # All out of the way first, because any of them may lie where another belongs.
            sources = {place: fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, FREE) for place, number in places.items()}
            for place, source in sources.items():
                os.dup2(source, place)
            _become(argv, self._confined, supervisor)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        for number in range(3):
            os.dup2(null, number)
        for number in (null, self._writer, self._secret):
            os.close(number)
        os.set_blocking(self.report, False)

    def has_begun(self) -> bool:
        """Whether it has reported by now; whatever else it says instead is its last word."""
        if self.report >= 0:
            with suppress(BlockingIOError):
                self._has_begun = os.read(self.report, 1) == b"R"
                os.close(self.report)
                self.report = -1
                if self._has_begun:
                    os.close(self.errors)
                    self.say("begun")
        return self._has_begun

    def pass_on(self, number: int) -> None:
        """Send it a signal: it is the oldest child of each generation in between."""
        process = self.child
        for _ in range(int(self._confined or 0) if self._has_begun else 0):
            process = min(shared.children().get(process, [(0, process)]))[1]
        try:
            # To the whole group, as a terminal does it: a shell does not pass signals on to what it waits for.
            os.killpg(process, number)
        except ProcessLookupError:  # not yet the leader of a group of its own
            with suppress(ProcessLookupError):
                os.kill(process, number)


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
    elif argv[3:5] == [shared.START, "inside"]:
        # A Python is here already. What stays of it between us and the program lets nobody look into its memory.
        from zelda_ci.sandbox.launcher import inside

        inside.main(argv[5:])
    shared.execute(argv)


def _watched(program: _Program, parent: int, wakeups: int, bounds: "Bounds | None") -> int:
    """Wait for the program, passing signals on; the exit code is negative where a signal ended it."""
    deadline = None
    while True:
        # First of all, so that a program that has ended is not reported as one that had to be killed.
        if (status := _reaped(program.child)) is not None:
            return status
        if deadline is not None and time.monotonic() > deadline:
            return -signal.SIGKILL
        if bounds and bounds.reached():
            return -signal.SIGKILL
        if deadline is None and os.getppid() != parent:
            numbers: set[int] = {signal.SIGTERM}
        else:
            waited = [number for number in (wakeups, program.report) if number >= 0]
            ready, _, _ = select.select(waited, [], [], TICK_SECONDS if deadline is None else 0.1)
            numbers = set(os.read(wakeups, 4096) if wakeups in ready else b"")
        program.has_begun()
        if signal.SIGQUIT in numbers:
            return -signal.SIGKILL
        for number in numbers & {*PASSED_ON}:
            program.pass_on(number)
            deadline = deadline or time.monotonic() + GRACE_SECONDS


def _reaped(child: int | None = None) -> int | None:
    """Reap all dead children; returns the exit code of `child` if it was among them."""
    code = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
    return code


def _end_descendants(child: int) -> None:
    """Stop all descendants first, so that none can start another; then kill them, until none is left."""
    if not shared.LINUX:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
    deadline = time.monotonic() + KILL_SECONDS
    stopped: set[int] = set()
    # Ends with an error where there is no child, and so no descendant: orphans have become children.
    with suppress(ChildProcessError):
        # A fork bomb makes new processes faster than they can be killed one by one; stopped ones make none.
        while time.monotonic() < deadline:
            _reaped()
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            living = {*shared.descendants()}
            if not shared.LINUX:
                return
            fresh = living - stopped
            for pid in fresh or living:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGSTOP if fresh else signal.SIGKILL)
            stopped |= fresh
            if not fresh:
                time.sleep(0.002)


class Bounds:
    """How much a program with all its descendants may take; `--report` gets the sentence that says what was reached."""

    def __init__(self, options: dict[str, str]) -> None:
        self._folder, self._report = options["--folder"], options["--report"]
        self._memory, self._disk, self._processes = (int(options[f"--{it}"]) for it in ("memory", "disk", "processes"))
        self._free_at_start, self._available_at_start = _free(self._folder), _field(*AVAILABLE)
        self._next_walk, self._next_look = time.monotonic() + WALK_SECONDS, time.monotonic() + 1

    def reached(self) -> bool:
        """Whether the program takes more than it may; looks once a second, and writes the report."""
        if time.monotonic() < self._next_look:
            return False
        self._next_look = time.monotonic() + 1
        pids = shared.descendants()
        if len(pids) > self._processes:
            excess = f"had more than {self._processes} processes"
        elif self._takes_memory(pids):
            excess = f"took more memory than a run may: {self._memory / (1 << 30):.3g} GiB"
        elif self._takes_disk():
            excess = f"took more room on the disk than a run may: {self._disk / (1 << 30):.3g} GiB"
        else:
            return False
        with suppress(OSError), open(self._report, "w") as file:
            file.write(f"It was ended because it {excess}.")
        return True

    def _takes_memory(self, pids: list[int]) -> bool:
        sizes = [_memory(pid, "status", "VmRSS:") for pid in pids]
        # Shared pages count once, which is costly to find out, so only where it matters.
        shares = (_memory(pid, "smaps_rollup", "Pss:") or size for pid, size in zip(pids, sizes, strict=True))
        if sum(sizes) > self._memory and sum(shares) > self._memory:
            return True
        # What is in files of memory, sockets and pipes is no process's: it counts where the machine runs short.
        available = _field(*AVAILABLE)
        return self._available_at_start - available > self._memory and available < MIN_FREE_BYTES

    def _takes_disk(self) -> bool:
        free = _free(self._folder)
        used_by_all, begun = self._free_at_start - free, time.monotonic()
        # Others write to the same disk, so its free bytes prove nothing; but while they hardly change, no walk is due.
        if used_by_all < self._disk // 2 and begun < self._next_walk:
            return False
        used = _used(self._folder, self._disk)
        self._next_walk = time.monotonic() + max(WALK_SECONDS, 20 * (time.monotonic() - begun))
        # Files that are deleted and still open take room that no walk finds; then the disk itself must not run full.
        return used > self._disk or (used_by_all > self._disk and free < MIN_FREE_BYTES)


def _memory(pid: int, file: str, name: str) -> int:
    """Bytes that a process takes; where its first thread is dead, only the others tell it."""
    if size := _field(f"/proc/{pid}/{file}", name):
        return size
    with suppress(OSError):
        return max(_field(f"/proc/{pid}/task/{thread}/{file}", name) for thread in os.listdir(f"/proc/{pid}/task"))
    return 0


def _field(path: str, name: str) -> int:
    """Bytes that a file of the kernel's gives in kB; 0 where it does not."""
    with suppress(OSError), open(path) as file:
        return next((int(line.split()[1]) << 10 for line in file if line.startswith(name)), 0)
    return 0


def _free(folder: str) -> int:
    status = os.statvfs(folder)
    return status.f_bfree * status.f_frsize


def _used(folder: str, enough: int) -> int:
    """Bytes on the disk below a folder; stops counting where it is enough."""
    total, waiting = 0, [folder]
    while waiting and total <= enough:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    # Blocks, not the size: a sparse file takes what was written, a file of one byte a whole block.
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total
