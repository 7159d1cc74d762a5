"""Real services of the developer: at levels where a run is the developer's own user, their sockets are out of reach."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import needs
from tests.support.projects import Project, repository
from zelda_ci.domain.suite import IsolationLevel
from zelda_ci.domain.workspace import Workspace
from zelda_ci.workspace.workspaces import Workspaces


def need(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return repository(tmp_path, {"a": ""})


def inside(project: Project, level: IsolationLevel, script: str) -> str:
    """What a command of a suite prints."""
    needs.level(level)
    project.level = level

    async def work(workspaces: Workspaces, workspace: Workspace) -> str:
        return str((await workspaces.run_command(workspace, ("sh", "-c", script), 60)).output)

    printed: str = project.work(work)
    return printed


def outside(script: str) -> str:
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[str]:
    need("tmux")
    socket = tmp_path / "tmux.sock"
    ask = f"tmux -f /dev/null -S {socket}"
    subprocess.run(f"{ask} new-session -d 'sleep 600'", shell=True, check=True)
    yield ask
    subprocess.run(f"{ask} kill-server", shell=True, check=True)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[str]:
    need("ssh-agent")
    socket = tmp_path / "agent.sock"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    while not socket.exists():
        pass
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "my key", "-f", tmp_path / "key"], check=True)
    environment = {**os.environ, "SSH_AUTH_SOCK": str(socket)}
    subprocess.run(["ssh-add", "-q", tmp_path / "key"], env=environment, check=True)
    yield f"SSH_AUTH_SOCK={socket} ssh-add -l"
    process.kill()
    process.wait()


@pytest.mark.parametrize("level", ["landlock", "degraded"])
def test_a_terminal_multiplexer_runs_nothing_outside(project: Project, level: IsolationLevel, tmux: str) -> None:
    outside(f"{tmux} run-shell 'touch {project.path}/reached'")
    assert (project.path / "reached").exists()
    printed = inside(project, level, f"{tmux} run-shell 'touch {project.path}/escaped' 2>&1")
    assert not (project.path / "escaped").exists()
    assert "not permitted" in printed or "not supported" in printed or "error" in printed


@pytest.mark.parametrize("level", ["landlock", "degraded"])
def test_an_agent_lists_no_keys(project: Project, level: IsolationLevel, agent: str) -> None:
    assert "my key" in outside(agent)
    assert "my key" not in inside(project, level, f"{agent} 2>&1")


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


@pytest.mark.parametrize("level", ["landlock", "degraded"])
def test_pairs_of_sockets_work_and_lead_nowhere_else(project: Project, level: IsolationLevel, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as by_path, socket.socket(socket.AF_UNIX) as abstract:
        for listener, sign in ((by_path, ""), (abstract, "\0")):
            listener.bind(f"{sign}{tmp_path}/any.sock")
            listener.listen()
        assert inside(project, level, f"python3 -c '{PAIRS}' {tmp_path}/any.sock") == "fine\n"
