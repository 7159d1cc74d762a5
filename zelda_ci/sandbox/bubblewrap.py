"""Options for bubblewrap: namespaces, and mounts of what a run may see at the places where it lies."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
SYSTEM = (
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
    *("--proc", "/proc", *SEALED, "--dev", "/dev"),
)
# All that can fail where a system forbids namespaces.
TRIAL = (*NAMESPACES, "--unshare-net", "--ro-bind", "/", "/", *SYSTEM, "--remount-ro", "/dev")
INNER_SOCKET = Path("/run/zelda/api.sock")


@dataclass(frozen=True)
class SandboxMounts:
    """What a run sees of the machine's files."""

    readable: Sequence[Path]
    writable: Sequence[Path]
    private: Path
    """Holds what becomes /tmp, /var/tmp and /dev/shm: on disk, where it counts as the run's."""
    socket: Path | None = None
    """The model proxy's, which becomes `INNER_SOCKET`."""


PRIVATE = {"tmp": Path("/tmp"), "var-tmp": Path("/var/tmp"), "shm": Path("/dev/shm")}  # noqa: S108  # a mount of our own
TEMPORARY = tuple(PRIVATE.values())


def bubblewrap_options(mounts: SandboxMounts, *, internet: bool) -> list[str]:
    """Options for a program that runs behind these mounts, with no capability and no way to the terminal.

    `launcher/world.py` understands these, and no others. Without `internet` it loses the machine's network.
    """
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
