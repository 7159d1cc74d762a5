"""The `zelda` command as a user starts it: a process of its own, in a project of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support import warm
from tests.support.measured import measured
from tests.support.patience import PATIENCE
from tests.support.projects import Project, is_running, wait_until

COMMAND = [sys.executable, "-m", "zelda_ci"]
KEY = "sk-ant-fake-key-of-the-developer"

# Where the machine offers weak isolation only, what is tested here can be tested all the same.
WORD = {"ZELDA_ACCEPT_ISOLATION": "landlock"}


def environment(project: Project, api_url: str | None = None, **more: str) -> dict[str, str]:
    """What the developer's shell holds; with a key where there is an API."""
    access = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": api_url} if api_url else {}
    # Where the package is not installed but lies on the path, it does so for the command too; and a level is its level.
    path = {name: os.environ[name] for name in ("PYTHONPATH", "ZELDA_ISOLATION") if name in os.environ}
    # Where the machine offers no isolation, what is tested here can be tested all the same.
    # What is tried before a run has tests of its own; elsewhere it would only take time, and replies of the script.
    # One session at a time, so that a script can say what comes next.
    habits = {
        "ZELDA_JOBS": "1",
        "ZELDA_NO_CHECK": "1",
        "PYTHONWARNINGS": "error",
        "COLUMNS": "100",
        "ZELDA_UNSAFE": "1",
        **WORD,
    }
    return {**project.environ, **habits, **measured(), **path, **access, **more}


def zelda(project: Project, *arguments: str, api: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the project to its end."""
    return run(arguments, project.path, environment(project, api, **more))


def run(
    arguments: Sequence[str], cwd: Path, environ: Mapping[str, str], stdin: str = "", *, one_stream: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run `zelda` to its end, warm where that makes no difference; with one stream, errors are in the output."""
    if warm.can_start(environ):
        ended = warm.run(arguments, cwd, environ, stdin=stdin, one_stream=one_stream, timeout=PATIENCE)
        return subprocess.CompletedProcess([*arguments], *ended)
    return run_cold(arguments, cwd, environ, stdin, one_stream=one_stream)


def run_cold(
    arguments: Sequence[str], cwd: Path, environ: Mapping[str, str], stdin: str = "", *, one_stream: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run `zelda` to its end, from the start of Python on."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environ,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if one_stream else subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@contextmanager
def started(project: Project, *arguments: str, api: str | None = None, **more: str) -> Iterator[warm.Process]:
    """A command that is under way, like one in the foreground of a terminal; killed if it is still there in the end."""
    process = warm.start(arguments, project.path, environment(project, api, **more), new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=PATIENCE)


def ended(process: warm.Process) -> tuple[int, str]:
    """Exit code and output, once it has ended."""
    output, _ = process.communicate(timeout=PATIENCE)
    return process.wait(), output


def results(project: Project) -> list[dict[str, Any]]:
    """Every stored result, by name of the run."""
    return [json.loads(file.read_bytes()) for file in sorted(project.results.glob("runs/*/result.json"))]


def the_result(project: Project) -> dict[str, Any]:
    (result,) = results(project)
    return result


def transcript(project: Project) -> dict[str, Any]:
    (file,) = project.results.glob("runs/*/transcript.json")
    found: dict[str, Any] = json.loads(file.read_bytes())
    return found


def processes(project: Project) -> list[str]:
    """Command lines of processes that were started for a run of this project, wherever they hide."""
    mark = os.fsencode(project.base)
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line, looks = (entry / "cmdline").read_bytes(), 1000
            # Amid execve it has none, which lasts while the old memory is given back.
            while looks and not line and is_running(entry.name):
                time.sleep(0.001)
                line, looks = (entry / "cmdline").read_bytes(), looks - 1
            # Claude Code closes its environment to all but root.
            if line and (mark in line or mark in (entry / "environ").read_bytes()) and not _is_killed(entry):
                found.append(line.replace(b"\0", b" ").decode())
    return [command for command in found if "zelda_ci" not in command]


def _is_killed(process: Path) -> bool:
    """Whether it has been sent SIGKILL: on a busy machine it may not yet have had the time to die of it."""
    (pending,) = (line.split()[1] for line in (process / "status").read_text().splitlines() if "SigPnd" in line)
    return bool(int(pending, 16) & 1 << signal.SIGKILL - 1)


def gone(project: Project) -> bool:
    """Whether nothing of any run is left: no process, no workspace, no lease."""
    return not processes(project) and not project.leftovers()


def slow_git(folder: Path, word: str, reached: Path) -> str:
    """A PATH whose git takes four seconds longer, and says so, the first time it is asked for `word`."""
    folder.mkdir()
    real = next(path for path in os.environ["PATH"].split(os.pathsep) if Path(path, "git").exists())
    shim = folder / "git"
    shim.write_text(
        f'#!/bin/sh\ncase " $* " in *" {word} "*) [ -e "{reached}" ] || {{ touch "{reached}"; sleep 4; }};; esac\n'
        f'exec "{real}/git" "$@"\n'
    )
    shim.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


after = wait_until
