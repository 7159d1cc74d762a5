"""What each level of isolation keeps a run from doing, tried for real at every level that this machine offers."""

import contextlib
import ctypes
import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.support import needs
from tests.support.command import zelda
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text
from zelda_ci.domain.details import CommandResult
from zelda_ci.domain.suite import IsolationSettings, ResolvedSuite
from zelda_ci.domain.workspace import CommandPhase, Workspace
from zelda_ci.errors import ConfigError
from zelda_ci.sandbox import levels
from zelda_ci.sandbox.confine import Isolation
from zelda_ci.workspace.workspaces import Workspaces

WALLS = ["full", "uid", "landlock"]
ALL_WALLS = [level for level in levels.STRENGTH if level != "none"]
OFFERED = levels.probe(os.environ)


@pytest.fixture(params=WALLS)
def project(request: pytest.FixtureRequest, place: Path) -> Project:
    needs.level(request.param)
    made = repository(place, {"README.md": "hello\n", ".gitignore": ".env\n.zelda/\n"})
    made.write({".env": "TOKEN=sk-canary-of-env\n"})
    (made.home / ".ssh").mkdir()
    (made.home / ".ssh/id").write_text("canary-of-ssh\n")
    made.level = request.param
    return made


def run(project: Project, line: str, phase: CommandPhase = "test", **settings: Any) -> CommandResult:
    async def work(workspaces: Workspaces, workspace: Workspace) -> CommandResult:
        assert workspace.confinement.level == project.level
        return await workspaces.run_command(workspace, line, PATIENCE, phase=phase)

    result: CommandResult = project.work(work, isolation={"level": project.level, **settings})
    return result


BREACHES = {
    "write": "echo x >> {project}/README.md",
    "create": "touch {project}/new",
    "delete": "rm {project}/README.md",
    "link": "ln {project}/README.md hard && echo x >> hard",
    "move": "mv {project}/README.md .",
    "read": "cat {project}/.env",
    "read home": "cat {home}/.ssh/id",
    "truncate": "cd {project} && python3 -c 'import os; os.truncate(\"README.md\", 0)'",
    "other runs": "cat {base}/*/stores/lock",
    "shadow": "cat /etc/shadow",
    "environment of zelda": "cat /proc/{pid}/environ | grep -q PATH",
    "memory of zelda": "head -c 1 /proc/{pid}/mem",
    "folder of zelda": "ls /proc/{pid}/cwd/",
    "kernel log": "dmesg",
    "namespaces": "unshare -Ur true",
    "mounts": "unshare -m true",
    "mount": "mount -t tmpfs none .",
    "device": "mknod disk b 1 1",
    "file of another": "chown 12345 README.md",
    "network sockets of the kernel": "python3 -c 'import socket; socket.socket(socket.AF_VSOCK)'",
    "ring": "python3 -c 'import ctypes; exit(ctypes.CDLL(None).syscall(425, 1, 0) == -1)'",
    "keyring": "python3 -c 'import ctypes; exit(ctypes.CDLL(None).syscall(250, 0, -4, 1) == -1)'",
    "sysctl": "exec 3>/proc/sys/kernel/core_pattern",
    "sysrq": "exec 3>/proc/sysrq-trigger",
    "terminal of another": "exec 3>{terminal}",
    "core": 'test "$(ulimit -c)" != 0',
}
WEAKER = {
    "mode": "chmod +x {project}/README.md",
    "time": "touch -d 2001-01-01 {project}/README.md",
    "look": "stat {project}/.env",
    "signal": "kill -URG {pid}",
    "abstract socket": "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{abstract}\")'",
    "socket": "cd {project} && python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"door\")'",
}  # fmt: skip
HOLES = {
    "full": set[str](),
    "uid": {"look"},
    "landlock": {"mode", "time", "look"},
}
"""What remains by level, where the network is open."""


@pytest.mark.parametrize("project", ALL_WALLS, indirect=True)
def test_what_a_level_promises_it_keeps(project: Project) -> None:
    abstract = f"zelda-{os.getpid()}"
    values = {"{pid}": str(os.getpid()), "{abstract}": abstract}
    values |= {f"{{{name}}}": f"'{getattr(project, name)}'" for name in ("home", "base")}
    values["{project}"] = f"'{project.path}'"
    script = "\n".join(f"({line}) >/dev/null 2>&1 && echo '{attack}'" for attack, line in (BREACHES | WEAKER).items())
    for name, value in values.items():
        script = script.replace(name, value)
    keeper, terminal = os.openpty()
    script = script.replace("{terminal}", os.ttyname(terminal))
    arrived: list[int] = []
    usual = signal.signal(signal.SIGURG, lambda number, _: arrived.append(number))
    with socket.socket(socket.AF_UNIX) as hidden, socket.socket(socket.AF_UNIX) as door, contextlib.chdir(project.path):
        hidden.bind(f"\0{abstract}")
        door.bind("door")
        for listener in (hidden, door):
            listener.listen()
        result = run(project, f"{script}\ntrue")
    os.close(keeper)
    os.close(terminal)
    signal.signal(signal.SIGURG, usual)
    assert result.exit_code == 0
    # In a namespace of its own another process may have the number.
    found = set(result.output.splitlines()) - (set() if arrived else {"signal"})
    assert found == HOLES[project.level]


KNOCK = "cd /var/run && python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{name}\")'"


@needs.ROOT
@pytest.mark.parametrize("mode", [0o660, 0o666], ids=["docker's own mode", "open to everybody"])
def test_the_socket_that_runners_mount_into_actions_is_out_of_reach(project: Project, mode: int) -> None:
    """As /var/run/docker.sock, which makes whoever reaches it root on the runner: closed, or else nothing runs."""
    name = f"zelda-docker-{os.getpid()}.sock"
    path = Path("/var/run", name)
    suite = ResolvedSuite(
        name="a", file="a", prompt="a", isolation=IsolationSettings.model_validate({"level": project.level})
    )
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(path))
        try:
            path.chmod(mode)
            daemon.listen()
            phases: tuple[CommandPhase, ...] = ("setup", "build", "test")
            reached = {run(project, KNOCK.format(name=name), phase).exit_code == 0 for phase in phases}
            sockets = levels.container_sockets({"DOCKER_HOST": f"unix://{path}"})
            # Where root may mount, a run has a /run of its own; weaker levels make no UNIX sockets, but the CLI does
            # where the session has no network. By the socket's mode Zelda refuses all the same.
            is_closed = (project.level, mode) == ("uid", 0o666) or project.level == "landlock"
            if reached == {False} and not is_closed:
                assert Isolation(OFFERED, sockets=sockets).of(suite) == project.level
            else:
                assert is_closed or reached == {True}
                assert project.level in levels.WITHOUT_NAMESPACES
                with pytest.raises(ConfigError, match=f"could reach {path}"):
                    Isolation(OFFERED, sockets=sockets).of(suite)
                assert Isolation(OFFERED, sockets=sockets, unsafe=True).of(suite) == project.level
        finally:
            path.unlink()


def test_a_run_beside_the_socket_of_a_container_daemon_does_not_begin(tmp_path: Path) -> None:
    needs.level("landlock")
    project = repository(tmp_path, {"zelda/test-a.yaml": "prompt: Go.\nmetrics: {requirementFulfillment: false}\n"})
    with socket.socket(socket.AF_UNIX) as daemon, contextlib.chdir(tmp_path), ScriptedApi([text("Done.")]) as api:
        daemon.bind("docker.sock")
        address = {"DOCKER_HOST": f"unix://{tmp_path}/docker.sock", "ZELDA_UNSAFE": "0"}
        refused = zelda(project, "run", "--isolation", "landlock", api=api.url, **address)
        assert refused.returncode == 2
        assert "At isolation level landlock" in refused.stderr
        assert "docker.sock" in refused.stderr
        assert api.requests == []


def test_where_container_daemons_listen_is_known() -> None:
    found = levels.container_sockets({"XDG_RUNTIME_DIR": "/run/user/7", "CONTAINER_HOST": "unix:///x/y.sock"})
    assert {Path("/var/run/docker.sock"), Path("/run/user/7/docker.sock"), Path("/x/y.sock")} <= set(found)
    levels.refuse_reachable("landlock", [Path("/no/such.sock"), Path("/etc/passwd")])


LASTING = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
made = {"queue": libc.mq_open(sys.argv[1].encode(), os.O_CREAT | os.O_RDWR, 0o666, None)}
key, flags = int(sys.argv[2]), 0o1666
made |= {"shm": libc.shmget(key, 4096, flags), "sem": libc.semget(key, 1, flags), "msg": libc.msgget(key, flags)}
print(*(kind for kind, number in made.items() if number >= 0))
"""
MAKES = {
    "full": {"shm", "sem", "msg"},
    "uid": {"shm", "sem", "msg"},
    "landlock": set[str](),
}


def test_no_queue_semaphore_or_memory_outlives_its_run_and_the_developers_are_out_of_reach(project: Project) -> None:
    key, queue, name = 0x5A000000 + os.getpid(), f"/zelda-{os.getpid()}", f"/zelda-ours-{os.getpid()}"
    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.mq_open(name.encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
    shared = libc.shmget(0, 4096, 0o1600)
    ask = f'libc.mq_open(b"{name}", 2), libc.mq_unlink(b"{name}"), libc.shmctl({shared}, 0, None)'
    try:
        line = (
            f"python3 -c 'import ctypes; libc = ctypes.CDLL(None); print({ask})'; python3 -c '{LASTING}' {queue} {key}"
        )
        reached, made = run(project, line).output.split("\n")[:2]
        assert reached.split() == ["-1"] * 3
        assert set(made.split()) == MAKES[project.level]
        assert libc.mq_unlink(name.encode()) == 0
        assert libc.shmctl(shared, 0, None) == 0
    finally:
        os.close(number)
    assert libc.mq_unlink(queue.encode()) == -1
    left = [libc.shmget(key, 0, 0), libc.semget(key, 0, 0), libc.msgget(key, 0)]
    assert left == [-1, -1, -1]


@needs.ROOT
@pytest.mark.parametrize("project", ["uid"], indirect=True)
def test_a_run_with_a_user_of_its_own_sees_no_processes_and_sockets_of_others_where_root_may_mount(
    project: Project,
) -> None:
    door = Path(f"/run/zelda-test-{os.getpid()}")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(door))
        try:
            door.chmod(0o666)
            listener.listen()
            knock = f'import socket; socket.socket(socket.AF_UNIX).connect("{door}")'
            line = f"python3 -c '{knock}' 2>/dev/null && echo connected; cat /proc/{os.getpid()}/cmdline; ps -e | wc -l"
            result = run(project, f"({line}) 2>/dev/null; ls /proc/self/ >/dev/null && echo self")
        finally:
            door.unlink()
    first, *others = result.output.split()
    assert int(first) < 20
    assert others == ["self"]


PAIRS = """
import errno, socket, sys
near, far = socket.socketpair()
near.sendall(b"a")
assert far.recv(1) == b"a"
for kind in (socket.SOCK_DGRAM, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK):
    try:
        socket.socketpair(socket.AF_UNIX, kind)
    except OSError as error:
        assert error.errno == errno.EPERM
    else:
        sys.exit("half of such a pair can be connected anew")
for end in (near, *socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)):
    for sign in ("", "\\0"):
        for lonely in (False, True):
            if lonely:
                far.close()
            try:
                end.connect(sign + sys.argv[1])
            except OSError:
                continue
            sys.exit("a pair was connected anew")
print("fine")
"""


@pytest.mark.parametrize("project", ["landlock"], indirect=True)
def test_where_a_run_is_the_users_own_pairs_of_sockets_work_and_lead_nowhere_else(
    project: Project, place: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as by_path, socket.socket(socket.AF_UNIX) as abstract, contextlib.chdir(place):
        by_path.bind("s")
        abstract.bind(f"\0{place}/s")
        for listener in (by_path, abstract):
            listener.listen()
        assert run(project, f"python3 -c '{PAIRS}' '{place}/s'").output == "fine\n"
