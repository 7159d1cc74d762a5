"""A program of its own: gives up rights as it is told, then becomes another program.

Run as `python -I -S inside.py POLICY OPTION… -- PROGRAM ARGUMENT…` with a dictionary as `marshal` writes it, in Base64,
and options for a `world` of its own. It imports nothing of Zelda but that, and little of the standard library, since
every command waits for it. A right that cannot be given up ends it with exit code 125 and a sentence: what runs is
confined as ordered, or does not run.
"""

import binascii
import ctypes
import errno
import marshal
import os
import resource
import stat
import sys

TYPE_CHECKING = False  # what `typing` has of that name costs too much at every start
if TYPE_CHECKING:
    from typing import Any

# The C library wraps none of Landlock's calls; their numbers are the same on both architectures.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH = 1
# To execute, write, read, truncate and control as a device: what makes sense for something that is no folder.
FILE_RIGHTS = 0b1100000000000111
# A path that cannot be reached needs no permission.
ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP}

PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 24, 22, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
FILTER = 2
# Two words of 32 bits is what the kernel can hold; it has about forty, and refuses the first number that it does not
# know.
MAX_CAPABILITIES = 64
CAPABILITIES_V3 = 0x20080522

CLONE_NEWNS = 0x20000
MS_RDONLY, MS_REC, MS_PRIVATE = 1, 1 << 14, 1 << 18
MS_SAFE = 2 | 4 | 8  # no setuid programs, no devices, no programs

SIGKILL, SIGPIPE, SIGXFSZ = 9, 13, 25
# What Python ignores, and a program expects to find at its default.
RESTORED = (SIGPIPE, SIGXFSZ)

SECRETS = 4
# Variable of a program that says itself that it is confined; `unreadable.js` reads it.
CLOSES_ITSELF = "ZELDA_CONFINED"
# Where a supervisor puts standard input and output, out of the reach of what comes between it and us.
STREAMS = (5, 6)

LIBC = ctypes.CDLL(None, use_errno=True)


class Beneath(ctypes.Structure):
    """`struct landlock_path_beneath_attr`."""

    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("parent", ctypes.c_int32))


class Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def main(arguments: list[str]) -> None:
    """Confine this process, then become the program."""
    policy = marshal.loads(binascii.a2b_base64(arguments[0]))  # noqa: S302  # Zelda's own
    border = arguments.index("--")
    options, argv = arguments[1:border], arguments[border + 1 :]
    if options:
        _world().enter(options)
    for name in policy.get("drop", ()):
        os.environ.pop(name, None)
    _limit(policy.get("limits", {}))
    if "hidden" in policy:
        _hide(policy["hidden"])
    # Asked before the user changes, so that a parent that dies in between is noticed afterwards.
    parent = os.getppid()
    _drop_privileges(policy.get("uid"))
    if "uid" in policy:
        _die_with(parent)
    # Without it the kernel lets only root install a filter, and a setuid program would get its rights back.
    _prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)
    if options:
        _world().descend()
    if "landlock" in policy:
        _landlock(policy["landlock"])
    if "seccomp" in policy:
        filters = bytes.fromhex(policy["seccomp"])
        _prctl("seccomp", PR_SET_SECCOMP, FILTER, ctypes.byref(Program(len(filters) // 8, filters)))
    LIBC.setsid()  # fails for who is a leader already
    # An ignored signal stays ignored across exec, so that a program whose pipe is closed would write on for ever.
    for number in RESTORED:
        LIBC.signal(number, None)
    # Last of all: from here on nothing of ours can fail any more but finding the program.
    if "ready" in policy:
        _report_ready(policy["ready"])
    _start(argv)


def _world() -> "Any":
    """The module that makes namespaces, which is not needed where bubblewrap does."""
    sys.path.append(os.path.abspath(f"{__file__}/../../../.."))  # noqa: PTH100  # pathlib would slow the start
    from zelda_ci.sandbox.launcher import world  # noqa: PLC0415  # see above

    return world


def _report_ready(number: int) -> None:
    """Take the streams, and report it, unless a program that closes itself first does so and gets the secrets."""
    for place, stream in enumerate(STREAMS):
        os.dup2(stream, place)
        os.close(stream)
    if os.environ.get(CLOSES_ITSELF) == "1":
        return
    os.write(number, b"R")
    for descriptor in (number, SECRETS):
        os.close(descriptor)


def _start(argv: list[str]) -> None:
    try:
        os.execvp(argv[0], argv)  # noqa: S606  # what this program is for
    except FileNotFoundError:
        _fail(127, f"{argv[0]}: no such program")
    except OSError as error:
        _fail(126, f"{argv[0]}: {error.strerror}")


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
    _prctl("ambient capabilities", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    if uid is not None:
        _become(uid)
    if LIBC.capset((ctypes.c_uint32 * 2)(CAPABILITIES_V3, 0), (ctypes.c_uint32 * 6)()) != 0:
        raise OSError(f"capabilities: {os.strerror(ctypes.get_errno())}")
    with open("/proc/self/status") as file:  # noqa: PTH123  # pathlib would slow the start
        capabilities = [line for line in file if line.startswith(("CapEff:", "CapPrm:", "CapInh:", "CapAmb:"))]
    # What the kernel reports counts, not that the calls returned without an error.
    if len(capabilities) != 4 or any(int(line.split()[1], 16) for line in capabilities):
        raise OSError("capabilities could not be dropped")


def _become(uid: int) -> None:
    # Groups first, then the group, then the user: each step takes away the right to do the one before.
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    # A fakeroot makes the calls succeed without any effect.
    if (os.getuid(), os.geteuid(), os.getgid(), os.getegid(), os.getgroups()) != (uid, uid, uid, uid, []):
        raise OSError("the user could not be changed")


def _die_with(parent: int) -> None:
    # The kernel forgets this wish when a process becomes another user's.
    _prctl("parent death signal", PR_SET_PDEATHSIG, SIGKILL)
    # It died before the kernel was asked to tell us, and will not tell any more.
    if os.getppid() != parent:
        os._exit(128 + SIGKILL)


def _landlock(policy: "dict[str, Any]") -> None:
    handled = (ctypes.c_uint64 * 3)(policy["files"], policy["tcp"], policy["scoped"])
    size = ctypes.c_size_t(policy["size"])
    ruleset = _syscall("landlock_create_ruleset", CREATE_RULESET, ctypes.byref(handled), size, 0)
    for rights, paths in policy["rules"]:
        for path in paths:
            _allow(ruleset, rights, path)
    _syscall("landlock_restrict_self", RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, rights: int, path: str) -> None:
    try:
        # By descriptor: the rule is about the file that is there now, whatever lies at the path later.
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in ABSENT:
            return
        raise
    if not stat.S_ISDIR(os.fstat(place).st_mode):
        # The kernel refuses a rule for a file that speaks of what only folders have.
        rights &= FILE_RIGHTS
    rule = Beneath(rights, place)
    _syscall("landlock_add_rule", ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), 0)
    os.close(place)


def _prctl(purpose: str, option: int, *values: object) -> None:
    # Several options are refused unless the arguments that they do not use are zero.
    zeros = (ctypes.c_ulong(0),) * (4 - len(values))
    if LIBC.prctl(option, *values, *zeros) != 0:
        raise OSError(f"{purpose}: {os.strerror(ctypes.get_errno())}")


def _syscall(purpose: str, *arguments: object) -> int:
    result: int = LIBC.syscall(*arguments)
    if result < 0:
        raise OSError(f"{purpose}: {os.strerror(ctypes.get_errno())}")
    return result


def _fail(code: int, message: str) -> None:
    os.write(2, f"{message}\n".encode("utf-8", "replace"))
    # No clean-up of Python's: it would flush and close what is the program's.
    os._exit(code)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Exception as error:  # noqa: BLE001  # nobody is above to explain it
        _fail(
            125, f"the program was not started, because it could not be confined: {str(error) or type(error).__name__}"
        )
