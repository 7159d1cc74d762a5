"""Walls that cannot be put up stop what they should hold; and networks that are closed are closed."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.test_isolation_levels import project, run
from tests.support import needs
from tests.support.patience import PATIENCE
from tests.support.projects import Project
from zelda_ci.sandbox import kernel, programs

__all__ = ["project"]


def confined(
    policy: dict[str, object], *argv: str, depth: int = 0, before: tuple[str, ...] = ()
) -> tuple[int, str, str]:
    """Exit code, output and errors of a program below the supervisor."""
    start = [*programs.supervisor(os.getpid()), "--confined", str(depth), "--", *before]
    done = subprocess.run(
        [*start, *programs.inside({"ready": True, **policy}), *argv],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


BROKEN: dict[str, dict[str, object]] = {
    "a right that no kernel knows": {"landlock": {"files": 1 << 60, "tcp": 0, "scoped": 0, "rules": []}},
    "a rule beyond the rules": {"landlock": {"files": 1, "tcp": 0, "scoped": 0, "rules": [[2, ["/usr"]]]}},
    "a filter that jumps nowhere": {"seccomp": "15000505deadbeef"},
    "no filter": {"seccomp": ""},
    "a limit that does not exist": {"limits": {"PATIENCE": 1}},
    "half a policy": {"landlock": {}},
    "a user that cannot be taken": {"uid": -2 if os.geteuid() == 0 else 31000},
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_wall_that_cannot_be_put_up_means_that_nothing_runs(what: str) -> None:
    code, out, err = confined(BROKEN[what], "/bin/echo", "ran")
    assert (code, out) == (125, "")
    assert err.splitlines()[0].startswith("the program was not started, because it could not be confined: ")
    assert "Traceback" not in err


MUTE = {"fails": ("false",), "is missing": ("/nowhere/bwrap",), "lies": ("sh", "-c", "echo x >&3")}


@pytest.mark.parametrize("launcher", MUTE)
def test_a_launcher_that_never_says_it_is_done_means_that_nothing_ran(launcher: str) -> None:
    code, _, err = confined({}, "/bin/echo", "ran", before=MUTE[launcher])
    assert code == 125
    assert "could not be confined" in err


@needs.BWRAP
def test_bubblewrap_that_fails_means_that_nothing_runs() -> None:
    needs.level("full")
    code, out, err = confined({}, "/bin/echo", "ran", depth=2, before=("bwrap", "--ro-bind", "/nowhere", "/", "--"))
    assert (code, out) == (125, "")
    assert "/nowhere" in err


LOOK = """\
import os, sys
print(*(os.readlink(f"/proc/self/fd/{number}") for number in (0, 1)), file=sys.stderr)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_what_stands_before_the_program_holds_neither_its_input_nor_its_output() -> None:
    code, out, err = confined({}, "/bin/echo", "ran", before=(sys.executable, "-c", LOOK))
    assert (code, out, err.split()) == (0, "ran\n", ["/dev/null", "/dev/null"])


def test_a_secret_is_in_no_environment_and_reaches_a_program_that_closes_itself_first() -> None:
    start = [*programs.supervisor(os.getpid()), "--confined", "0", "--secret", "TOKEN", "--"]
    program = ["sh", "-c", "cat <&4; printf R >&3; env"]
    between = ["sh", "-c", 'env >&2; exec "$@"', "sh"]
    policy = {"ready": True}
    done = subprocess.run(
        [*start, *between, *programs.inside(policy), *program],
        env={"PATH": os.environ["PATH"], "TOKEN": "sk-ant-fake-secret", "SHOWN": "yes", "ZELDA_CONFINED": "1"},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("TOKEN=sk-ant-fake-secret")
    assert ("SHOWN=yes" in done.stdout, (done.stdout + done.stderr).count("TOKEN=")) == (True, 1)


@pytest.mark.parametrize("argv", [("no-such-program",), (str(Path(__file__)),)])
def test_a_program_that_cannot_be_started_is_its_own_failure(argv: tuple[str, ...]) -> None:
    abi = kernel.version()
    code, _, _ = confined({"landlock": kernel.policy(abi, [Path("/")], [], internet=True)} if abi else {}, *argv)
    assert code in {126, 127}


CLOSED = """python3 - <<'END'
import socket
four, six, stream = socket.AF_INET, socket.AF_INET6, socket.SOCK_STREAM
for family, kind in ((four, stream), (four, socket.SOCK_DGRAM), (six, stream)):
    try:
        with socket.socket(family, kind) as line:
            line.settimeout(2)
            line.connect(("127.0.0.1" if family == socket.AF_INET else "::1", {port}))
            line.send(b"x")
            kind == socket.SOCK_STREAM and print("reached")
        with socket.socket(family, kind) as line:
            line.settimeout(2)
            line.connect(("192.0.2.1", 9) if family == socket.AF_INET else ("2001:db8::1", 9))
            print("left")
    except OSError as error:
        pass
END
"""


def test_a_closed_network_reaches_no_service_of_this_machine_and_none_beyond(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as service:
        line = CLOSED.replace("{port}", str(service.getsockname()[1]))
        assert "reached" in run(project, line, network={"test": "open"}).output
        assert run(project, line, network={"test": "none"}).output == ""
