"""How strictly this machine can confine a run: found out by trying, and chosen before anything is spent."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from zelda_ci import process
from zelda_ci.domain.suite import IsolationLevel
from zelda_ci.errors import ConfigError
from zelda_ci.sandbox import bubblewrap, closed_folders, kernel, programs

# From the weakest to the strongest.
STRENGTH: Sequence[IsolationLevel] = ("none", "landlock", "uid", "full")

PROBE_SECONDS = 10
UNSAFE_HINT = (
    "Give --unsafe (or ZELDA_UNSAFE=1) to let session and commands run as you, with all that you may read and write."
)
# What lets a program in a container make namespaces, by what forbids it.
CONTAINER_OPTIONS = {
    "seccomp": "--security-opt seccomp=unconfined",
    "apparmor": "--security-opt apparmor=unconfined",
    "systempaths": "--security-opt systempaths=unconfined",
}
# At `landlock` a run is the user's own process on the user's machine.
LEFT_OPEN = (
    "session and commands run as your user: they can change modes and times of your files, see names of files and "
    "other processes' arguments, and talk to what listens on this machine's network"
)


@dataclass(frozen=True)
class Offered:
    """What this machine offers."""

    levels: frozenset[IsolationLevel]
    reasons: tuple[str, ...] = ()
    """Why not better, and what would help, in sentences."""
    remedy: str | None = None
    """The command that raises the level on this system, where one is known."""

    @property
    def level(self) -> IsolationLevel:
        return max(self.levels, key=STRENGTH.index)

    def offers(self, level: IsolationLevel) -> bool:
        """Whether a level can be had."""
        return level in self.levels


def probe(environ: Mapping[str, str], cli: Path | None = None) -> Offered:
    """Find out what can be had, by trying it once per process.

    Args:
        environ: The user's environment.
        cli: The Claude Code CLI, which another user must be able to read.
    """
    return _probed(environ.get("PATH", os.defpath), cli)


def choose_level(offered: Offered, setting: str, require: IsolationLevel | None, *, unsafe: bool) -> IsolationLevel:
    """The level of a run.

    Args:
        offered: What this machine offers.
        setting: A level, or "auto" for the best.
        require: The least that is acceptable.
        unsafe: Whether somebody said that no isolation at all is acceptable.

    Raises:
        ConfigError: That cannot be had (`ISOLATION_UNAVAILABLE`).
    """
    level = next((name for name in STRENGTH if name == setting), offered.level)
    if not offered.offers(level):
        raise _unavailable(f"Isolation level {level} is not available on this machine.", offered)
    if require is not None and STRENGTH.index(level) < STRENGTH.index(require):
        available = "the best that this machine offers" if setting == "auto" else "what isolation.level asks for"
        raise _unavailable(f"Isolation level {require} is required, and {available} is {level}.", offered)
    if level == "none" and not unsafe:
        asked_for = setting == "none"
        cause = "Isolation level none protects nothing" if asked_for else "This machine offers no isolation"
        # What keeps the machine from more is beside the point where nothing was asked for.
        better = f"This machine offers {offered.level}: leave isolation.level at auto to have it."
        instead = ([better] if offered.level != "none" else []) if asked_for else offered.reasons
        raise ConfigError(
            f"{cause}, and code of the tested repository would run as you.",
            hint=" ".join([*instead, UNSAFE_HINT]),
            code="ISOLATION_UNAVAILABLE",
        )
    return level


def unaccepted(level: IsolationLevel, accepted: str | None) -> bool:
    """Whether somebody who decides over this machine must say first that a level is enough.

    Args:
        level: Of a run.
        accepted: The level that was accepted, if any was.
    """
    return level == "landlock" and accepted not in {"landlock", "none"}


def weakness(offered: Offered) -> str:
    """What raises the level `landlock`, and what it means, in sentences."""
    stronger = [name for name in ("uid", "full") if offered.offers(name)]
    raised = f"This machine offers more: --isolation {stronger[-1]}. " if stronger else _raised(offered)
    return f"{raised}At isolation level landlock {LEFT_OPEN}."


def _raised(offered: Offered) -> str:
    """What isolates runs better, the command first."""
    if offered.remedy:
        return f"To isolate runs: {offered.remedy} - "
    return "".join(f"{reason} " for reason in offered.reasons)


def remark(level: IsolationLevel, offered: Offered) -> str | None:
    """What is to be known of a level before a run, and how to raise it; nothing where it is a strong one."""
    if level == "landlock":
        return weakness(offered)
    if level != "none":
        return None
    nothing = "At isolation level none nothing is confined: code of the tested repository runs with all your rights."
    return f"{_raised(offered)}{nothing}"


def _unavailable(sentence: str, offered: Offered) -> ConfigError:
    hint = " ".join(offered.reasons) or f"Available: {', '.join(name for name in STRENGTH if offered.offers(name))}."
    return ConfigError(sentence, hint=hint, code="ISOLATION_UNAVAILABLE")


def abi_of(level: IsolationLevel) -> int:
    """The version of Landlock that a level uses; 0 where it uses none."""
    abi = kernel.version()
    return 0 if level == "none" or abi < kernel.MIN_LANDLOCK_ABI else min(abi, kernel.NEWEST)


@lru_cache
def _probed(path: str, cli: Path | None) -> Offered:
    reasons: list[str] = []
    found = frozenset(["none", *_available_levels(path, cli, reasons)])
    if "uid" in found:
        covers()  # tried here, since runs ask for it on the event loop
    return Offered(found, tuple(reasons), None if "full" in found else _remedy(path))


def _available_levels(path: str, cli: Path | None, reasons: list[str]) -> Iterator[IsolationLevel]:
    if sys.platform != "linux" or platform.machine() not in kernel.ARCHITECTURES:
        reasons.append(f"There is isolation on Linux on x86-64 and ARM, not on {sys.platform} {platform.machine()}.")
        return
    abi = kernel.version()
    reasons.extend(_landlock_problems(abi))
    problem = _namespaces_problem(path)
    reasons.extend([problem] if problem else [])
    if not problem:
        yield "full"
    if abi >= kernel.SCOPED:
        yield "landlock"
    # Where namespaces are to be had, nobody takes this by chance, and an attempt would cost every start.
    obstacle = _user_problem(cli, try_it=problem is not None)
    if abi >= kernel.MIN_LANDLOCK_ABI and not obstacle:
        yield "uid"
    reasons.extend([obstacle] if obstacle and problem and os.geteuid() == 0 else [])


def _landlock_problems(abi: int) -> Iterator[str]:
    if abi < kernel.MIN_LANDLOCK_ABI:
        yield "The kernel has no Landlock, or an old one: Linux 6.2 or newer has what is needed."
    elif abi < kernel.SCOPED:
        yield "The kernel's Landlock cannot keep signals and abstract sockets apart: Linux 6.12 or newer can."


def bwrap(path: str) -> str | None:
    """The bubblewrap program."""
    return shutil.which("bwrap", path=path) or shutil.which("bwrap", path=os.defpath)


def maker(path: str) -> Sequence[str] | None:
    """The program that makes namespaces: bubblewrap, or Zelda's own for users who cannot become another."""
    program = bwrap(path)
    own = [*programs.python(), str(programs.WORLD)] if os.geteuid() != 0 and sys.platform == "linux" else None
    return [program] if program else own


def _namespaces_problem(path: str) -> str | None:
    words = maker(path)
    if words is None:
        return f"bubblewrap is not installed: {_remedy(path) or 'install the package bubblewrap.'}"
    trial = [
        *words, *bubblewrap.NAMESPACES, "--unshare-net", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        "--ro-bind", "/", "/", "--proc", "/proc", *bubblewrap.SEALED, "--dev", "/dev", "--remount-ro", "/dev",
        "--", "true",
    ]  # fmt: skip
    problem = _tried(trial)
    if problem is None:
        return None
    who = "bubblewrap" if bwrap(path) else "Zelda"
    return f"{who} cannot make namespaces here ({problem}): {_remedy(path) or 'this system forbids them.'}"


# How programs are installed, by the program that does it.
INSTALL = {
    "apt-get": "apt-get install -y bubblewrap",
    "dnf": "dnf install -y bubblewrap",
    "yum": "yum install -y bubblewrap",
    "zypper": "zypper install -y bubblewrap",
    "pacman": "pacman -S --noconfirm bubblewrap",
    "apk": "apk add bubblewrap",
}
# Settings of the kernel that forbid user namespaces: the value that does, and one that does not.
FORBIDDING = {
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "user.max_user_namespaces": ("0", "15000"),
}


def _remedy(path: str) -> str | None:
    """The one command that lets namespaces be made on this system, as far as it can be known."""
    managers = [name for name in INSTALL if shutil.which(name, path=f"{path}:/usr/bin:/usr/sbin")]
    # Users who may make namespaces do without it.
    is_of_use = bwrap(path) is None and (os.geteuid() == 0 or not any(_obstacles()))
    install = INSTALL[managers[0]] if managers and is_of_use else None
    return remedy(install, *_obstacles(), is_root=os.geteuid() == 0)


@cache
def _obstacles() -> tuple[Sequence[str], Sequence[str]]:
    """What forbids namespaces here, as `obstacles` says it: they are tried."""
    refused = _tried([*programs.python(), str(programs.NAMESPACES)])
    if refused is None:
        return (), ()
    label = _content("/proc/self/attr/apparmor/current") or _content("/proc/self/attr/current")
    return obstacles(
        refused,
        {name: _content(f"/proc/sys/{name.replace('.', '/')}") for name in FORBIDDING},
        is_filtered="\nSeccomp:\t2\n" in _content("/proc/self/status"),
        is_profiled=label.strip("\0\n") not in {"", "unconfined"},
        is_masked=" /proc/" in _content("/proc/self/mountinfo"),
    )


NO_SPACE = "28"


def obstacles(
    refused: str, settings: Mapping[str, str], *, is_filtered: bool, is_profiled: bool, is_masked: bool
) -> tuple[Sequence[str], Sequence[str]]:
    """What forbids namespaces: settings of the kernel, and what a container must be started with.

    Args:
        refused: The step at which they could not be made, and the error's number.
        settings: Of the kernel.
        is_filtered: Whether a filter of system calls is on us, as on all that runs in most containers.
        is_profiled: Whether a profile of AppArmor is.
        is_masked: Whether parts of /proc are hidden, so that nobody may have another.
    """
    step, _, number = refused.partition(" ")
    forbidding = [name for name, (bad, _) in FORBIDDING.items() if settings.get(name, "").strip() == bad]
    if step == "user" and number == NO_SPACE:
        return [name for name in forbidding if name.startswith("user.")], ()
    walls = {"seccomp": is_filtered, "apparmor": is_profiled, "systempaths": is_masked or step == "proc"}
    options = [CONTAINER_OPTIONS[name] for name, is_there in walls.items() if is_there]
    return (() if step == "proc" else forbidding), options


def remedy(install: str | None, forbidding: Sequence[str], options: Sequence[str], *, is_root: bool) -> str | None:
    """One command from what stands in the way.

    Args:
        install: How bubblewrap is installed, where it is missing.
        forbidding: Settings of the kernel that forbid user namespaces.
        options: What a container must be started with.
        is_root: Whether it is root who would give the command.
    """
    # AppArmor's does not bind root.
    settings = [name for name in forbidding if not (is_root and "apparmor" in name)]
    commands = [*filter(None, [install]), *(f"sysctl -w {name}={FORBIDDING[name][1]}" for name in settings)]
    together = " && ".join(commands)
    if commands and not is_root:
        together = f"sudo {together}" if len(commands) == 1 else f"sudo sh -c '{together}'"
    start = f"start the container with {' '.join(options)}" if options else ""
    return " and ".join(filter(None, [together, start])) or None


def _content(file: str) -> str:
    try:
        return Path(file).read_text().strip(" ")
    except OSError:
        return ""


# Capabilities with which root can let a run be another user's, and yet measure and remove it.
NEEDED = {0: "CHOWN", 1: "DAC_OVERRIDE", 3: "FOWNER", 5: "KILL", 6: "SETGID", 7: "SETUID"}


def _user_problem(cli: Path | None, *, try_it: bool) -> str | None:
    """Why nothing can be run as another user; found out by looking, or by trying too."""
    if os.geteuid() != 0:
        return "Only root can let runs be another user's."
    missing = [name for number, name in NEEDED.items() if not _capabilities() >> number & 1]
    if missing:
        return f"Root cannot let runs be another user's without the capabilities {', '.join(missing)}."
    files = [Path(programs.python(anybody=True)[0]), programs.INSIDE, *([cli] if cli else [])]
    steps = closed_folders.cover(files, [], files, None)
    if steps and not covers():
        return f"Runs cannot be another user's here: {closed_folders.unreachable(files)}"
    if not try_it:
        return None
    policy = {"uid": USERS[0], "cover": steps, "landlock": kernel.nested(kernel.version()), "seccomp": _filter()}
    script = 'for file; do test -r "$file" || { echo "$file cannot be read" >&2; exit 1; }; done'
    problem = _tried([*programs.inside(policy, anybody=True), "/bin/sh", "-c", script, "sh", *map(str, files)])
    return None if problem is None else f"Runs cannot be another user's here ({problem})."


@cache
def covers() -> bool:
    """Whether closed folders can be covered and what may be read below them shown; tried, on a folder of our own."""
    if os.geteuid() != 0 or kernel.version() < kernel.MIN_LANDLOCK_ABI:
        return False
    steps: list[closed_folders.Step] = [("empty", str(programs.INSIDE.parent), ""), ("read", str(programs.INSIDE), "")]
    script = 'test -r "$1" && test ! -e "$2"'
    files = (str(programs.INSIDE), str(programs.SHARED))
    return _tried([*programs.inside({"cover": steps}), "/bin/sh", "-c", script, "sh", *files]) is None


# User ids that are nobody's on ordinary machines, and exist in containers whose users are mapped.
USERS = range(30000, 60000)


def _filter() -> str:
    return kernel.program(platform.machine(), internet=True).hex()


def _capabilities() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def _tried(argv: Sequence[str]) -> str | None:
    """What a program that failed had to say; nothing where it went well."""
    try:
        outcome = process.answer(argv, timeout_seconds=PROBE_SECONDS)
    except (OSError, TimeoutError) as error:
        return str(error)
    if outcome.exit_code == 0:
        return None
    words = outcome.stderr.decode("utf-8", "replace").strip().splitlines()
    return words[-1] if words else f"exit code {outcome.exit_code}"
