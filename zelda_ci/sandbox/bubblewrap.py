"""Arguments for bubblewrap: a small world of namespaces that holds what a run may see, at the places where it lies."""

from collections.abc import Iterator, Sequence
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
INNER_SOCKET = Path("/run/zelda/api.sock")


@dataclass(frozen=True)
class SandboxMounts:
    readable: Sequence[Path]
    writable: Sequence[Path]
    private: Path
    """Holds what becomes /tmp, /var/tmp and /dev/shm: on disk, where it counts as the run's."""
    socket: Path | None = None
    """The model proxy's, which becomes `INNER_SOCKET`."""


PRIVATE = {"tmp": Path("/tmp"), "var-tmp": Path("/var/tmp"), "shm": Path("/dev/shm")}  # noqa: S108  # a mount of our own
TEMPORARY = tuple(PRIVATE.values())


def bubblewrap_command(maker: Sequence[str], world: SandboxMounts, *, internet: bool) -> list[str]:
    """Everything before the program to be run in that world, with no capability and no way to the terminal.

    Args:
        maker: bubblewrap, or `launcher/world.py`, which understands these options and no others.
        world: What the program sees.
        internet: Whether it keeps the machine's network.
    """
    network = () if internet else ("--unshare-net",)
    return [
        # A new session, because a terminal accepts input that a program types into it (TIOCSTI).
        *maker, *NAMESPACES, *network, "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        "--proc", "/proc", *SEALED, "--dev", "/dev", "--dir", "/run", "--dir", "/var",
        *_mounts(world),
        # After the mounts: bubblewrap works through its arguments in order, and needs to make the places to mount at.
        "--remount-ro", "/dev", "--remount-ro", "/", "--",
    ]  # fmt: skip


def _mounts(world: SandboxMounts) -> Iterator[str]:
    """Later ones lie on top of earlier ones."""
    for name, place in PRIVATE.items():
        yield from ("--bind", str(world.private / name), str(place))
    for path in world.readable:
        yield from _shown(path)
    for path in world.writable:
        yield from ("--bind", str(path), str(path))
    if world.socket is not None:
        yield from ("--bind", str(world.socket), str(INNER_SOCKET))


def _shown(path: Path) -> Iterator[str]:
    if str(path) in SYSTEM_LINKS and path.is_symlink():
        yield from ("--symlink", str(path.readlink()), str(path))
    else:
        yield from ("--ro-bind", str(path), str(path))
