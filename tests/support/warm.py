"""Commands that start warm: forked from a process that has imported already what a run needs.

A cold start of `zelda run` spends most of its time of the processor on imports, and the tests start hundreds. What is
forked is the command all the same: a process of its own, with its own folder, environment, streams, and exit code.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NoReturn, TextIO

from tests.support.measured import count_supervisors, measured

START_SECONDS = 300.0
"""How long the template may take to import everything, on a machine that is busy."""

MAX_ORDER_BYTES = 1 << 18
MAX_DESCRIPTORS = 256
"""The template has one for each command that is under way, and a few beside."""

PRELOADED = (
    "anthropic",
    "anyio._backends._asyncio",
    "claude_agent_sdk",
    "httpcore2",
    "h11",
    "zelda_ci.app",
    "zelda_ci.ci.action",
    "zelda_ci.cli.boundary",
    "zelda_ci.github.api",
    "zelda_ci.judge.anthropic_judge",
    "zelda_ci.model_proxy.live",
    "zelda_ci.model_proxy.server",
    "zelda_ci.workspace.workspaces",
    "tests.builders",
    *(f"zelda_ci.cli.{file.stem}" for file in (Path(__file__).parents[2] / "zelda_ci" / "cli").glob("[a-z]*.py")),
)

HARMLESS = {"PYTHONPATH", "PYTHONWARNINGS"}
"""The package lies where it does for the tests, and warnings are errors."""


def can_start(environ: Mapping[str, str]) -> bool:
    """Whether a forked process behaves as one that starts with this environment.

    What Python and C take from it at their start would come too late. Coverage measures a template from its start, and
    each process that is forked from it.
    """
    early = {name for name in environ if name.startswith(("PYTHON", "LC_", "LANG"))}
    counted = {name: value for name, value in environ.items() if name.startswith("COVERAGE_")}
    return hasattr(os, "pidfd_open") and early <= HARMLESS and counted == measured()


class Process:
    """A command that is under way; what it has of `subprocess.Popen` means the same.

    Args:
        arguments: Of the module, which is run as `python -m` runs it.
        streams: Its standard input, output and error, which stay the caller's to close.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        cwd: Path,
        environ: Mapping[str, str],
        streams: tuple[int, int, int],
        *,
        module: str = "zelda_ci",
        new_session: bool = False,
    ) -> None:
        self.arguments = list(arguments)
        self.returncode: int | None = None
        self.stdout: TextIO | None = None
        order = json.dumps([module, self.arguments, str(cwd), dict(environ), new_session]).encode()
        self._answers, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            socket.send_fds(_template(), [order], [there.fileno(), *streams])
        self._answers.settimeout(START_SECONDS)
        self.pid = int(self._answers.recv(32))

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, or a negative signal.

        Raises:
            subprocess.TimeoutExpired: It has not ended yet.
        """
        if self.returncode is None:
            self._answers.settimeout(timeout)
            try:
                self.returncode = int(self._answers.recv(32))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.arguments, timeout or 0) from None
            self._answers.close()
        return self.returncode

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for its end, and read what is left of its output; it is killed where that takes too long."""
        with ThreadPoolExecutor(1) as pool:
            output = pool.submit(self.stdout.read) if self.stdout and not self.stdout.closed else None
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            text = output.result(timeout) if output else ""
        if self.stdout:
            self.stdout.close()
        return text, ""


def start(
    arguments: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    module: str = "zelda_ci",
    new_session: bool = False,
) -> Process:
    """A command whose standard error is in its output, which the caller reads."""
    assert can_start(environ)
    out, end = os.pipe()
    with Path(os.devnull).open() as nothing:
        process = Process(arguments, cwd, environ, (nothing.fileno(), end, end), module=module, new_session=new_session)
    os.close(end)
    process.stdout = os.fdopen(out, encoding="utf-8")
    return process


def run(
    arguments: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    stdin: str = "",
    one_stream: bool = False,
    timeout: float,
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a `zelda` command that was run to its end.

    Raises:
        subprocess.TimeoutExpired: It took too long, and was killed.
    """
    (given, typed), (out, out_end), (err, err_end) = os.pipe(), os.pipe(), os.pipe()
    os.write(typed, stdin.encode())
    with ThreadPoolExecutor(2) as pool:
        process = Process(arguments, cwd, environ, (given, out_end, out_end if one_stream else err_end))
        for descriptor in (given, typed, out_end, err_end):
            os.close(descriptor)
        texts = [pool.submit(_text, descriptor) for descriptor in (out, err)]
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return code, texts[0].result(timeout), texts[1].result(timeout)


def _text(descriptor: int) -> str:
    with open(descriptor, encoding="utf-8") as stream:
        return stream.read()


@cache
def _template() -> socket.socket:
    """The way to the template of this process, which ends when the other end of its standard input does."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with there:
        process = subprocess.Popen(
            [sys.executable, "-c", "from tests.support import warm; warm.serve()"],
            stdin=there.fileno(),
            cwd=Path(__file__).parents[2],
            env={"PATH": os.environ["PATH"], "PYTHONWARNINGS": "error", **measured(), **_paths()},
        )

    def end() -> None:
        here.close()
        process.wait()

    atexit.register(end)
    return here


def _paths() -> dict[str, str]:
    return {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}


def serve() -> None:
    """Fork a command for every order that comes on standard input, and tell its process id and its exit code."""
    for name in PRELOADED:
        importlib.import_module(name)
    # Compiled once: each command that writes a report would do it for itself.
    for module in ("zelda_ci.report.html.rendering", "zelda_ci.judge.rendering"):
        imported = importlib.import_module(module)
        for template in Path(str(imported.__file__)).parent.rglob("*.j2"):
            imported.environment().get_template(template.name)
    count_supervisors()
    gc.freeze()
    with socket.socket(fileno=os.dup(0)) as control, selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not control:
                    selector.unregister(key.fileobj)
                    os.close(key.fd)
                    _report_end(*key.data)
                    continue
                order, descriptors, *_ = socket.recv_fds(control, MAX_ORDER_BYTES, 4)
                if not order:
                    return
                pid = os.fork()
                if pid == 0:
                    _become(json.loads(order), descriptors[1:])
                for descriptor in descriptors[1:]:
                    os.close(descriptor)
                answers = socket.socket(fileno=descriptors[0])
                _say(answers, pid)
                selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, answers))


def _report_end(pid: int, answers: socket.socket) -> None:
    with answers:
        _say(answers, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _say(answers: socket.socket, number: int) -> None:
    with suppress(OSError):  # nobody waits any more
        answers.send(str(number).encode())


def _become(order: tuple[str, list[str], str, dict[str, str], bool], streams: Sequence[int]) -> NoReturn:
    """The command itself: nothing of the template is open or set here any more."""
    module, arguments, cwd, environ, new_session = order
    if new_session:
        os.setsid()
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.closerange(3, MAX_DESCRIPTORS)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = ["zelda" if module == "zelda_ci" else module, *arguments]
    code = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - as Python itself ends
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code)
