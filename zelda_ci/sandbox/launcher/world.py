"""Makes the world that bubblewrap makes, for machines without it, from the same options; a part of `inside.py`."""

import ctypes
import os
import stat
import struct

from zelda_ci.sandbox.launcher.shared import LIBC, PR_SET_PDEATHSIG, call, prctl

# The C library wraps none of these calls; their numbers are the same on both architectures.
OPEN_TREE, MOVE_MOUNT, CLOSE_RANGE, MOUNT_SETATTR = 428, 429, 436, 442
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC, MOVE_MOUNT_F_EMPTY_PATH = 1, os.O_CLOEXEC, 4
READ_ONLY, NO_SETUID, NO_DEVICES = 1, 2, 4

NEW_USER, NEW_NETWORK, NEW_CGROUP = 0x10000000, 0x40000000, 0x2000000
# Mount, UTS, IPC, user, process.
NEW = 0x20000 | 0x4000000 | 0x8000000 | NEW_USER | 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE, DETACH = 2, 4, 8, 1 << 14, 1 << 18, 2
PR_SET_DUMPABLE, SIGKILL = 4, 9
AF_INET, SOCK_DGRAM, SIOCSIFFLAGS, IFF_UP = 2, 2, 0x8914, 1

# Where the new world is put together: a folder that every system has. What lies there is reached by descriptors.
PLACE = "/tmp"  # noqa: S108  # nothing is written there
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
         "core": "/proc/kcore", "ptmx": "pts/ptmx"}  # fmt: skip
# Type, flags and data of what is mounted anew.
MOUNTS = {
    "--proc": ("proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, ""),
    "tmpfs": ("tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755"),
    "devpts": ("devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"),
}


def enter(options: "list[str]") -> None:
    """Make a world with the options that `bubblewrap_options` gives, and return in the first process within it.

    As with bubblewrap, this process waits outside, the first one within reaps what dies there (`descend`), and the
    program runs below it; both end with its exit code.

    Raises:
        OSError: The kernel refuses a step, which is named.
    """
    steps = _steps(options)
    uid, gid, here = os.geteuid(), os.getegid(), os.getcwd()
    call("namespaces", LIBC.unshare, NEW | (NEW_NETWORK if ("--unshare-net",) in steps else 0))
    LIBC.unshare(NEW_CGROUP)
    # As root of the new one, since nobody else may mount terminals there.
    _map(0, uid, 0, gid)
    prctl("parent death signal", PR_SET_PDEATHSIG, SIGKILL)
    _fork()
    _build(steps, here)
    call("user", LIBC.unshare, NEW_USER)
    _map(uid, 0, gid, 0)
    # The kernel forgets this wish when rights change.
    prctl("parent death signal", PR_SET_PDEATHSIG, SIGKILL)


def descend() -> None:
    """Return in a child of this process, which has given up its rights and lets nobody look into it."""
    prctl("dumpable", PR_SET_DUMPABLE, 0)
    _fork()


def _fork() -> None:
    """Return in a child; this process reaps children until that one has ended, and what is left dies with it."""
    program = os.fork()
    if program == 0:
        return
    # Nothing stays open that is the program's: others of its user could open it here. `/proc` is not asked, which
    # becomes the new world's as soon as the first process in it changes the root.
    call("descriptors", LIBC.syscall, CLOSE_RANGE, 3, ctypes.c_uint(-1), 0)
    while True:
        pid, status = os.wait()
        if pid == program:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _steps(options: list[str]) -> "list[tuple[str, ...]]":
    """Each option with what belongs to it."""
    found: list[tuple[str, ...]] = []
    for word in options:
        if word.startswith("--"):
            found.append((word,))
        else:
            found[-1] = (*found[-1], word)
    return [part for step in found for part in (_devices(step[1]) if step[0] == "--dev" else [step])]


def _devices(place: str) -> "list[tuple[str, ...]]":
    """What `--dev` consists of."""
    return [
        ("tmpfs", place),
        *(("--dev-bind", f"/dev/{name}", f"{place}/{name}") for name in DEVICES),
        *(("--symlink", target, f"{place}/{name}") for name, target in LINKS.items()),
        ("--dir", f"{place}/shm"),
        ("devpts", f"{place}/pts"),
    ]


def _map(uid: int, outer_uid: int, gid: int, outer_gid: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {outer_uid} 1"), ("gid_map", f"{gid} {outer_gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _build(steps: "list[tuple[str, ...]]", here: str) -> None:
    """Put together what the program shall see, and leave everything else."""
    if ("--unshare-net",) in steps:
        # Without a loopback nothing in a network of its own could be reached, not even by itself.
        any_socket = call("loopback", LIBC.socket, AF_INET, SOCK_DGRAM, 0)
        request = ctypes.create_string_buffer(struct.pack("16sH14x", b"lo", IFF_UP))
        call("loopback", LIBC.ioctl, any_socket, ctypes.c_ulong(SIOCSIFFLAGS), request)
        os.close(any_socket)
    mask = os.umask(0o022)
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    # All of them first, since the new world may hide them.
    trees = {step: _tree(step[1], is_optional=step[0].endswith("-try")) for step in steps if "bind" in step[0]}
    _mount("tmpfs", PLACE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    os.chdir(PLACE)
    for step in steps:
        kind, place = step[0], f".{step[-1]}"  # from where the new world is put together
        match kind:
            case "--dir":
                os.makedirs(place, exist_ok=True)
            case "--proc" | "tmpfs" | "devpts":
                os.makedirs(place, exist_ok=True)
                _mount(kind, place, *MOUNTS[kind])
            case "--symlink":
                os.makedirs(os.path.dirname(place), exist_ok=True)
                os.symlink(step[1], place)
            case "--remount-ro":
                _set(AT_FDCWD, place, READ_ONLY, 0)
            case _ if trees.get(step, -1) >= 0:
                if kind != "--dev-bind":
                    _set(trees[step], "", NO_SETUID | NO_DEVICES | (READ_ONLY if kind != "--bind" else 0))
                _attach(trees[step], place)
                # On what lies there now, which may be a root of another's.
                os.chdir(PLACE)
            case _:
                pass
    machine = os.uname().machine
    call("root", LIBC.syscall, PIVOT_ROOT[machine], b".", b".")
    call("root", LIBC.umount2, b".", DETACH)
    os.chdir("/")
    if os.path.isdir(here):
        os.chdir(here)
    os.umask(mask)


def _tree(path: str, *, is_optional: bool = False) -> int:
    """What lies at a path, mounts in it included, to be attached elsewhere; negative where nothing needs to."""
    flags = ctypes.c_uint(OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)
    tree: int = LIBC.syscall(OPEN_TREE, AT_FDCWD, os.fsencode(path), flags)
    if tree < 0 and not is_optional:
        raise OSError(f"{path}: {os.strerror(ctypes.get_errno())}")
    return tree


def _set(place: int, path: str, attributes: int, flags: int = AT_EMPTY_PATH | AT_RECURSIVE) -> None:
    """Take rights away from a mount."""
    wanted = (ctypes.c_uint64 * 4)(attributes)
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    call(path, LIBC.syscall, MOUNT_SETATTR, place, os.fsencode(path), flags, ctypes.byref(wanted), size)


def _attach(tree: int, path: str) -> None:
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        os.makedirs(path, exist_ok=True)
    elif not os.path.lexists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC))
    call(path, LIBC.syscall, MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(path), MOVE_MOUNT_F_EMPTY_PATH)
    os.close(tree)


def _mount(source: str, place: str, kind: "str | None", flags: int, data: str = "") -> None:
    words = (source.encode(), os.fsencode(place), kind.encode() if kind else None)
    call(f"{kind or 'mounts'} at {place}", LIBC.mount, *words, ctypes.c_ulong(flags), data.encode() or None)
