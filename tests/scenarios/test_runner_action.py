"""The action on the runner itself: its own node script, its own installation, and then what `zelda ci` does."""

import json
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.stage import BAD, GOOD, GREETING, Stage
from tests.support import needs
from tests.support.command import KEY
from tests.support.places import make_passable
from tests.support.projects import wait_until
from tests.support.scripted_api import ScriptedApi, hang, tool_call
from tests.support.scripted_api import text as said

REPOSITORY = Path(__file__).parents[2]
RUNNER = REPOSITORY / "runner"


@pytest.fixture(scope="module")
def temporary() -> Iterator[Path]:
    """RUNNER_TEMP of a job with several steps: the first one installs Zelda there."""
    place = make_passable(prefix="zelda-runner-temp-")
    yield place
    shutil.rmtree(place)


def machine(temporary: Path, **more: str | None) -> dict[str, Any]:
    """The step of the action on a runner that is somebody's own machine, so that nothing of it is changed."""
    # As on the runner: what runs need is tried first, and workspaces lie where the runner has its temporary files.
    off = dict.fromkeys(("ZELDA_NO_CHECK", "ZELDA_WORKSPACES", "PYTHONWARNINGS"))
    variables = {"RUNNER_TEMP": str(temporary), "RUNNER_ENVIRONMENT": "self-hosted", **off, **more}
    return {"action": RUNNER, "variables": variables}


def test_a_pull_request_gets_all_that_the_container_gives_it(tmp_path: Path, temporary: Path) -> None:
    """Comment, outputs, summary, exit code, and artifacts, stored by Zelda as in the container."""
    with Stage(tmp_path) as stage:
        stage.store(stage.tip, score=100)
        done = stage.pull_request(stage.open_pull(), BAD, **machine(temporary))
        assert done.code == 1, done.printed
        assert "Zelda is installed with Python 3." in done.printed
        assert (done.outputs["verdict"], done.outputs["regressions"]) == ("regressed", "1")
        (body,) = stage.bodies()
        assert "greeting" in body
        assert "greeting" in done.summary
        (stored,) = stage.stored
        assert done.outputs["artifact-id"] == str(stored.id)
        assert json.loads(stored.files["zelda-ci.json"])["pullRequest"] == 7
        assert len(stage.transcripts) == len(stage.reports) == 1
        # The workspace has what the container leaves there, and no trace of the installation.
        assert stage.project.git("status", "--porcelain", "--ignored").split() in ([], ["!!", ".zelda/"])
        # A second step installs nothing, and what the job puts before Python does not reach Zelda.
        traps, sprung = trapped(tmp_path / "trap")
        again = stage.pull_request(stage.open_pull(number=8), GOOD, **machine(temporary, **traps))
        assert (again.code, again.outputs["verdict"]) == (0, "unchanged"), again.printed
        assert "is installed" not in again.printed
        assert not sprung.exists(), sprung.read_text()


# Before what needs bubblewrap, which it installs.
@needs.SUDO
def test_a_machine_of_githubs_is_raised_to_full_by_sudo_which_no_session_has(tmp_path: Path, temporary: Path) -> None:
    had_bubblewrap = shutil.which("bwrap") is not None
    # In capitals only where the command has run: the transcript holds the command, too.
    tries = (
        "if sudo -n true 2>why; then echo gained; else echo refused; fi | tr a-z A-Z; cat why; echo hi >greeting.txt"
    )
    with Stage(tmp_path) as stage:
        told = machine(temporary, RUNNER_ENVIRONMENT="github-hosted", ZELDA_UNSAFE=None, ZELDA_ACCEPT_ISOLATION=None)
        looks = [tool_call("Bash", {"command": tries}), said("Done.")]
        done = stage.pull_request(stage.open_pull(), looks, isolation_require="full", **told)
        assert done.code == 0, done.printed
        (transcripts,) = stage.transcripts
        (seen,) = [data.decode() for name, data in transcripts.files.items() if name.endswith("transcript.json")]
    assert "isolation: full" in done.printed
    assert had_bubblewrap or "sudo: apt-get install" in done.printed
    assert "REFUSED" in seen
    assert "GAINED" not in seen


SPY = """\
import json, os, pathlib, socket, subprocess
found = dict(os.environ)
for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
    try: found[str(entry)] = entry.read_text(errors="replace")
    except OSError: pass
for place in PLACES:
    try: found[place] = str(os.listdir(place) if os.path.isdir(place) else open(place).read())
    except OSError as error: pass
for place in SOCKETS:
    try: found["reached"] = str(socket.socket(socket.AF_UNIX).connect(place))
    except OSError as error: found["closed"] = str(error)
print(json.dumps(found))
open("greeting.txt", "w").write("hello")
"""
SECRET, COMMITTED_TOKEN = "runner-secret-7f3a", "AUTHORIZATION: basic eC1hY2Nlc3M6Zm9v"


def home_of_the_runner(tmp_path: Path) -> Path:
    home = tmp_path / "home of the runner"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "credentials").write_text(SECRET)
    return home


def toolchain(tmp_path: Path) -> Path:
    """The folder of programs that an action such as actions/setup-node puts on PATH."""
    tools = tmp_path / "hostedtoolcache" / "greeter" / "1.0" / "x64" / "bin"
    tools.mkdir(parents=True)
    (tools / "greeter").write_text("#!/bin/sh\necho greeted by the toolchain\n")
    (tools / "greeter").chmod(0o755)
    return tools


def test_a_session_sees_the_toolchain_and_nothing_of_the_job(tmp_path: Path, temporary: Path) -> None:
    """Neither tokens nor the checkout's credentials, the runner's home, nor its Docker socket."""
    needs.level("full")
    home, tools = home_of_the_runner(tmp_path), toolchain(tmp_path)
    (temporary / "git-credentials-1.config").write_text(COMMITTED_TOKEN)
    places = [str(home / ".aws" / "credentials"), str(temporary / "git-credentials-1.config")]
    daemon = tmp_path / "docker.sock"
    spy = f"PLACES, SOCKETS = {places!r}, {[str(daemon)]!r}\n{SPY}"
    suite = GREETING.replace("testCommand: test -f", "testCommand: greeter && test -f")
    files = {"spy.py": spy, "zelda/test-greeting.yaml": suite}
    with Stage(tmp_path / "stage", files) as stage, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(daemon))
        daemon.chmod(0o777)
        listening.listen()
        more = {"DOCKER_HOST": f"unix://{daemon}", "MY_TOKEN": SECRET}
        told = machine(temporary, HOME=str(home), PATH=f"{tools}:{os.environ['PATH']}", **more)
        looks = [tool_call("Bash", {"command": "greeter && python3 spy.py"}), said("Done.")]
        done = stage.pull_request(stage.open_pull(), looks, **told)
        assert done.code == 0, done.printed
        assert done.outputs["verdict"] == "measured"
        (transcripts,) = stage.transcripts
        (name,) = [name for name in transcripts.files if name.endswith("transcript.json")]
        seen = transcripts.files[name].decode()
    assert "greeted by the toolchain" in seen
    assert "isolation: full" in done.printed
    assert "GIT_CEILING_DIRECTORIES" in seen
    assert "closed" in seen
    assert "reached" not in seen
    for hidden in (SECRET, COMMITTED_TOKEN, "ACTIONS_RUNTIME_TOKEN", "ACTIONS_RESULTS_URL", "GITHUB_OUTPUT", "INPUT_"):
        assert hidden not in seen


def trapped(folder: Path) -> tuple[dict[str, str | None], Path]:
    """A python3 in PATH that the code under test has made, modules that PYTHONPATH names, and what they leave."""
    folder.mkdir()
    sprung = folder.parent / "sprung"
    for name in ("python3", "pip", "sudo"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {sprung}\nexit 1\n")
        (folder / name).chmod(0o755)
    for name in ("json", "zelda_ci", "usercustomize"):
        (folder / f"{name}.py").write_text(f"open({str(sprung)!r}, 'a').write({name!r})\nraise SystemExit(1)\n")
    return {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(folder)}, sprung


def test_a_cancelled_step_ends_its_session_and_keeps_what_it_had(tmp_path: Path, temporary: Path) -> None:
    """The runner signals the node process alone, which has to pass it on."""

    def during(process: Any, api: ScriptedApi) -> None:
        wait_until(lambda: bool(api.requests))
        os.kill(process.pid, signal.SIGINT)

    with Stage(tmp_path) as stage:
        done = stage.pull_request(stage.open_pull(), lambda _: hang(), during=during, **machine(temporary))
        assert done.code == 130, done.printed
        assert done.outputs["verdict"] == "cancelled"
        assert not list(temporary.glob("zelda/*/runs/*"))


def test_a_step_that_is_cancelled_while_it_installs_says_so_and_no_secret_went_there(tmp_path: Path) -> None:
    """What fetches packages gets neither keys nor tokens, and no input."""
    seen: dict[str, str] = {}

    def preparation() -> Iterator[Path]:
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if (
                    os.fsencode(RUNNER / "prepare.py") in words
                    and os.fsencode(tmp_path) in (entry / "environ").read_bytes()
                ):
                    yield entry

    def during(process: Any, _: ScriptedApi) -> None:
        wait_until(lambda: bool(list((tmp_path / "temp").glob("zelda-ci/*"))))
        # The oldest: a child that is about to start another program looks like its parent.
        entry = min(preparation(), key=lambda entry: int(entry.name))
        told = (entry / "environ").read_bytes().decode().split("\0")
        seen.update(dict(each.split("=", 1) for each in told if each))
        os.kill(process.pid, signal.SIGINT)

    with Stage(tmp_path / "stage") as stage:
        (tmp_path / "temp").mkdir()
        token = stage.github.token
        done = stage.pull_request(stage.open_pull(), during=during, **machine(tmp_path / "temp"))
    assert done.code == 130, done.printed
    assert done.outputs == {"verdict": "cancelled"}
    assert "cancelled before Zelda was installed" in done.summary
    assert {"RUNNER_TEMP", "GITHUB_OUTPUT", "HOME"} <= set(seen)
    assert not [name for name in seen if name.startswith(("ACTIONS_", "INPUT_", "ANTHROPIC_"))]
    assert not {KEY, token} & set(seen.values())
