"""As whom Zelda is run: the user of the test, or as root another one that has no rights."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from signal import SIGKILL

REPOSITORY = Path(__file__).parents[2]
NOBODY_IN_PARTICULAR = 64_242
IN_A_CONTAINER = (
    "chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,mknod,audit_write,setfcap"
)  # fmt: skip
"""What Docker leaves to root by default: no CAP_SYS_ADMIN, no ptrace."""


@dataclass(frozen=True)
class Developer:
    """A user, and how a program is started as that user."""

    uid: int
    gid: int
    prefix: tuple[str, ...] = ()
    python: str = sys.executable
    path: tuple[str, ...] = field(default=())
    """Where Python finds Zelda and what it needs."""
    modules: tuple[str, ...] = ("zelda_ci",)

    @property
    def kind(self) -> str:
        return "root" if self.uid == 0 else "user"

    def argv(self, argv: Sequence[str]) -> list[str]:
        return [*self.prefix, *argv]

    def zelda(self, *arguments: str) -> list[str]:
        return self.argv([self.python, "-m", *self.modules, *arguments])

    def variables(self) -> dict[str, str]:
        return {"PYTHONPATH": os.pathsep.join(self.path), "PYTHONDONTWRITEBYTECODE": "1"}

    @contextmanager
    def process(self, argv: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[int]:
        """A process of the developer's, under way meanwhile."""
        variables = {"PATH": os.environ["PATH"], **(environment or {})}
        null = subprocess.DEVNULL
        started = subprocess.Popen(
            self.argv(argv), env=variables, stdin=null, stdout=null, stderr=null, start_new_session=True
        )
        try:
            yield started.pid
        finally:
            with suppress(ProcessLookupError):
                os.killpg(started.pid, SIGKILL)
            started.wait()


def unprivileged() -> Developer:
    """The user of the test, or where that is root, one who may do nothing.

    Raises:
        LookupError: No Python that this user could start has what Zelda needs.
    """
    if os.geteuid() != 0:
        return Developer(os.geteuid(), os.getegid(), path=_packages())
    number = str(NOBODY_IN_PARTICULAR)
    # setpriv itself may still start what this user may not: hence another program in between.
    prefix = ("setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--bounding-set=-all", "env")
    return Developer(NOBODY_IN_PARTICULAR, NOBODY_IN_PARTICULAR, prefix, _python_for(prefix), _packages())


def with_bubblewrap() -> Developer:
    """The same user where only bubblewrap may make namespaces.

    Raises:
        LookupError: As in `unprivileged`.
    """
    return replace(unprivileged(), modules=("tests.support.only_bubblewrap", "zelda_ci"))


def root() -> Developer:
    return Developer(0, 0, path=_packages())


def root_in_a_container() -> Developer:
    """Root without namespaces: what an ordinary container gives."""
    kept = ",".join(f"+{name}" for name in IN_A_CONTAINER.split(","))
    # Runs are another user's here, who must be able to start it too.
    python = unprivileged().python
    return Developer(0, 0, ("setpriv", f"--bounding-set=-all,{kept}"), python, _packages())


def _packages() -> tuple[str, ...]:
    return (str(REPOSITORY), *(entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))))


@cache
def _python_for(prefix: tuple[str, ...]) -> str:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/local/bin/{version}", f"/usr/bin/{version}"):
        environment = {"PYTHONPATH": os.pathsep.join(_packages()), "PYTHONDONTWRITEBYTECODE": "1"}
        argv = [*prefix, python, "-c", "import zelda_ci.app"]
        done = subprocess.run(argv, env=environment, cwd="/", check=False, capture_output=True)
        if done.returncode == 0:
            return python
    raise LookupError(f"no {version} that a user without rights could start has Zelda's dependencies")
