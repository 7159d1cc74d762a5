"""The supervisor: a stand-alone program that leaves no descendant behind."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.headless import headless_that_writes_its_number
from tests.support.patience import PATIENCE
from tests.support.projects import is_running, wait_until
from zelda_ci.sandbox.programs import START

BARE = [sys.executable, "-I", "-S", str(START), "supervisor"]
DAEMONS = """
(setsid sleep 300 & echo $! >> {pids})
(env -i setsid sh -c 'cd /; trap "" TERM HUP INT; echo $$ >> {pids}; sleep 301; sleep 302' &)
sleep 303 & echo $! >> {pids}
until [ "$(wc -l < {pids})" = 3 ]; do sleep 0.01; done
"""


def start(*argv: str, options: tuple[str, ...] = (), close_fds: bool = True) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*BARE, *options, "--", *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        close_fds=close_fds,
    )


def finish(*argv: str, options: tuple[str, ...] = (), given: bytes = b"") -> tuple[int, bytes, bytes]:
    with start(*argv, options=options) as child:
        out, err = child.communicate(given, timeout=PATIENCE)
    return child.returncode, out, err


def living(pids: Path) -> list[str]:
    return [pid for pid in pids.read_text().split() if is_running(pid)]


def test_the_exit_code_is_the_programs_and_one_that_cannot_be_started_is_named() -> None:
    for line, code in {"exit 7": 7, "kill -9 $$": 137, "kill -SEGV $$": 139}.items():
        assert finish("sh", "-c", line)[0] == code
    assert finish("no-such-program")[::2] == (127, b"no-such-program: no such program\n")
    assert finish("/etc/passwd")[::2] == (126, b"/etc/passwd: Permission denied\n")


def test_streams_pass_through_and_signals_that_python_ignores_are_at_their_default_again() -> None:
    assert finish("sh", "-c", "cat; echo err >&2", given=b"in") == (0, b"in", b"err\n")
    code, out, err = finish("bash", "-c", "set -o pipefail; yes | head -1; echo ${PIPESTATUS[0]}")
    assert (code, out, err) == (0, b"y\n141\n", b"")


def test_the_program_gets_exactly_the_environment_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "environment"
    file.write_text(f"PATH={os.environ['PATH']}\0ONLY=this\nand=that\0")
    _, out, _ = finish("env", "-0", options=("--environment", str(file)))
    assert sorted(out.split(b"\0")) == [b"", b"ONLY=this\nand=that", b"PATH=" + os.fsencode(os.environ["PATH"])]


def test_no_descriptor_is_passed_on(tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)  # noqa: FBT003  # the name of the call says it
        with start("ls", "/proc/self/fd", close_fds=False) as child:
            out, _ = child.communicate(timeout=PATIENCE)
    assert out.split() == [b"0", b"1", b"2", b"3"]  # 3 is the folder that ls lists


def test_a_program_that_forks_without_end_is_ended(tmp_path: Path) -> None:
    line = f"f() {{ sleep 0.001; echo $$ >> {tmp_path}/n; (f &) ; }}; for n in 1 2 3; do f & done"
    line += f"; until [ -s {tmp_path}/n ]; do sleep 0.01; done; sleep 0.3; exit 5"
    assert finish("sh", "-c", line)[0] == 5
    before = (tmp_path / "n").stat().st_size
    time.sleep(0.2)
    assert (tmp_path / "n").stat().st_size == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_and_ends_everything(tmp_path: Path, number: signal.Signals) -> None:
    pids = tmp_path / "pids"
    pids.touch()
    with start("sh", "-c", f"trap 'echo asked; exit 9' {number.name[3:]}; {DAEMONS.format(pids=pids)} wait") as child:
        wait_until(lambda: len(pids.read_text().split()) == 3)
        child.send_signal(number)
        out, _ = child.communicate(timeout=PATIENCE)
    assert (child.returncode, out) == (9, b"asked\n")
    assert living(pids) == []


def test_who_ignores_the_signal_is_killed_after_a_moment_and_so_is_whom_a_killed_supervisor_leaves(
    tmp_path: Path,
) -> None:
    line = "trap '' TERM; echo $$ > {pids}; while :; do sleep 1; done"
    for end, code in ((signal.SIGTERM, 137), (signal.SIGKILL, -9)):
        pids = tmp_path / end.name
        with start("sh", "-c", line.format(pids=pids)) as child:
            wait_until(lambda pids=pids: pids.exists() and bool(pids.read_text()))  # type: ignore[misc]
            child.send_signal(end)
            child.communicate(timeout=PATIENCE)
        assert child.returncode == code
        wait_until(lambda pids=pids: living(pids) == [])  # type: ignore[misc]


def test_a_program_is_found_when_pythons_own_files_are_out_of_reach() -> None:
    code = (
        "import sys; from zelda_ci.sandbox.launcher import inside, shared; sys.path.clear(); shared.execute(['true'])"
    )
    root = str(Path(__file__).parents[2])
    given = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {root!r}); {code}"]
    assert subprocess.run(given, check=False).returncode == 0


def test_a_daemon_whose_first_thread_has_ended_is_ended_too(tmp_path: Path) -> None:
    pids, code = tmp_path / "pids", tmp_path / "headless.py"
    code.write_text(headless_that_writes_its_number(pids))
    line = f"setsid {shlex.quote(sys.executable)} -I {code} >/dev/null 2>&1 & until [ -s {pids} ]; do sleep 0.01; done"
    assert finish("sh", "-c", line)[0] == 0
    assert living(pids) == []


def test_everything_ends_when_the_parent_dies(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.touch()
    program = f"""
import os, subprocess
argv = {BARE!r} + ["--parent", str(os.getpid()), "--", "sh", "-c", {(DAEMONS.format(pids=pids) + " wait")!r}]
subprocess.run(argv)
"""
    with subprocess.Popen([sys.executable, "-c", program]) as parent:
        wait_until(lambda: len(pids.read_text().split()) == 3)
        parent.kill()
    wait_until(lambda: living(pids) == [])


def test_a_parent_that_died_before_it_was_watched_counts_as_dead() -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    code, _, _ = finish("sleep", "300", options=("--parent", str(gone.pid)))
    assert code == 143


def test_a_terminals_interrupt_does_not_reach_the_program(tmp_path: Path) -> None:
    """It goes to the foreground process group: the supervisor leaves it, so that Zelda alone decides."""
    line = "for pid in $$ $PPID; do read -r _ _ _ _ group session _ < /proc/$pid/stat; echo $group $session; done"
    with start("sh", "-c", line) as child:
        out, _ = child.communicate(timeout=PATIENCE)
    assert str(os.getpgrp()).encode() not in out.split()
    assert len(set(out.split())) == 2
