"""Makes the namespaces that bubblewrap makes, and ends; a program of its own, since nobody gets out of them again.

Exit code 0 where all could be made; else it prints the step at which the kernel refused, and its error's number:
`user` for the namespaces themselves, `mount` for a change of mounts within them, `proc` for a /proc of their own.
"""

import ctypes
import os
import sys

# Mount, UTS, IPC, user, process.
NAMESPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000
MS_REC, MS_PRIVATE = 1 << 14, 1 << 18
MS_SAFE = 2 | 4 | 8

LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Make them, one step after the other."""
    uid, gid = os.geteuid(), os.getegid()
    if LIBC.unshare(NAMESPACES) != 0:
        return _refused("user", ctypes.get_errno())
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123  # pathlib would slow the start
                file.write(text)
    except OSError as error:
        return _refused("user", error.errno or 0)
    # The first process of the new namespace: /proc shows that of whoever mounts it.
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        return _refused("mount", ctypes.get_errno())
    if LIBC.mount(b"proc", b"/proc", b"proc", MS_SAFE, None) != 0:
        return _refused("proc", ctypes.get_errno())
    return 0


def _refused(step: str, number: int) -> int:
    print(step, number, file=sys.stderr)  # noqa: T201
    return 1


if __name__ == "__main__":
    sys.exit(main())
