"""`zelda run` interrupted, terminated or killed at each phase: what was captured is kept, nothing is left behind."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command import (
    COMMAND,
    after,
    ended,
    environment,
    gone,
    processes,
    results,
    slow_git,
    started,
    the_result,
    transcript,
    zelda,
)
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from tests.support.scripted_api import Reply, ScriptedApi, hang, text, tool_call

SUITE = "zelda/test-greeting.yaml"
MARKS = ("*/runs/*/tmp/reached", "*/runs/*/checked/tmp/reached")
"""Of setup and session, and of build and tests, which have a checkout of their own."""
SCRIPT: list[Reply] = [
    tool_call(
        "Bash", {"command": "echo hello > greeting.txt; (setsid sleep 300 &) ; sleep 300 & true"}, text="I begin."
    ),
    hang(),
]
COMPLETE: list[Reply] = [tool_call("Bash", {"command": "echo hello > greeting.txt"}, text="I begin."), text("Done.")]


class Interruption:
    """A run that stands still in one phase; `reached` appears as soon as it is there."""

    def __init__(self, tmp_path: Path, phase: str, settings: str = "") -> None:
        self.mark = tmp_path / "reached"
        self.tools = tmp_path / "bin"
        self.tools.mkdir()
        self.settings = settings
        self.project: Project = repository(tmp_path, {"README.md": "# Sample\n", SUITE: self.suite(phase)})
        self.stand_still_in(phase)

    def suite(self, phase: str) -> str:
        line = "echo begun; touch written; touch $TMPDIR/reached; (setsid sleep 300 &) ; sleep 300"
        command = f"{phase}Command: {line}\n" if phase in COMMANDS else ""
        return f"prompt: Add a greeting.\n{command}{self.settings}"

    def stand_still_in(self, phase: str) -> None:
        """Have the next run do so."""
        self.phase = phase
        for mark in (self.mark, *self._marks()):
            mark.unlink(missing_ok=True)
        if (self.project.path / SUITE).read_text() != self.suite(phase):
            self.project.write({SUITE: self.suite(phase)})
        word = {"workspace": "worktree", "evaluation": "diff-index"}.get(phase, "nothing")
        self.path = slow_git(self.tools / str(len(list(self.tools.iterdir()))), word, self.mark)
        judged = [*COMPLETE, hang()]
        self.api = ScriptedApi({"session": SCRIPT, "setup": SCRIPT, "judging": judged}.get(phase, COMPLETE))

    def is_there(self) -> bool:
        wanted = {"session": 2, "judging": 3}.get(self.phase)
        if wanted is not None:
            return len(self.api.requests) == wanted
        return self.mark.exists() or any(self._marks())

    def _marks(self) -> list[Path]:
        return [mark for pattern in MARKS for mark in self.project.base.glob(pattern)]

    def after(self, act: Callable[[int], None]) -> tuple[int, str]:
        """Exit code and output of a run to which this was done when it was there."""
        with self.api as api, started(self.project, "run", api=api.url, PATH=self.path) as process:
            after(self.is_there)
            act(process.pid)
            return ended(process)


DECIDING = ("build", "test")
COMMANDS = ("setup", *DECIDING)


def by_terminal(pid: int) -> None:
    """Ctrl+C goes to the whole process group of the foreground."""
    os.killpg(pid, signal.SIGINT)


def by_supervisor(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)


def by_closing(pid: int) -> None:
    """As the shell of a terminal that is closed does it."""
    os.kill(pid, signal.SIGHUP)


ACTS = {"workspace": by_supervisor, "session": by_closing, "test": by_terminal}
"""Each way, and a phase of each kind: Zelda's own work, the session, and commands."""


@pytest.mark.parametrize(("phase", "act"), ACTS.items())
def test_an_interrupted_run_is_kept_as_such_and_leaves_nothing(
    tmp_path: Path, phase: str, act: Callable[[int], None]
) -> None:
    interruption = Interruption(tmp_path, phase)
    project = interruption.project
    before = project.fingerprint()
    code, output = interruption.after(act)
    assert code == 130, output
    assert "Traceback" not in output
    result = the_result(project)
    assert result["status"] == "interrupted"
    assert result["failure"]["code"] == "INTERRUPTED"
    if phase in COMMANDS:
        (log,) = project.results.glob(f"runs/*/{phase}.log")
        assert log.read_text() == "begun\n"
    if phase in DECIDING:
        assert "score" not in result["evaluations"]["functionalCorrectness"]
        assert "score" not in result["evaluations"]["efficiency"]
    if phase in {"session", *DECIDING}:
        assert result["changes"]["files"] == ["greeting.txt"]
        assert transcript(project)["entries"][0]["text"] == "I begin."
    assert gone(project)
    assert project.fingerprint() == before


KILLED = ("workspace", "session", "build")


def test_the_remains_of_a_killed_run_are_made_a_result_by_the_next_start(
    tmp_path: Path,
) -> None:
    """Also where the next one is killed in its turn."""
    interruption = Interruption(tmp_path, KILLED[0])
    project = interruption.project
    names = set(project.fingerprint())
    for number, following in enumerate((*KILLED[1:], "nothing")):
        interruption.after(lambda pid: os.kill(pid, signal.SIGKILL))
        assert [result["status"] for result in results(project)] == ["interrupted"] * number
        after(lambda: not processes(project))
        interruption.stand_still_in(following)
    with interruption.api as api:
        done = zelda(project, "run", api=api.url)
    assert done.returncode == 0, done.stdout + done.stderr
    *killed, completed = results(project)
    assert [result["status"] for result in killed] == ["interrupted"] * len(KILLED)
    assert completed["status"] == "completed"
    for phase, result in zip(KILLED, killed, strict=True):
        if phase in {"session", "evaluation", *DECIDING}:
            transcript_of_it = project.results / "runs" / result["runId"] / "transcript.json"
            assert "I begin." in transcript_of_it.read_text()
            assert result["evaluations"]["efficiency"]["details"]["toolCalls"] == {"Bash": 1}
            # What it has cost so far is known, too, and whether that is all.
            (used,) = result["api"]["models"].values()
            assert (used["outputTokens"] > 0, used["costKnown"]) == (True, phase != "session")
    assert not list(project.results.glob("runs/*/*.jsonl"))
    assert gone(project)
    assert set(project.fingerprint()) == names


ORDERS = {
    "Ctrl+C twice": (signal.SIGINT, signal.SIGINT),
    "SIGTERM, then SIGINT": (signal.SIGTERM, signal.SIGINT),
    "SIGINT, then SIGTERM, as GitHub cancels": (signal.SIGINT, signal.SIGTERM),
}


def what_stays(project: Project, temporary: Path) -> list[str]:
    """Anything of a run but its result: processes, workspaces, leases, temporary files."""
    half = [path for path in project.results.rglob("*") if path.name.startswith(".") and path.name != ".lock"]
    open_runs = [*project.results.glob("runs/*/*.jsonl"), *project.results.glob("runs/*/*.partial.json")]
    kept = [path for path in temporary.iterdir() if path.name != "reached"]
    return [*processes(project), *project.leftovers(), *map(str, (*half, *open_runs, *kept))]


CASES = [
    ("setup", "Ctrl+C twice", "at once"),
    ("session", "SIGTERM, then SIGINT", "one after the other"),
    ("evaluation", "SIGINT, then SIGTERM, as GitHub cancels", "one after the other"),
]
"""Each phase, each order and each distance at least once."""


@pytest.mark.parametrize(("phase", "order", "together"), CASES)
def test_after_a_second_interruption_nothing_stays_either(
    tmp_path: Path, phase: str, order: str, together: str
) -> None:
    interruption = Interruption(tmp_path, phase)
    project = interruption.project
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    project.environ["TMPDIR"] = str(temporary)
    first, second = ORDERS[order]
    told: list[str] = []
    with interruption.api as api, started(project, "run", api=api.url, PATH=interruption.path) as process:
        assert process.stdout is not None
        after(interruption.is_there)
        os.killpg(process.pid, first)
        if together != "at once":
            for line in process.stdout:
                told.append(line)
                if "interrupted: ending" in line:
                    break
        os.killpg(process.pid, second)
        code, output = ended(process)
        stays = what_stays(project, temporary)
    assert code == 130, "".join(told) + output
    assert stays == []
    assert "Traceback" not in output
    assert [result["status"] for result in results(project)] == ["interrupted"]


def test_the_end_of_a_terminal_is_an_interruption_unless_nohup_has_it_ignored(tmp_path: Path) -> None:
    """Also where no batch runs: `zelda check` has no sessions to end."""
    interruption = Interruption(tmp_path, "session")
    project, to_nobody = interruption.project, subprocess.DEVNULL
    with interruption.api as api, ScriptedApi([], check=hang()) as silent:
        environ = environment(project, api.url)
        with subprocess.Popen(
            ["nohup", *COMMAND, "run"],
            cwd=project.path,
            env=environ,
            stdin=to_nobody,
            stdout=to_nobody,
            stderr=to_nobody,
        ) as process:
            after(interruption.is_there)
            process.send_signal(signal.SIGHUP)
            with started(project, "check", api=silent.url, ZELDA_NO_CHECK="") as other:
                after(lambda: bool(silent.checks))
                os.kill(other.pid, signal.SIGHUP)
                code, output = ended(other)
            assert (code, "interrupted" in output) == (130, True), output
            assert process.poll() is None
            assert results(project) == []
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 130
    assert the_result(project)["status"] == "interrupted"
    assert gone(project)


def test_a_run_that_is_interrupted_while_it_is_judged_keeps_what_was_found(tmp_path: Path) -> None:
    interruption = Interruption(tmp_path, "judging", "acceptanceCriteria: [There is a greeting.]\n")
    code, output = interruption.after(by_terminal)
    assert code == 130, output
    result = the_result(interruption.project)
    assert result["status"] == "interrupted"
    assert result["changes"]["files"] == ["greeting.txt"]
    assert "requirementFulfillment" not in result["evaluations"]
    assert gone(interruption.project)
