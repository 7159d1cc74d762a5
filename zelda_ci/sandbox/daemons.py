"""Sockets of container daemons: whoever reaches one can start a container with the machine's disk in it, as root.

GitHub's runner mounts /var/run/docker.sock into every container action. Namespaces leave it out. Other levels cannot
close a socket that has a path, so there its own permissions must.
"""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from zelda_ci.domain.suite import IsolationLevel
from zelda_ci.errors import ConfigError
from zelda_ci.sandbox.closed_folders import barrier

USUAL = (
    *("/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock"),
    *("/run/k3s/containerd/containerd.sock", "/run/buildkit/buildkitd.sock", "/var/snap/lxd/common/lxd/unix.socket"),
    *("/var/lib/incus/unix.socket", "/var/lib/lxd/unix.socket"),
)
OF_A_USER = ("docker.sock", "podman/podman.sock", "buildkit/buildkitd.sock")
ADDRESSES = ("DOCKER_HOST", "CONTAINER_HOST", "BUILDKIT_HOST")
WITHOUT_NAMESPACES: Sequence[IsolationLevel] = ("uid", "landlock")


def container_sockets(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Where they may be on this machine."""
    own = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    home = [f"{environ['HOME']}/.docker/run/docker.sock"] if environ.get("HOME") else []
    addresses = [environ[name] for name in ADDRESSES if name in environ]
    named = [address.removeprefix("unix://") for address in addresses if address.startswith("unix://")]
    return tuple(map(Path, (*USUAL, *(f"{own}/{name}" for name in OF_A_USER), *home, *named)))


def refuse_reachable(level: IsolationLevel, sockets: Iterable[Path]) -> None:
    """See to it that no run reaches one.

    Raises:
        ConfigError: A run at this level could (`ISOLATION_UNAVAILABLE`).
    """
    reachable = (path for path in sockets if level in WITHOUT_NAMESPACES and _is_reachable(path, level))
    for path in reachable:
        raise ConfigError(
            f"At isolation level {level}, session and commands could reach {path}, and with it the whole machine.",
            hint="Use the level full, close the socket to the user who runs Zelda, or give "
            "--unsafe (or ZELDA_UNSAFE=1) if you trust the code.",
            code="ISOLATION_UNAVAILABLE",
        )


def _is_reachable(path: Path, level: IsolationLevel) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    # At uid, the run's user is nobody else, and in no group.
    is_open = mode & stat.S_IWOTH and barrier(path) is None if level == "uid" else os.access(path, os.W_OK)
    return stat.S_ISSOCK(mode) and bool(is_open)
