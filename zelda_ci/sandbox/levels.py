"""How strictly this machine can confine a run: found out by trying, and chosen before anything is spent."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from zelda_ci import process
from zelda_ci.domain.suite import IsolationLevel
from zelda_ci.errors import ConfigError
from zelda_ci.sandbox import bubblewrap, kernel, programs

# From the weakest to the strongest.
STRENGTH: Sequence[IsolationLevel] = ("none", "degraded", "landlock", "uid", "namespaces", "full")

PROBE_SECONDS = 10
UNSAFE_HINT = (
    "Give --unsafe (or ZELDA_UNSAFE=1) to let session and commands run as you, with all that you may read and write."
)
USER_NAMESPACES = (
    "Allow user namespaces: on Ubuntu, sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; in a container, "
    "--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined."
)


@dataclass(frozen=True)
class Offered:
    """What this machine offers."""

    levels: frozenset[IsolationLevel]
    reasons: tuple[str, ...] = ()
    """Why not better, and what would help, in sentences."""

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
        cause = "This machine offers no isolation" if setting == "auto" else "Isolation level none protects nothing"
        raise ConfigError(
            f"{cause}, and code of the tested repository would run as you.",
            hint=" ".join([*offered.reasons, UNSAFE_HINT]),
            code="ISOLATION_UNAVAILABLE",
        )
    return level


def _unavailable(sentence: str, offered: Offered) -> ConfigError:
    hint = " ".join(offered.reasons) or f"Available: {', '.join(name for name in STRENGTH if offered.offers(name))}."
    return ConfigError(sentence, hint=hint, code="ISOLATION_UNAVAILABLE")


def abi_of(level: IsolationLevel) -> int:
    """The version of Landlock that a level uses; 0 where it uses none."""
    if level in {"none", "namespaces"}:
        return 0
    return min(kernel.version(), kernel.SCOPED - 1 if level == "degraded" else kernel.NEWEST)


@lru_cache
def _probed(path: str, cli: Path | None) -> Offered:
    reasons: list[str] = []
    return Offered(frozenset(["none", *_available_levels(path, cli, reasons)]), tuple(reasons))


def _available_levels(path: str, cli: Path | None, reasons: list[str]) -> Iterator[IsolationLevel]:
    if sys.platform != "linux" or platform.machine() not in kernel.ARCHITECTURES:
        reasons.append(f"There is isolation on Linux on x86-64 and ARM, not on {sys.platform} {platform.machine()}.")
        return
    abi = kernel.version()
    reasons.extend(_landlock_problems(abi))
    problem = _namespaces_problem(path)
    reasons.extend([problem] if problem else [])
    if not problem:
        yield "namespaces"
    if abi >= kernel.MIN_LANDLOCK_ABI:
        yield "degraded"
    if abi >= kernel.SCOPED:
        yield "landlock"
    if abi >= kernel.SCOPED and not problem:
        yield "full"
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


def _namespaces_problem(path: str) -> str | None:
    program = bwrap(path)
    if program is None:
        return "bubblewrap is not installed: install the package bubblewrap."
    trial = [
        program, *bubblewrap.NAMESPACES, "--unshare-net", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        "--ro-bind", "/", "/", "--proc", "/proc", *bubblewrap.SEALED, "--dev", "/dev", "--remount-ro", "/dev",
        "--", "true",
    ]  # fmt: skip
    problem = _tried(trial)
    return None if problem is None else f"bubblewrap cannot make namespaces here ({problem}). {USER_NAMESPACES}"


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
    closed = next((file for file in files if not programs.is_open(file)), None)
    if closed:
        return f"Runs cannot be another user's here: {closed} lies where other users cannot read it."
    if not try_it:
        return None
    policy = {"uid": USERS[0], "landlock": kernel.nested(kernel.version()), "seccomp": _filter()}
    script = 'for file; do test -r "$file" || { echo "$file cannot be read" >&2; exit 1; }; done'
    problem = _tried([*programs.inside(policy, anybody=True), "/bin/sh", "-c", script, "sh", *map(str, files)])
    return None if problem is None else f"Runs cannot be another user's here ({problem})."


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
