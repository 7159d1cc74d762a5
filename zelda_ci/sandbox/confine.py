"""How the processes of a run are confined: one arrangement per phase, and the shell that runs a command."""

import os
import platform
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from zelda_ci.domain.suite import MODEL_CREDENTIALS, Command, IsolationLevel, IsolationSettings, ResolvedSuite
from zelda_ci.domain.workspace import MARKER, PHASES, CommandPhase, Confinement
from zelda_ci.errors import WorkspaceError
from zelda_ci.sandbox import kernel, levels, programs, readable_paths
from zelda_ci.sandbox.levels import Offered
from zelda_ci.sandbox.programs import SandboxMounts
from zelda_ci.sandbox.readable_paths import PrivateFolders
from zelda_ci.sandbox.run_folder import WorkspaceFolder

LIMITS = {"CORE": 0, "FSIZE": 2 << 30, "NOFILE": 1 << 16}
# Bytes; of memory at most 80 % of the machine's.
MAX_MEMORY = min(8 << 30, int(0.8 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
MAX_DISK, MAX_PROCESSES = 10 << 30, 4096
# What a session's commands print ends up in transcripts, and what they send somewhere else is out of reach.
HIDDEN_FROM_SHELLS = (
    *MODEL_CREDENTIALS, "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_UNIX_SOCKET",
    "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN", "CLAUDE_CODE_SHELL_PREFIX",
)  # fmt: skip
# Where daemons keep sockets that anybody may connect to, and builds need nothing.
SOCKETS = "/run"


@dataclass(frozen=True)
class Needs:
    """What a run's confinement depends on: also programs of Zelda's own inside, and objects its repository borrows.

    `uid` is the run's own user, at the level of that name; `given` are variables whose values the suite gives, which
    say nothing of where the machine's toolchains are; and `socket` is the outside path of the model proxy's.
    """

    level: IsolationLevel
    settings: IsolationSettings
    private: PrivateFolders
    programs: Sequence[Path] = ()
    objects: Sequence[Path] = ()
    uid: int | None = None
    given: frozenset[str] = frozenset()
    socket: Path | None = None

    def reaches(self, path: Path) -> bool:
        """Whether the run's user gets to what it may read at a path."""
        return self.level != "uid" or readable_paths.is_within_reach(path, self.private.base)


def confine(run: WorkspaceFolder, environment: Mapping[str, str], needs: Needs) -> Confinement:
    """How every process of a run is started: under a supervisor, and with no more rights than the level leaves."""
    supervisor = tuple(programs.supervisor(os.getpid()))
    session_variables = {"BUN_OPTIONS": programs.unreadable()} if sys.platform == "linux" else {}
    if needs.level == "none":
        return Confinement(supervisor, environment, session_variables=session_variables)
    for name in programs.PRIVATE:
        (run.private / name).mkdir(parents=True, exist_ok=True)
    prefix, shell = _shells(run, environment, needs)
    # What comes from the tested tree or the suite decides neither what is read nor who confines.
    path = machine_path(environment)
    machine = {name: value for name, value in environment.items() if name not in needs.given} | {"PATH": path}
    ours = [programs.LAUNCHER, prefix, *([shell] if shell else []), *needs.programs, *needs.objects]
    readable = readable_paths.readable(machine, needs.private, ours, needs.settings.read_paths)
    writable = [path for path in (run.root, run.git_dir, run.home, run.tmp) if path.exists()]
    mounts = SandboxMounts(readable, writable, run.private, needs.socket)
    maker = levels.namespace_maker(path) if needs.level == "full" else None
    if needs.level == "full" and maker is None:
        raise OSError("namespaces can no longer be made")
    options: dict[str, object] = {"--confined": 2 if maker else 0, "--memory": MAX_MEMORY, "--disk": MAX_DISK}
    options |= {"--processes": MAX_PROCESSES, "--folder": run.path, "--report": run.limit_report}
    return Confinement(
        supervisor=supervisor,
        environment=environment,
        level=needs.level,
        options=tuple(str(word) for option in options.items() for word in option),
        starts={phase: tuple(_start(phase, needs, mounts, maker)) for phase in PHASES},
        # Claude Code says itself that it is confined: it still has to close itself to what it starts.
        session_variables={**session_variables, "ZELDA_CONFINED": "1"},
        shell_prefix=prefix,
        shell=shell,
        socket=programs.INNER_SOCKET if maker and needs.socket else needs.socket,
        uid=needs.uid,
    )


def _start(phase: CommandPhase, needs: Needs, mounts: SandboxMounts, maker: str | None) -> list[str]:
    """What comes between the supervisor and a program; `maker` is what makes namespaces, if anything does."""
    # Zelda's own reading is no setting's, and has none.
    internet = getattr(needs.settings.network, phase, "none") == "open"
    # In a network of its own a run may do what it likes; elsewhere sockets that leave the machine do not exist.
    sockets = internet or maker is not None
    # Without a network, the session's way to the model is a socket with a path; what it starts has none.
    services = phase == "session" and not internet
    own = needs.level != "landlock"
    policy: dict[str, Any] = {
        "ready": True,
        # Processes are counted per user, so only where the run has one of its own (also in a user namespace).
        "limits": LIMITS | ({"NPROC": MAX_PROCESSES} if own else {}),
        "seccomp": kernel.program(platform.machine(), needs.level, internet=sockets, services=services).hex(),
    }
    if needs.uid is not None:
        used = map(os.path.realpath, (*mounts.readable, *mounts.writable, mounts.socket or "/"))
        is_used = any(Path(path).is_relative_to(SOCKETS) for path in used)
        policy |= {"uid": needs.uid, "hidden": [] if is_used else [SOCKETS]}
    if (abi := kernel.version()) >= kernel.MIN_LANDLOCK_ABI:
        # The system's, which are the run's own ones; or as a guest, beside others.
        places = [place for place in programs.TEMPORARY if maker or not needs.private.is_private(place)]
        writable = [*mounts.writable, *(places if own else ())]
        policy["landlock"] = kernel.policy(abi, mounts.readable, writable, internet=sockets, terminals=own)
    if maker is None:
        return programs.inside(policy, anybody=needs.uid is not None)
    # The proxy's socket is the session's alone.
    visible = mounts if phase == "session" else replace(mounts, socket=None)
    options = programs.bubblewrap_options(visible, internet=internet)
    is_own = maker == levels.OWN
    return programs.inside(policy, world=options) if is_own else [maker, *options, "--", *programs.inside(policy)]


def machine_path(environment: Mapping[str, str]) -> str:
    """PATH without folders of the run itself, whose programs the tested commit or the session has made."""
    entries = environment.get("PATH", os.defpath).split(os.pathsep)
    run = environment.get(MARKER)
    return os.pathsep.join(entry for entry in entries if not (run and Path(entry).is_relative_to(run)))


def _shells(run: WorkspaceFolder, environment: Mapping[str, str], needs: Needs) -> tuple[Path, Path | None]:
    """Programs that Claude Code starts in place of shells, for `CLAUDE_CODE_SHELL_PREFIX` and `CLAUDE_CODE_SHELL`."""
    shell = environment.get("SHELL") or shutil.which("bash", path=machine_path(environment)) or "/bin/sh"
    # The first is given a shell line as its only argument, and the second, which must bear the shell's name, what a
    # shell is given: Claude Code starts some without the prefix.
    prefix, wrapper, start = run.path / "shell", run.path / "inner" / Path(shell).name, [shell]
    if is_narrowed := needs.level == "landlock" and needs.settings.network.session == "none":
        # Where the CLI needs a socket with a path, its shells still get none.
        filters = kernel.program(platform.machine(), needs.level, internet=False).hex()
        start = [*programs.inside({"seccomp": filters}), shell]
        wrapper.parent.mkdir(exist_ok=True)
    for file, command in ((prefix, [*start, "-c"]), *([(wrapper, start)] if is_narrowed else [])):
        # Not written over: the file may be running, and a link may have been put in its place.
        file.unlink(missing_ok=True)
        # A script, since the path of Python may hold a space, which a line of `#!` cannot.
        file.write_text(f'#!/bin/sh\nunset {" ".join(HIDDEN_FROM_SHELLS)}\nexec {shlex.join(command)} "$@"\n')
        file.chmod(0o755)
    return prefix, wrapper if is_narrowed else None


@dataclass(frozen=True)
class Isolation:
    """What is there to confine runs with: the offer, programs that run inside, daemons' sockets to keep closed."""

    offered: Offered
    unsafe: bool = False
    """Whether a run may have no isolation at all."""
    programs: Sequence[Path] = ()
    sockets: Sequence[Path] = ()

    def of(self, suite: ResolvedSuite) -> IsolationLevel:
        """The level of a suite's runs; a `ConfigError` where it cannot be had."""
        settings = suite.isolation
        level = levels.choose_level(self.offered, settings.level, settings.require, unsafe=self.unsafe)
        if not self.unsafe:
            levels.refuse_reachable(level, self.sockets)
        return level


# Shells that need no options of the user's, and how they stop at the first failure.
STRICT = {"bash": ("-e", "-o", "pipefail", "-c"), "sh": ("-e", "-c")}
NO_PIPEFAIL = (
    "There is no bash on PATH, so sh runs the commands: of a pipe only the last part decides whether it failed. "
    "Install bash, or choose a shell with `shell`."
)


def arguments(command: Command, suite: ResolvedSuite, environment: Mapping[str, str]) -> list[str]:
    """The program to start and its arguments; an error where the suite's shell is not there (`SHELL_MISSING`)."""
    return [*_shell(suite, environment), command] if isinstance(command, str) else list(command)


def notes(suite: ResolvedSuite, environment: Mapping[str, str]) -> tuple[str, ...]:
    """What to know of the shell of a suite's commands; an error as in `arguments`."""
    commands = (suite.setup_command, *suite.deciding_commands)
    shell = _shell(suite, environment) if any(isinstance(command, str) for command in commands) else ["bash"]
    return () if suite.shell or PurePath(shell[0]).name == "bash" else (NO_PIPEFAIL,)


def _shell(suite: ResolvedSuite, environment: Mapping[str, str]) -> list[str]:
    """The words before a command, looked up where the run will look, before anything is spent."""
    path = machine_path(environment)
    setting = suite.shell or ("bash" if shutil.which("bash", path=path) else "sh")
    name, *words = setting.split() if isinstance(setting, str) else setting
    program = shutil.which(name, path=path) or ("/bin/sh" if name == "sh" else None)
    if program is None:
        message = f"shell: {name} is not on PATH, which is {environment.get('PATH', '')} in the run."
        raise WorkspaceError(message, hint="Install it, or choose another shell.", code="SHELL_MISSING")
    return [program, *(words or STRICT.get(PurePath(name).name, ()))]
