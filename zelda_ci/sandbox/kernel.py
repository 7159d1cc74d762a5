"""What the kernel refuses a confined process: files by Landlock, system calls by a seccomp filter."""

import ctypes
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from errno import EAFNOSUPPORT, ENOSYS, EPERM
from pathlib import Path
from typing import Any

from zelda_ci.domain.suite import IsolationLevel

# Versions of Landlock. Before the first one here, files could be truncated that cannot be written.
MIN_LANDLOCK_ABI = 3
# From here on TCP can be taken away, devices controlled, and signals and abstract sockets end at the border.
TCP_SINCE, DEVICES_SINCE, SCOPED = 4, 5, 6

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
MAKE_CHAR, MAKE_BLOCK, IOCTL_DEV = 1 << 6, 1 << 11, 1 << 15
# All rights to files of the oldest version.
FILES = (1 << 15) - 1
READ = EXECUTE | READ_FILE | READ_DIR
# To bind and to connect.
TCP = 0b11
ABSTRACT_SOCKETS, SIGNALS = 1, 2
DEVICES = ("full", "null", "ptmx", "pts", "random", "tty", "urandom", "zero")
_CREATE_RULESET, _ASK_VERSION = 444, 1


def version() -> int:
    """The version of this kernel's Landlock; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    abi: int = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return max(abi, 0)


def policy(
    abi: int, readable: Iterable[Path], writable: Iterable[Path], *, internet: bool, terminals: bool = True
) -> Mapping[str, Any]:
    """The rules of a run: what is not named cannot be opened at all, since all rights of the version are taken away.

    Without `internet` TCP is taken away, too. `terminals` may be opened that are the run's own, or closed to its user.
    """
    every = FILES | (IOCTL_DEV if abi >= DEVICES_SINCE else 0)
    devices = [f"/dev/{name}" for name in DEVICES if terminals or name != "pts"]
    # Nothing that builds or tests code makes devices, or controls those that lie among its files.
    write = every & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)
    return {
        "files": every,
        "tcp": TCP if not internet and abi >= TCP_SINCE else 0,
        "scoped": ABSTRACT_SOCKETS | SIGNALS if abi >= SCOPED else 0,
        "rules": [
            [READ, [*map(str, readable), "/proc"]],
            [write, list(map(str, writable))],
            [every & (READ_FILE | WRITE_FILE | READ_DIR | IOCTL_DEV), devices],
        ],
    }


ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# What the kernel offers to administrators, and nobody needs who builds or tests; by number: filters see nothing else.
FORBIDDEN = {
    "x86_64": (
        # mount family
        155, 165, 166, 428, 429, 430, 431, 432, 433, 442, 467,
        # setns, keyrings, bpf, perf_event_open, userfaultfd, io_uring, open_by_handle_at
        308, 248, 249, 250, 321, 298, 323, 425, 426, 427, 304,
        # modules, kexec, swap, reboot, quotas, accounting, clocks, kernel log, I/O ports
        175, 176, 313, 246, 320, 167, 168, 169, 179, 443, 163, 164, 227, 103, 172, 173,
    ),
    "aarch64": (
        41, 40, 39, 428, 429, 430, 431, 432, 433, 442, 467,
        268, 217, 218, 219, 280, 241, 282, 425, 426, 427, 265,
        105, 106, 273, 104, 294, 224, 225, 142, 60, 443, 89, 170, 112, 116,
    ),
}  # fmt: skip
# Objects that outlive their makers, and have names for everybody who shares the machine's. POSIX queues (mq_open,
# mq_unlink) can only be listed where their file system is mounted, so nobody could remove a run's at its end.
POSIX_QUEUES = {"x86_64": (240, 241), "aarch64": (180, 181)}
# Shared memory, semaphores and queues of System V. Where the run has the developer's user, its objects are the
# developer's: nobody could tell whose they are, and it could use and remove the others.
SYSTEM_V = {"x86_64": (29, 30, 31, *range(64, 72), 220), "aarch64": tuple(range(186, 198))}
# Its flags lie in memory, where a filter cannot look: libraries fall back to `clone` where it does not exist.
CLONE3 = 435
CLONE, UNSHARE, IOCTL = {"x86_64": 56, "aarch64": 220}, {"x86_64": 272, "aarch64": 97}, {"x86_64": 16, "aarch64": 29}
SOCKET, SOCKET_PAIR = {"x86_64": 41, "aarch64": 198}, {"x86_64": 53, "aarch64": 199}
SET_PRIORITY, SET_LIMITS = {"x86_64": 141, "aarch64": 140}, {"x86_64": 302, "aarch64": 261}
# Mount, cgroup, UTS, IPC, user, process, network; and time.
NEW_NAMESPACES, NEW_TIME = 0x7E020000, 0x80
PRIO_USER = 2  # of setpriority: all processes of a user
# TIOCSTI and TIOCLINUX: they type into whatever reads a terminal.
TERMINAL_INPUT = (0x5412, 0x541C)
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
LOAD, EQUAL, AT_LEAST, ANY_BIT, MASK, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 4, 16, 24
# From here on numbers belong to x32, another way to make the same calls.
FOREIGN = 0x40000000
SOCK_DGRAM, TYPE_BITS = 2, 0xF  # of a type, whose higher bits are flags

# Operation, steps to skip if it is so, steps to skip if not, operand.
Step = tuple[int, int, int, int]
ALLOWED, REFUSED = (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, ERRNO | EPERM)


def program(machine: str, level: IsolationLevel, *, internet: bool, services: bool = False) -> bytes:
    """The filter for one architecture; at `full` a run has its own namespaces, at `landlock` it is the user's process.

    With `internet` sockets may be made that could leave the machine, and with `services` a run at `landlock` may make
    those that reach the machine's services by a path.
    """
    is_users_own = level == "landlock"
    absent = [CLONE3, *(() if level == "full" else POSIX_QUEUES[machine]), *(SYSTEM_V[machine] if is_users_own else ())]
    # A filter sees no path, so that it cannot tell the user's services from others. Pairs are connected already.
    services = services or not is_users_own
    families = (*((AF_UNIX,) if services else ()), AF_NETLINK, *((AF_INET, AF_INET6) if internet else ()))
    no_family: Step = (RETURN, 0, 0, ERRNO | EAFNOSUPPORT)
    answers: list[tuple[int, Sequence[Step]]] = [
        # "Not implemented" instead of "not permitted": only then do the C libraries fall back to `clone`.
        *((number, [(RETURN, 0, 0, ERRNO | ENOSYS)]) for number in absent),
        *((number, [REFUSED]) for number in FORBIDDEN[machine]),
        (CLONE[machine], _if(FIRST_ARGUMENT, [NEW_NAMESPACES], REFUSED, ALLOWED, test=ANY_BIT)),
        (UNSHARE[machine], _if(FIRST_ARGUMENT, [NEW_NAMESPACES | NEW_TIME], REFUSED, ALLOWED, test=ANY_BIT)),
        (IOCTL[machine], _if(SECOND_ARGUMENT, TERMINAL_INPUT, REFUSED, ALLOWED)),
        (SOCKET[machine], _if(FIRST_ARGUMENT, families, ALLOWED, no_family)),
    ]
    if not services:
        # Half of a pair of datagram sockets can be connected anew, to any path.
        load, *steps = _if(SECOND_ARGUMENT, [SOCK_DGRAM], REFUSED, ALLOWED)
        answers.append((SOCKET_PAIR[machine], [load, (MASK, 0, 0, TYPE_BITS), *steps]))
    if is_users_own:
        # Of no other process than itself, nor of all processes of the user.
        every, itself = _if(FIRST_ARGUMENT, [PRIO_USER], REFUSED), _if(SECOND_ARGUMENT, [0], ALLOWED, REFUSED)
        answers += [(SET_PRIORITY[machine], [*every, *itself])]
        answers += [(SET_LIMITS[machine], _if(FIRST_ARGUMENT, [0], ALLOWED, REFUSED))]
    steps = [
        (LOAD, 0, 0, ARCHITECTURE),
        # On x86-64 a program can switch to 32-bit calls, whose numbers mean something else: there is no fallback.
        (EQUAL, 1, 0, ARCHITECTURES[machine]),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, FOREIGN),
        REFUSED,
        *(step for number, answer in answers for step in ((EQUAL, 0, len(answer), number), *answer)),
        # A list of the forbidden, not of the allowed: a toolchain that needs a new call would break for no gain.
        ALLOWED,
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _if(argument: int, values: Sequence[int], then: Step, *otherwise: Step, test: int = EQUAL) -> Sequence[Step]:
    """Steps that compare an argument of a call with values."""
    tests = [step for value in values for step in ((test, 0, 1, value), then)]
    return [(LOAD, 0, 0, argument), *tests, *otherwise]
