"""How strictly this machine can confine a run: found out by trying, and chosen before anything is spent.

Whoever reaches the socket of a container daemon can start a container with the machine's disk in it, as root; GitHub's
runner mounts /var/run/docker.sock into every container action. Namespaces leave it out. Other levels cannot close a
socket that has a path, so there its own permissions must.
"""

import os
import platform
import shutil
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from zelda_ci import process
from zelda_ci.domain.suite import IsolationLevel
from zelda_ci.errors import ConfigError
from zelda_ci.sandbox import kernel, programs
from zelda_ci.sandbox.readable_paths import barrier, unreachable

# From the weakest to the strongest.
STRENGTH: Sequence[IsolationLevel] = ("none", "landlock", "uid", "full")
PROBE_SECONDS = 10
UNSAFE_HINT = (
    "Give --unsafe (or ZELDA_UNSAFE=1) to let session and commands run as you, with all that you may read and write."
)
# What the weak levels leave open.
LEFT_OPEN: Mapping[IsolationLevel, str] = {
    "landlock": "session and commands run as your user: they can change modes and times of your files, see names of "
    "files and other processes' arguments, and talk to what listens on this machine's network",
    "none": "nothing is confined: code of the tested repository runs with all your rights",
}
AS_YOU = "and code of the tested repository would run as you."
# Settings of the kernel that forbid user namespaces: the value that does, and one that does not.
FORBIDDING = {
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "user.max_user_namespaces": ("0", "15000"),
}
# User ids that are nobody's on ordinary machines, and exist in containers whose users are mapped.
USERS = range(30000, 60000)
# Capabilities with which root can let a run be another user's, and yet measure and remove it.
NEEDED = {0: "CHOWN", 1: "DAC_OVERRIDE", 3: "FOWNER", 5: "KILL", 6: "SETGID", 7: "SETUID"}
# Instead of bubblewrap's path.
OWN = "own"
# Sockets of container daemons.
USUAL = (
    *("/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock"),
    *("/run/k3s/containerd/containerd.sock", "/run/buildkit/buildkitd.sock", "/var/snap/lxd/common/lxd/unix.socket"),
    *("/var/lib/incus/unix.socket", "/var/lib/lxd/unix.socket"),
)
OF_A_USER = ("docker.sock", "podman/podman.sock", "buildkit/buildkitd.sock")
ADDRESSES = ("DOCKER_HOST", "CONTAINER_HOST", "BUILDKIT_HOST")
WITHOUT_NAMESPACES: Sequence[IsolationLevel] = ("uid", "landlock")


@dataclass(frozen=True)
class Offered:
    """What this machine offers; why not better, in sentences; and the command that raises that, where one is known."""

    levels: frozenset[IsolationLevel]
    reasons: tuple[str, ...] = ()
    remedy: str | None = None

    @property
    def level(self) -> IsolationLevel:
        return max(self.levels, key=STRENGTH.index)


def probe(environ: Mapping[str, str], cli: Path | None = None) -> Offered:
    """Find out what can be had, by trying it once per process; other users must be able to read the CLI at `cli`."""
    return _probed(environ.get("PATH", os.defpath), cli)


def choose_level(offered: Offered, setting: str, require: IsolationLevel | None, *, unsafe: bool) -> IsolationLevel:
    """The level of a run, at least the required one, of a setting ("auto" is the best); none at all if `unsafe`."""
    level = next((name for name in STRENGTH if name == setting), offered.level)
    hints: Sequence[str] = offered.reasons
    if level not in offered.levels:
        problem = f"Isolation level {level} is not available on this machine."
    elif require is not None and STRENGTH.index(level) < STRENGTH.index(require):
        available = "the best that this machine offers" if setting == "auto" else "what isolation.level asks for"
        problem = f"Isolation level {require} is required, and {available} is {level}."
    elif level != "none" or unsafe:
        return level
    elif setting == "none":
        problem = f"Isolation level none protects nothing, {AS_YOU}"
        # What keeps the machine from more is beside the point where nothing was asked for.
        better = f"This machine offers {offered.level}: leave isolation.level at auto to have it."
        hints = [*([better] if offered.level != "none" else []), UNSAFE_HINT]
    else:
        problem, hints = f"This machine offers no isolation, {AS_YOU}", [*hints, UNSAFE_HINT]
    hint = " ".join(hints) or f"Available: {', '.join(name for name in STRENGTH if name in offered.levels)}."
    raise ConfigError(problem, hint=hint, code="ISOLATION_UNAVAILABLE")


def container_sockets(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Where sockets of container daemons may be on this machine."""
    own = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    home = [f"{environ['HOME']}/.docker/run/docker.sock"] if environ.get("HOME") else []
    addresses = [environ[name] for name in ADDRESSES if name in environ]
    named = [address.removeprefix("unix://") for address in addresses if address.startswith("unix://")]
    return tuple(map(Path, (*USUAL, *(f"{own}/{name}" for name in OF_A_USER), *home, *named)))


def refuse_reachable(level: IsolationLevel, sockets: Iterable[Path]) -> None:
    """Raise a `ConfigError` where a run at this level could reach one (`ISOLATION_UNAVAILABLE`)."""
    for path in sockets if level in WITHOUT_NAMESPACES else ():
        with suppress(OSError):
            mode = path.stat().st_mode
            # At uid, the run's user is nobody else, and in no group.
            is_open = mode & stat.S_IWOTH and barrier(path) is None if level == "uid" else os.access(path, os.W_OK)
            if stat.S_ISSOCK(mode) and is_open:
                reached = f"session and commands could reach {path}, and with it the whole machine."
                hint = "Use the level full, close the socket to the user who runs Zelda, or give --unsafe (or "
                hint += "ZELDA_UNSAFE=1) if you trust the code."
                raise ConfigError(f"At isolation level {level}, {reached}", hint=hint, code="ISOLATION_UNAVAILABLE")


def remark(level: IsolationLevel, offered: Offered) -> str | None:
    """What raises a weak level, the command first, and what it leaves open; nothing where it is a strong one."""
    if level not in LEFT_OPEN:
        return None
    if offered.level not in LEFT_OPEN:
        raised = f"This machine offers more: --isolation {offered.level}. "
    elif offered.remedy:
        raised = f"To isolate runs: {offered.remedy} - "
    else:
        raised = "".join(f"{reason} " for reason in offered.reasons)
    return f"{raised}At isolation level {level} {LEFT_OPEN[level]}."


@cache
def _probed(path: str, cli: Path | None) -> Offered:
    if sys.platform != "linux" or platform.machine() not in kernel.ARCHITECTURES:
        there = f"{sys.platform} {platform.machine()}"
        return Offered(frozenset({"none"}), (f"There is isolation on Linux on x86-64 and ARM, not on {there}.",))
    found, reasons, remedy, abi = set[IsolationLevel](["none"]), list[str](), None, kernel.version()
    if abi >= kernel.SCOPED:
        found.add("landlock")
    elif abi < kernel.MIN_LANDLOCK_ABI:
        reasons.append("The kernel has no Landlock, or an old one: Linux 6.2 or newer has what is needed.")
    else:
        reasons.append("The kernel's Landlock cannot keep signals and abstract sockets apart: Linux 6.12 or newer can.")
    if has_namespaces := namespace_maker(path) is not None:
        found.add("full")
    elif refused := _refused():
        remedy = _remedy(refused)
        reasons.append(f"Namespaces cannot be made here ({refused}): {remedy or 'this system forbids them.'}")
    # Where namespaces are to be had, nobody takes this by chance, and an attempt would cost every start.
    obstacle = _user_problem(cli, try_it=not has_namespaces)
    if obstacle is None and abi >= kernel.MIN_LANDLOCK_ABI:
        found.add("uid")
    if obstacle and not has_namespaces and os.geteuid() == 0:
        reasons.append(obstacle)
    return Offered(frozenset(found), tuple(reasons), remedy)


@cache
def namespace_maker(path: str) -> str | None:
    """What makes namespaces here: Zelda itself (`OWN`), or bubblewrap where the system allows only that."""
    if not _refused():
        return OWN
    bwrap = shutil.which("bwrap", path=path) or shutil.which("bwrap", path=os.defpath)
    return bwrap if bwrap and _tried([bwrap, *programs.TRIAL, "--", "true"]) is None else None


@cache
def _refused() -> str | None:
    """Which step towards namespaces the kernel refuses Zelda itself, and why."""
    problem = _tried([*programs.inside({}, world=programs.TRIAL), "true"])
    return problem and problem.rpartition("could not be confined: ")[2]


def _remedy(refused: str) -> str | None:
    label = _content("/proc/self/attr/apparmor/current") or _content("/proc/self/attr/current")
    hindrances = {
        "seccomp": "\nSeccomp:\t2\n" in _content("/proc/self/status"),
        "apparmor": label.strip("\0\n") not in {"", "unconfined"},
        "systempaths": " /proc/" in _content("/proc/self/mountinfo"),
    }
    options = [name for name, is_there in hindrances.items() if is_there]
    settings = {name: _content(f"/proc/sys/{name.replace('.', '/')}").strip() for name in FORBIDDING}
    return remedy(refused, settings, options, is_root=os.geteuid() == 0)


def remedy(refused: str, settings: Mapping[str, str], options: Sequence[str], *, is_root: bool) -> str | None:
    """The one command that lets namespaces be made, as far as it can be known; a container's `options` hinder it."""
    forbidding = [name for name, (bad, _) in FORBIDDING.items() if settings.get(name) == bad]
    if "No space left" in refused:
        forbidding, options = [name for name in forbidding if name.startswith("user.")], []
    elif "proc at" in refused:
        forbidding, options = [], list(dict.fromkeys([*options, "systempaths"]))
    # AppArmor's does not bind root.
    changes = [f"{name}={FORBIDDING[name][1]}" for name in forbidding if not (is_root and "apparmor" in name)]
    command = f"{'' if is_root else 'sudo '}sysctl -w {' '.join(changes)}" if changes else ""
    words = " ".join(f"--security-opt {name}=unconfined" for name in options)
    return " and ".join(filter(None, [command, words and f"start the container with {words}"])) or None


def _content(file: str) -> str:
    with suppress(OSError):
        return Path(file).read_text()
    return ""


def _user_problem(cli: Path | None, *, try_it: bool) -> str | None:
    """Why nothing can be run as another user; found out by looking, or by trying too."""
    if os.geteuid() != 0:
        return "Only root can let runs be another user's."
    status = _content("/proc/self/status").splitlines()
    held = next((int(line.split()[1], 16) for line in status if line.startswith("CapEff:")), 0)
    if missing := [name for number, name in NEEDED.items() if not held >> number & 1]:
        return f"Root cannot let runs be another user's without the capabilities {', '.join(missing)}."
    files = [Path(programs.python(anybody=True)[0]), programs.START, *([cli] if cli else [])]
    if closed := next(filter(None, map(unreachable, files)), None):
        return f"Runs cannot be another user's here: {closed}"
    if not try_it:
        return None
    filters = kernel.program(platform.machine(), "uid", internet=True).hex()
    landlock = kernel.policy(kernel.version(), [Path("/")], [], internet=True)
    policy = {"uid": USERS[0], "landlock": landlock, "seccomp": filters}
    script = 'for file; do test -r "$file" || { echo "$file cannot be read" >&2; exit 1; }; done'
    problem = _tried([*programs.inside(policy, anybody=True), "/bin/sh", "-c", script, "sh", *map(str, files)])
    return problem and f"Runs cannot be another user's here ({problem})."


def _tried(argv: Sequence[str]) -> str | None:
    """The last line that a failed program printed on standard error; nothing where it went well."""
    try:
        outcome = process.answer(argv, timeout_seconds=PROBE_SECONDS)
    except (OSError, TimeoutError) as error:
        return str(error)
    *_, last = ("", *outcome.stderr.decode("utf-8", "replace").strip().splitlines())
    return None if outcome.exit_code == 0 else last or f"exit code {outcome.exit_code}"
