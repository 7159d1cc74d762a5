"""Gives up rights as it is told, then becomes another program.

Run as `start.py inside POLICY OPTION… -- PROGRAM ARGUMENT…` with a dictionary as `marshal` writes it, in Base64, and
bubblewrap's options where this program is to make the same world. It imports little, since every command waits for it.
A right that cannot be given up ends it with exit code 125 and a sentence: what runs is confined as ordered, or not run.
"""

import binascii
import ctypes
import errno
import marshal
import os
import resource
import stat
import struct
import warnings  # noqa: F401  # `os.execvp` imports it, when Python's own files may be out of reach

from zelda_ci.sandbox.launcher import shared
from zelda_ci.sandbox.launcher.shared import LIBC, call, prctl

# The C library wraps none of these calls; their numbers are the same on both architectures.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
OPEN_TREE, MOVE_MOUNT, CLOSE_RANGE, MOUNT_SETATTR = 428, 429, 436, 442
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
PATH_BENEATH = 1
# To execute, write, read, truncate and control as a device: what makes sense for something that is no folder.
FILE_RIGHTS = 0b1100000000000111
# A path that cannot be reached needs no permission.
ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP}
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 4, 22, 24, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
FILTER = 2
# What the kernel can hold in two words of 32 bits; it has about forty, and refuses the first that it does not know.
MAX_CAPABILITIES = 64
CAPABILITIES_V3 = 0x20080522
SIGKILL = 9

CLONE_NEWNS, NEW_USER, NEW_NETWORK, NEW_CGROUP = 0x20000, 0x10000000, 0x40000000, 0x2000000
# Mount, UTS, IPC, user, process.
NEW = CLONE_NEWNS | 0x4000000 | 0x8000000 | NEW_USER | 0x20000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE, DETACH = 1, 2, 4, 8, 1 << 14, 1 << 18, 2
MS_SAFE = MS_NOSUID | MS_NODEV | MS_NOEXEC
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC, MOVE_MOUNT_F_EMPTY_PATH = 1, os.O_CLOEXEC, 4
READ_ONLY, NO_SETUID, NO_DEVICES = 1, 2, 4
AF_INET, SOCK_DGRAM, SIOCSIFFLAGS, IFF_UP = 2, 2, 0x8914, 1

# Where a new world is put together: a folder that every system has. What lies there is reached by descriptors.
PLACE = "/tmp"  # noqa: S108  # nothing is written there
# What `--dev` consists of.
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
         "core": "/proc/kcore", "ptmx": "pts/ptmx"}  # fmt: skip
# Type, flags and data of what is mounted anew.
MOUNTS = {
    "--proc": ("proc", MS_SAFE, ""),
    "tmpfs": ("tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755"),
    "devpts": ("devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"),
}


class Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def main(arguments: list[str]) -> None:
    """Confine this process, then become the program."""
    try:
        argv = _confine(arguments)
    except Exception as error:  # noqa: BLE001  # nobody is above to explain it
        reason = str(error) or type(error).__name__
        shared.fail(shared.NOT_CONFINED, f"the program was not started, because it could not be confined: {reason}")
    shared.execute(argv)


def _confine(arguments: list[str]) -> list[str]:
    """Give up all rights as ordered, and return the program with its arguments."""
    policy = marshal.loads(binascii.a2b_base64(arguments[0]))  # noqa: S302  # Zelda's own
    border = arguments.index("--")
    options = arguments[1:border]
    # Not needed where bubblewrap makes namespaces.
    if options:
        _enter(options)
    # Lower limits, never raise one.
    for name, most in policy.get("limits", {}).items():
        number = getattr(resource, f"RLIMIT_{name}")
        soft, hard = (most if old == resource.RLIM_INFINITY else min(old, most) for old in resource.getrlimit(number))
        resource.setrlimit(number, (soft, hard))
    if "hidden" in policy:
        _hide(policy["hidden"])
    # Asked before the user changes, so that a parent that dies in between is noticed afterwards.
    parent = os.getppid()
    _drop_privileges(policy.get("uid"))
    if "uid" in policy:
        # The kernel forgets this wish when a process becomes another user's.
        prctl("parent death signal", shared.PR_SET_PDEATHSIG, SIGKILL)
        # It died before the kernel was asked to tell us, and will not tell any more.
        if os.getppid() != parent:
            os._exit(128 + SIGKILL)
    # Without it the kernel lets only root install a filter, and a setuid program would get its rights back.
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)
    if options:
        # The program is a child of this process, which has given up its rights and lets nobody look into it.
        prctl("dumpable", PR_SET_DUMPABLE, 0)
        _fork()
    if "landlock" in policy:
        _landlock(**policy["landlock"])
    if "seccomp" in policy:
        filters = bytes.fromhex(policy["seccomp"])
        prctl("seccomp", PR_SET_SECCOMP, FILTER, ctypes.byref(Program(len(filters) // 8, filters)))
    LIBC.setsid()  # fails for who is a leader already
    # Last of all: from here on nothing of ours can fail any more but finding the program.
    if policy.get("ready"):
        shared.report_ready()
    return arguments[border + 1 :]


def _hide(folders: list[str]) -> None:
    """Leave the processes and sockets of others out of sight, where root may mount; a container's seldom may.

    Files stay closed by user and Landlock in any case, so whatever cannot be mounted stays as it is.
    """
    if LIBC.unshare(CLONE_NEWNS) != 0 or LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        return
    LIBC.mount(b"proc", b"/proc", b"proc", MS_SAFE, b"hidepid=2")
    for folder in folders:
        LIBC.mount(b"tmpfs", folder.encode(), b"tmpfs", MS_SAFE | MS_RDONLY, b"size=4k,mode=755")


def _drop_privileges(uid: int | None) -> None:
    """From root, if need be, to a user that owns nothing but the run; and whoever it is, without capabilities."""
    # The bounding set first: as another user we would no longer be allowed to change it.
    for capability in range(MAX_CAPABILITIES):
        if LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break  # the last one, or not permitted: no_new_privs keeps them out too
    prctl("ambient capabilities", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    if uid is not None:
        shared.become_user(uid)
        # A fakeroot makes the calls succeed without any effect.
        if (os.getuid(), os.geteuid(), os.getgid(), os.getegid(), os.getgroups()) != (uid, uid, uid, uid, []):
            raise OSError("the user could not be changed")
    call("capabilities", LIBC.capset, (ctypes.c_uint32 * 2)(CAPABILITIES_V3, 0), (ctypes.c_uint32 * 6)())
    with open("/proc/self/status") as file:
        capabilities = [line for line in file if line.startswith(("CapEff:", "CapPrm:", "CapInh:", "CapAmb:"))]
    # What the kernel reports counts, not that the calls returned without an error.
    if len(capabilities) != 4 or any(int(line.split()[1], 16) for line in capabilities):
        raise OSError("capabilities could not be dropped")


def _landlock(files: int, tcp: int, scoped: int, rules: list[tuple[int, list[str]]]) -> None:
    # A kernel that knows fewer takes what it does not know, as long as that is zero.
    handled = struct.pack("=3Q", files, tcp, scoped)
    size = ctypes.c_size_t(len(handled))
    ruleset = call("landlock_create_ruleset", LIBC.syscall, CREATE_RULESET, handled, size, 0)
    for rights, path in ((rights, path) for rights, paths in rules for path in paths):
        try:
            # By descriptor: the rule is about the file that is there now, whatever lies at the path later.
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in ABSENT:
                continue
            raise
        # The kernel refuses a rule for a file that speaks of what only folders have.
        allowed = rights if stat.S_ISDIR(os.fstat(place).st_mode) else rights & FILE_RIGHTS
        rule = struct.pack("=Qi", allowed, place)
        call("landlock_add_rule", LIBC.syscall, ADD_RULE, ruleset, PATH_BENEATH, rule, 0)
        os.close(place)
    call("landlock_restrict_self", LIBC.syscall, RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _enter(options: list[str]) -> None:
    """Make a world with the options that `bubblewrap_options` gives, and return in the first process within it.

    As with bubblewrap, this process waits outside, the first one within reaps what dies there, and the program runs
    below it; both end with its exit code. An `OSError` names the step that the kernel refuses.
    """
    steps = _steps(options)
    uid, gid, here = os.geteuid(), os.getegid(), os.getcwd()
    call("namespaces", LIBC.unshare, NEW | (NEW_NETWORK if ("--unshare-net",) in steps else 0))
    LIBC.unshare(NEW_CGROUP)
    # As root of the new one, since nobody else may mount terminals there.
    _map(0, uid, 0, gid)
    prctl("parent death signal", shared.PR_SET_PDEATHSIG, SIGKILL)
    _fork()
    _build(steps, here)
    call("user", LIBC.unshare, NEW_USER)
    _map(uid, 0, gid, 0)
    # The kernel forgets this wish when rights change.
    prctl("parent death signal", shared.PR_SET_PDEATHSIG, SIGKILL)


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


def _steps(options: list[str]) -> list[tuple[str, ...]]:
    """Each option with what belongs to it, and instead of `--dev` its parts."""
    steps: list[tuple[str, ...]] = []
    for word in options:
        if not word.startswith("--"):
            steps[-1] = (*steps[-1], word)
            if steps[-1][0] == "--dev":
                binds = [("--dev-bind", f"/dev/{name}", f"{word}/{name}") for name in DEVICES]
                links = [("--symlink", target, f"{word}/{name}") for name, target in LINKS.items()]
                steps[-1:] = [("tmpfs", word), *binds, *links, ("--dir", f"{word}/shm"), ("devpts", f"{word}/pts")]
        else:
            steps.append((word,))
    return steps


def _map(uid: int, outer_uid: int, gid: int, outer_gid: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {outer_uid} 1"), ("gid_map", f"{gid} {outer_gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _build(steps: list[tuple[str, ...]], here: str) -> None:
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
    call("root", LIBC.syscall, PIVOT_ROOT[os.uname().machine], b".", b".")
    call("root", LIBC.umount2, b".", DETACH)
    os.chdir(here if os.path.isdir(here) else "/")
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


def _mount(source: str, place: str, kind: str | None, flags: int, data: str = "") -> None:
    words = (source.encode(), os.fsencode(place), kind.encode() if kind else None)
    call(f"{kind or 'mounts'} at {place}", LIBC.mount, *words, ctypes.c_ulong(flags), data.encode() or None)
