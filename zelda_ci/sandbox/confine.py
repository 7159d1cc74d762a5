"""How the processes of a run are confined: one arrangement per phase, and the shell that runs a command."""

import json
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from zelda_ci.domain.suite import MODEL_CREDENTIALS, Command, IsolationLevel, IsolationSettings, ResolvedSuite
from zelda_ci.domain.variables import MARKER
from zelda_ci.domain.workspace import PHASES, CommandPhase, Confinement
from zelda_ci.errors import WorkspaceError
from zelda_ci.sandbox import bubblewrap, closed_folders, daemons, kernel, levels, programs, readable_paths
from zelda_ci.sandbox.bubblewrap import SandboxMounts
from zelda_ci.sandbox.levels import Offered
from zelda_ci.sandbox.readable_paths import PathPolicy
from zelda_ci.sandbox.run_folder import WorkspaceFolder

LIMITS = {"CORE": 0, "FSIZE": 2 << 30, "NOFILE": 1 << 16}
MAX_PROCESSES = 4096
MAX_MEMORY = 8 << 30
# Of the machine's, where that is less.
MEMORY_SHARE = 0.8
MAX_DISK = 10 << 30

# What a session's commands print ends up in transcripts, and what they send somewhere else is out of reach.
HIDDEN_FROM_SHELLS = (
    *MODEL_CREDENTIALS, "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_UNIX_SOCKET",
    "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN", "CLAUDE_CODE_SHELL_PREFIX",
)  # fmt: skip

# Where daemons keep sockets that anybody may connect to, and builds need nothing.
SOCKET_FOLDERS = ("/run",)

# The setting that decides on a phase's network; Zelda's own reading never has any.
NETWORKED: Mapping[CommandPhase, str | None] = {
    "setup": "setup", "session": "session", "build": "build", "test": "test", "zelda": None,
}  # fmt: skip


@dataclass(frozen=True)
class Needs:
    """What a run's confinement depends on beside its folder."""

    level: IsolationLevel
    settings: IsolationSettings
    grounds: PathPolicy
    programs: Sequence[Path] = ()
    """Programs of Zelda's own that run inside, the CLI above all."""
    objects: Sequence[Path] = ()
    """Object folders from which the run's repository borrows."""
    uid: int | None = None
    """The run's own user, at the level of that name."""
    covers: bool = False
    """Whether closed folders are covered, so that the run's user reaches what may be read below them."""
    given: frozenset[str] = frozenset()
    """Variables whose values the suite gives: these say nothing of where the machine's toolchains are."""
    socket: Path | None = None
    """Outside path of the model proxy's socket."""
    memory: int = min(MAX_MEMORY, int(MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    disk: int = MAX_DISK
    """Bytes that a run may take, of each."""
    processes: int = MAX_PROCESSES

    def reaches(self, path: Path) -> bool:
        """Whether the run's user gets to what it may read at a path."""
        return self.level != "uid" or closed_folders.is_within_reach(path, self.grounds, covers=self.covers)


def unconfined(environment: Mapping[str, str]) -> Confinement:
    """A supervisor, an environment of the run's own, and nothing else."""
    return Confinement(tuple(programs.supervisor(os.getpid())), environment, session_variables=_session_variables())


def _session_variables(**more: str) -> Mapping[str, str]:
    return {"BUN_OPTIONS": programs.unreadable(), **more} if sys.platform == "linux" else {}


def confine(run: WorkspaceFolder, environment: Mapping[str, str], needs: Needs) -> Confinement:
    """How every process of a run is started: under a supervisor, and with no more rights than the level leaves.

    Raises:
        OSError: The run's folder cannot be written.
    """
    if needs.level == "none":
        return unconfined(environment)
    for name in bubblewrap.PRIVATE:
        (run.private / name).mkdir(parents=True, exist_ok=True)
    prefix, shell = _shells(run, environment, needs.level) or (None, None)
    arrangement = _Arrangement.of(run, environment, needs, [prefix, shell] if prefix and shell else [])
    return Confinement(
        supervisor=tuple(programs.supervisor(os.getpid())),
        environment=environment,
        level=needs.level,
        options=("--confined", "2" if arrangement.maker else "0", "--bounds", json.dumps(_bounds(run, needs))),
        starts={phase: tuple(arrangement.start(phase)) for phase in PHASES},
        # Claude Code says itself that it is confined: it still has to close itself to what it starts.
        session_variables=_session_variables(ZELDA_CONFINED="1"),
        shell_prefix=prefix,
        shell=shell,
        socket=bubblewrap.INNER_SOCKET if arrangement.maker and needs.socket else needs.socket,
        uid=needs.uid,
    )


def _bounds(run: WorkspaceFolder, needs: Needs) -> Mapping[str, object]:
    return {
        "memory": needs.memory,
        "disk": needs.disk,
        "processes": needs.processes,
        "folder": str(run.path),
        "report": str(run.limit_report),
    }


@dataclass(frozen=True)
class _Arrangement:
    """What all phases of a run have in common."""

    needs: Needs
    world: SandboxMounts
    maker: Sequence[str] | None
    """The program that makes namespaces, where the run has its own."""
    cover: Sequence[closed_folders.Step] = ()

    @classmethod
    def of(
        cls, run: WorkspaceFolder, environment: Mapping[str, str], needs: Needs, ours: Sequence[Path]
    ) -> "_Arrangement":
        machine = _of_the_machine(environment, needs)
        candidates = readable_paths.candidates(
            machine,
            needs.grounds,
            [programs.INSIDE, *ours, *needs.programs, *needs.objects],
            needs.settings.read_paths,
        )
        readable = readable_paths.outermost(candidates)
        writable = [path for path in (run.root, run.git_dir, run.home, run.tmp) if path.exists()]
        maker = levels.maker(machine.get("PATH", os.defpath)) if needs.level == "full" else None
        if needs.level == "full" and maker is None:
            raise FileNotFoundError(2, "bubblewrap is gone")
        cover: Sequence[closed_folders.Step] = ()
        if needs.covers:
            written = [run.path, *([needs.socket] if needs.socket else [])]
            ways = [*candidates, *readable_paths.links(machine.get("PATH", ""))]
            cover = closed_folders.cover(readable, written, ways, needs.grounds.base)
        return cls(needs, SandboxMounts(readable, writable, run.private, needs.socket), maker, cover)

    def start(self, phase: CommandPhase) -> list[str]:
        """What comes between the supervisor and a program."""
        setting = NETWORKED[phase]
        internet = setting is not None and getattr(self.needs.settings.network, setting) == "open"
        # The proxy's socket is the session's alone.
        world = (
            self.world
            if phase == "session"
            else SandboxMounts(self.world.readable, self.world.writable, self.world.private)
        )
        outer = bubblewrap.bubblewrap_command(self.maker, world, internet=internet) if self.maker else []
        policy = self._policy(internet=internet, services=self._reaches_services(phase, internet=internet))
        return [*outer, *programs.inside(policy, anybody=self.needs.uid is not None)]

    @property
    def _is_alone(self) -> bool:
        """Whether the run is another user's than the one who started it, or sees no other processes."""
        return self.maker is not None or self.needs.uid is not None

    def _reaches_services(self, phase: CommandPhase, *, internet: bool) -> bool:
        """Whether sockets with a path can be reached: where the run is the user's own, they are the user's services."""
        if self._is_alone:
            return True
        # Without a network the session's way to the model is such a socket; what it starts has none.
        return phase == "session" and not internet

    def _policy(self, *, internet: bool, services: bool) -> Mapping[str, Any]:
        # In a network of its own a run may do what it likes; elsewhere sockets that leave the machine do not exist.
        sockets = internet or self.maker is not None
        abi = levels.abi_of(self.needs.level)
        # The limit counts per user, so it only makes sense where the run has one of its own (also in a user
        # namespace).
        processes = {"NPROC": self.needs.processes} if self.maker or self.needs.uid is not None else {}
        return {
            "ready": programs.READY,
            "limits": {**LIMITS, **processes},
            "seccomp": kernel.program(
                platform.machine(), internet=sockets, absent=self._absent(), services=services, alone=self._is_alone
            ).hex(),
            **({"cover": list(self.cover)} if self.cover else {}),
            **({"uid": self.needs.uid, "private": self._coverable()} if self.needs.uid is not None else {}),
            **({"landlock": self._landlock(abi, internet=sockets)} if abi else {}),
        }

    def _absent(self) -> Sequence[int]:
        """Calls that reach objects which the run would share with the machine."""
        return () if self.maker else kernel.lasting_objects(platform.machine(), own_user=self.needs.uid is not None)

    def _coverable(self) -> Sequence[str]:
        """Folders of sockets in which the run needs nothing."""
        used = [*map(os.path.realpath, (*self.world.readable, *self.world.writable, self.needs.socket or "/"))]
        return [folder for folder in SOCKET_FOLDERS if not any(_is_below(path, folder) for path in used)]

    def _landlock(self, abi: int, *, internet: bool) -> Mapping[str, Any]:
        temporary = bubblewrap.TEMPORARY if self.maker else self._shared()
        writable = [*self.world.writable, *temporary]
        own = self.maker is not None or self.needs.uid is not None
        return kernel.policy(abi, self.world.readable, writable, internet=internet, terminals=own)

    def _shared(self) -> Sequence[Path]:
        """The system's temporary folders: another user is a guest there, as long as nothing of ours lies in them."""
        if self.needs.uid is None:
            return ()
        return [place for place in bubblewrap.TEMPORARY if not self.needs.grounds.is_private(place)]


def _of_the_machine(environment: Mapping[str, str], needs: Needs) -> Mapping[str, str]:
    """Without what comes from the tested tree or the suite: that decides neither what is read nor who confines."""
    own = {name: value for name, value in environment.items() if name not in needs.given}
    return {**own, "PATH": machine_path(environment)}


def machine_path(environment: Mapping[str, str]) -> str:
    """PATH without folders of the run itself, whose programs the tested commit or the session has made."""
    entries = environment.get("PATH", os.defpath).split(os.pathsep)
    run = environment.get(MARKER)
    return os.pathsep.join(entry for entry in entries if not (run and Path(entry).is_relative_to(run)))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _shells(run: WorkspaceFolder, environment: Mapping[str, str], level: IsolationLevel) -> tuple[Path, Path] | None:
    """Programs that run shells in a confinement of their own, so that they cannot look into the CLI."""
    abi = levels.abi_of(level)
    if not abi:
        return None
    shell = environment.get("SHELL") or shutil.which("bash", path=machine_path(environment)) or "/bin/sh"
    policy = {"drop": HIDDEN_FROM_SHELLS, "landlock": kernel.nested(abi)}
    if level == "landlock":
        # Where the CLI needs a socket with a path, its shells still get none. Their network is as it is outside.
        policy["seccomp"] = kernel.program(platform.machine(), internet=True, services=False).hex()
    anybody = level == "uid"
    wrapper = run.path / "inner" / Path(shell).name
    wrapper.parent.mkdir(exist_ok=True)
    # Claude Code gives the first a shell line as its only argument, and the second, which must bear the shell's name,
    # what a shell is given: it starts some without the prefix, and these read what a session can write into its HOME.
    return (
        _program(run.path / "shell", programs.inside({**policy, "shell": shell}, anybody=anybody)),
        _program(wrapper, [*programs.inside(policy, anybody=anybody), shell]),
    )


def _program(file: Path, command: Sequence[str]) -> Path:
    # Not written over: the file may be running, and a link may have been put in its place.
    file.unlink(missing_ok=True)
    # A script, since the path of Python may hold a space, which a line of `#!` cannot.
    file.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    file.chmod(0o755)
    return file


@dataclass(frozen=True)
class Isolation:
    """What is there to confine runs with."""

    offered: Offered
    unsafe: bool = False
    """Whether a run may have no isolation at all."""
    programs: Sequence[Path] = ()
    """Programs of Zelda's own that run inside, the CLI above all."""
    sockets: Sequence[Path] = ()
    """Of daemons that would give a run the machine."""

    def of(self, suite: ResolvedSuite) -> IsolationLevel:
        """The level of a suite's runs.

        Raises:
            ConfigError: It cannot be had.
        """
        settings = suite.isolation
        level = levels.choose_level(self.offered, settings.level, settings.require, unsafe=self.unsafe)
        if not self.unsafe:
            daemons.refuse_reachable(level, self.sockets)
        return level


# Shells that need no options of the user's, and how they stop at the first failure.
STRICT = {"bash": ("-e", "-o", "pipefail", "-c"), "sh": ("-e", "-c")}

NO_PIPEFAIL = (
    "There is no bash on PATH, so sh runs the commands: of a pipe only the last part decides whether it failed. "
    "Install bash, or choose a shell with `shell`."
)


def arguments(command: Command, suite: ResolvedSuite, environment: Mapping[str, str]) -> list[str]:
    """The program to start and its arguments.

    Raises:
        WorkspaceError: The shell that the suite asks for is not there (`SHELL_MISSING`).
    """
    return [*_shell(suite, environment), command] if isinstance(command, str) else list(command)


def notes(suite: ResolvedSuite, environment: Mapping[str, str]) -> tuple[str, ...]:
    """What to know of the shell of a suite's commands.

    Raises:
        WorkspaceError: As in `arguments`.
    """
    commands = (suite.setup_command, suite.build_command, suite.test_command)
    if not any(isinstance(command, str) for command in commands):
        return ()
    _shell(suite, environment)
    return () if suite.shell or _program_path("bash", environment) else (NO_PIPEFAIL,)


def _shell(suite: ResolvedSuite, environment: Mapping[str, str]) -> Sequence[str]:
    setting = suite.shell or ("bash" if _program_path("bash", environment) else "sh")
    words = setting.split() if isinstance(setting, str) else list(setting)
    options = STRICT.get(PurePath(words[0]).name, ()) if len(words) == 1 else ()
    # Zelda's own choice, looked up where the run will look: what is missing is told before anything is spent.
    program = _program_path(words[0], environment) or ("/bin/sh" if words[0] == "sh" else None)
    if program is None:
        raise WorkspaceError(
            f"shell: {words[0]} is not on PATH, which is {environment.get('PATH', '')} in the run.",
            hint="Install it, or choose another shell.",
            code="SHELL_MISSING",
        )
    return (program, *options, *words[1:])


def _program_path(program: str, environment: Mapping[str, str]) -> str | None:
    return shutil.which(program, path=machine_path(environment))
