"""Gives up rights as it is told, then becomes another program.

Run as `start.py inside POLICY OPTION… -- PROGRAM ARGUMENT…` with a dictionary as `marshal` writes it, in Base64, and
options for a `world` of its own. It imports little of the standard library, since every command waits for it. A right
that cannot be given up ends it with exit code 125 and a sentence: what runs is confined as ordered, or does not run.
"""

import binascii
import ctypes
import errno
import marshal
import os
import resource
import stat
import struct

from zelda_ci.sandbox.launcher import shared, world
from zelda_ci.sandbox.launcher.shared import LIBC, call, prctl

# The C library wraps none of Landlock's calls; their numbers are the same on both architectures.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH = 1
# To execute, write, read, truncate and control as a device: what makes sense for something that is no folder.
FILE_RIGHTS = 0b1100000000000111
# A path that cannot be reached needs no permission.
ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP}

PR_CAPBSET_DROP, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 24, 22, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
FILTER = 2
# What the kernel can hold in two words of 32 bits; it has about forty, and refuses the first that it does not know.
MAX_CAPABILITIES = 64
CAPABILITIES_V3 = 0x20080522

CLONE_NEWNS = 0x20000
MS_RDONLY, MS_REC, MS_PRIVATE = 1, 1 << 14, 1 << 18
MS_SAFE = 2 | 4 | 8  # no setuid programs, no devices, no programs
SIGKILL = 9


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
        world.enter(options)
    _limit(policy.get("limits", {}))
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
        world.descend()
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


def _limit(limits: dict[str, int]) -> None:
    """Lower limits, never raise one."""
    for name, most in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        soft, hard = (most if old == resource.RLIM_INFINITY else min(old, most) for old in resource.getrlimit(number))
        resource.setrlimit(number, (soft, hard))


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
        # Groups first, then the group, then the user: each step takes away the right to do the one before.
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
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
