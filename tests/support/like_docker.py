"""Becomes another program, with no more rights than root has in a container of Docker's defaults."""

import ctypes
import os
import platform
import sys

from zelda_ci.sandbox import kernel
from zelda_ci.sandbox.launcher.inside import Program

CAPABILITIES = (
    "chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,mknod,"
    "audit_write,setfcap"
)


def main(argv: list[str]) -> None:
    filters = kernel.program(platform.machine(), "full", internet=True)
    program = Program(len(filters) // 8, filters)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0, os.strerror(ctypes.get_errno())
    kept = ",".join(["-all", *(f"+{name}" for name in CAPABILITIES.split(","))])
    os.execvp("setpriv", ["setpriv", f"--bounding-set={kept}", "--inh-caps=-all", *argv])


if __name__ == "__main__":
    main(sys.argv[1:])
