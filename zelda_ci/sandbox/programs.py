"""The small programs that every process of a run goes through, the Python that runs them, and bubblewrap's options."""

import base64
import binascii
import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zelda_ci.sandbox.readable_paths import is_open

LAUNCHER = Path(__file__).with_name("launcher")
START, UNREADABLE = LAUNCHER / "start.py", LAUNCHER / "unreadable.js"
OTHERS = ("/usr/bin/python3", "/usr/local/bin/python3")
# Where the system's folders are merged into /usr, these are links.
SYSTEM_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
# Some of these ask who is root outside, and for no capability: what is written there would run outside.
SEALED = tuple(
    word
    for name in ("sys", "sysrq-trigger", "irq", "bus", "fs")
    for word in ("--ro-bind" if name == "sys" else "--ro-bind-try", f"/proc/{name}", f"/proc/{name}")
)
# A new session, because a terminal accepts input that a program types into it (TIOCSTI).
SYSTEM = ("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--proc", "/proc", *SEALED, "--dev", "/dev")
# All that can fail where a system forbids namespaces.
TRIAL = (*NAMESPACES, "--unshare-net", "--ro-bind", "/", "/", *SYSTEM, "--remount-ro", "/dev")
INNER_SOCKET = Path("/run/zelda/api.sock")
PRIVATE = {"tmp": Path("/tmp"), "var-tmp": Path("/var/tmp"), "shm": Path("/dev/shm")}  # noqa: S108  # a mount of our own
TEMPORARY = tuple(PRIVATE.values())


def python(*, anybody: bool = False) -> list[str]:
    """The interpreter itself, not a link to it, with nothing but the standard library; for `anybody`, an open one."""
    base = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    # A copy of it runs where the original lies in a folder that is closed to this user, too.
    base = base if os.access(base, os.X_OK) else os.path.realpath(sys.executable)
    if anybody and not is_open(Path(base)):
        base = next((other for other in OTHERS if is_open(Path(other))), base)
    return [base, "-I", "-S"]


def inside(policy: Mapping[str, Any], *, anybody: bool = False, world: Sequence[str] = ()) -> list[str]:
    """What starts a program that first gives up rights, in a `world` of its own where bubblewrap does not make it."""
    # As one argument, which may not be longer than 128 KiB, and in a form that is read fast.
    packed = binascii.b2a_base64(marshal.dumps(dict(policy), 2), newline=False).decode()
    return [*python(anybody=anybody), str(START), "inside", packed, *world, "--"]


def unreadable() -> str:
    """A value of BUN_OPTIONS that keeps other processes from looking into Claude Code, whose runtime is Bun."""
    # As an address that holds the program itself: no file has to be within the reach of a run.
    return f"--preload=data:text/javascript;base64,{base64.b64encode(UNREADABLE.read_bytes()).decode()}"


def supervisor(parent: int) -> list[str]:
    """What starts a program whose descendants all end with it, and with the parent."""
    return [*python(), str(START), "supervisor", "--parent", str(parent)]


@dataclass(frozen=True)
class SandboxMounts:
    """What a run sees of the machine's files; the model proxy's `socket` becomes `INNER_SOCKET`."""

    readable: Sequence[Path]
    writable: Sequence[Path]
    private: Path
    """Holds what becomes /tmp, /var/tmp and /dev/shm: on disk, where it counts as the run's."""
    socket: Path | None = None


def bubblewrap_options(mounts: SandboxMounts, *, internet: bool) -> list[str]:
    """Options, all known to `launcher/inside.py`, for a program behind these mounts; `internet` is the machine's."""
    options = [*NAMESPACES, *(() if internet else ("--unshare-net",)), *SYSTEM, "--dir", "/run", "--dir", "/var"]
    # Later mounts lie on top of earlier ones.
    for name, place in PRIVATE.items():
        options += ["--bind", str(mounts.private / name), str(place)]
    for path in map(str, mounts.readable):
        is_link = path in SYSTEM_LINKS and os.path.islink(path)  # noqa: PTH114  # a string
        options += ["--symlink", os.readlink(path), path] if is_link else ["--ro-bind", path, path]  # noqa: PTH115
    for path in map(str, mounts.writable):
        options += ["--bind", path, path]
    if mounts.socket is not None:
        options += ["--bind", str(mounts.socket), str(INNER_SOCKET)]
    # After the mounts: bubblewrap works through its arguments in order, and needs to make the places to mount at.
    return [*options, "--remount-ro", "/dev", "--remount-ro", "/"]
