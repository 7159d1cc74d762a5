"""`zelda run` where a disk is full at some size: whatever could not be captured, the run is never green."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.command import COMMAND, environment, zelda
from tests.support.judging import answer, verdict
from tests.support.projects import Project, repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, text, tool_call

SUITE = """\
prompt: Add a greeting.
setupCommand: echo ready
testCommand: echo '2 passed in 0.1s'
"""
SIZE = 64 << 20
WHOLE = {"result.json", "transcript.json", "changes.patch", "manifest.json", "steering.json", "setup.log", "test.log"}

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0
    or shutil.which("unshare") is None
    or subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode != 0,
    reason="needs root and unshare --mount, to give the run a small disk of its own",
)


def project_with(tmp_path: Path) -> Project:
    return repository(tmp_path, {"README.md": "# Sample\n", "zelda/test-greeting.yaml": SUITE})


def filled(place: str, free: int) -> str:
    """A shell line that leaves so many kB free on the disk of a folder."""
    room = f'$(($(df --output=avail -k "{place}" | tail -n 1) - {free}))'
    return f'n={room}; [ "$n" -gt 0 ] && dd if=/dev/zero of="{place}/filling" bs=1k count="$n" status=none; true'


def run_on(
    project: Project, disk: Path, api: ScriptedApi, before: str = "true", arguments: Sequence[str] = ("run",)
) -> tuple[int, str]:
    """Exit code and output of a command that has a small disk at a folder; what lies on it is copied out."""
    kept = project.home / "kept"
    shutil.rmtree(kept, ignore_errors=True)
    line = (
        f"mkdir -p {disk} && mount -t tmpfs -o size={SIZE},mode=700 tmpfs {disk} && {before}; "
        f'"$@"; code=$?; cp -r {project.results}/runs {kept}; exit $code'
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", line, "sh", *COMMAND, *arguments],
        cwd=project.path,
        env=environment(project, api.url),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def missing(project: Project) -> list[str]:
    """What a green run should have left, and has not."""
    return [lack for folder in (project.home / "kept").glob("greeting-*") for lack in missing_in(folder)]


def missing_in(folder: Path) -> list[str]:
    found = sorted(WHOLE - {file.name for file in folder.iterdir() if file.stat().st_size})
    changes = json.loads((folder / "result.json").read_bytes()).get("changes") if not found else None
    if changes and (changes["files"] != ["greeting.txt"] or changes["truncated"]):
        found.append(f"in the patch: {changes}")
    if not found and "+hello" not in (folder / "changes.patch").read_text():
        found.append("the change itself")
    return found


def test_where_the_workspaces_disk_is_full_nothing_is_green_that_is_not_whole(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    line = f"echo hello > greeting.txt; {filled('$TMPDIR', 48)}"
    with ScriptedApi([tool_call("Bash", {"command": line}), text("Done.")]) as api:
        code, output = run_on(project, project.base, api)
    assert code in {0, 1, 2}, output
    if code == 0:
        assert missing(project) == [], output


def test_a_run_whose_changes_are_not_known_is_broken_and_says_why(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    # More than is left: they cannot be captured, whatever else lies on the disk.
    line = f"head -c 4000000 /dev/urandom > change.bin; {filled('$TMPDIR', 1024)}"
    with ScriptedApi([tool_call("Bash", {"command": line}), text("Done.")]) as api:
        code, output = run_on(project, project.base, api)
    assert code == 2, output
    (folder,) = (project.home / "kept").glob("greeting-*")
    result = json.loads((folder / "result.json").read_bytes())
    assert result["status"] == "failed"
    assert result["failure"]["code"] == "CHANGES_UNKNOWN"
    assert "what the session changed is not known" in result["failure"]["message"].lower()


def test_where_the_results_disk_is_full_nothing_is_green_that_is_not_whole(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    disk = project.results
    with ScriptedApi([tool_call("Bash", {"command": "echo hello > greeting.txt"}), text("Done.")]) as api:
        code, output = run_on(project, disk, api, filled(str(disk), 256))
    assert code in {0, 1, 2}, output
    if code == 0:
        assert missing(project) == [], output


def test_where_a_disk_is_full_while_two_commits_are_compared_nothing_is_green_that_is_not_whole(
    tmp_path: Path,
) -> None:
    project = project_with(tmp_path)
    project.write({"README.md": "# Another sample\n"})
    project.commit()
    session = [tool_call("Bash", {"command": "echo hello > greeting.txt"}), text("Done.")]
    with ScriptedApi([*session, *session]) as api:
        code, output = run_on(
            project,
            project.results,
            api,
            filled(str(project.results), 48),
            ("run", "--against", "HEAD~1", "--trials", "1"),
        )
    assert code in {0, 1, 2}, output
    if code == 0:
        assert len([*(project.home / "kept").glob("greeting-*")]) == 2
        assert missing(project) == [], output
    else:
        assert "no space left" in output, output


def test_no_judge_is_paid_where_nothing_can_be_stored_and_what_one_said_is_shown(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    project.write({"zelda/test-greeting.yaml": SUITE + "acceptanceCriteria: [It is kind.]\n"})
    criteria = [answer(verdict(1, evidence=[{"where": "turn 1 call 1", "quote": "hello > greeting.txt"}]))]
    with ScriptedApi([tool_call("Bash", {"command": "echo hello > greeting.txt"}), text("Done."), *criteria]) as api:
        assert zelda(project, "run", api=api.url).returncode == 0
    shutil.copytree(project.results, project.home / "copy")
    filling = f"cp -r {project.home}/copy/. {project.results}; {filled(str(project.results), 0)}"
    with ScriptedApi([]) as api:
        code, output = run_on(project, project.results, api, filling, ("rejudge", "latest"))
    assert (code, FULL in output, "unexpectedly" in output) == (2, True, False), output

    def gone_meanwhile(_: ApiRequest) -> Reply:
        shutil.rmtree(project.results / "runs")
        return answer(verdict(1, "FAIL", []))

    with ScriptedApi(gone_meanwhile) as api:
        done = zelda(project, "rejudge", "latest", api=api.url)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "FAIL · It is kind." in done.stdout
    assert "Not stored:" in done.stdout
    assert "unexpectedly" not in done.stderr


FULL, READ_ONLY = "There is no space left to write", "may not be written: Read-only file system"
REFUSALS = {
    "results": (0, FULL),
    "results, read-only": (None, READ_ONLY),
    "workspaces": (0, "No space left on device"),
    "settings": (0, FULL),
    "the demo": (200, FULL),
    "a temporary folder": (8, "No space left on device"),
}
"""For each place: how many kB are free, where it is not read-only; and what is said of it."""


@pytest.mark.parametrize("where", REFUSALS)
def test_a_place_that_cannot_be_written_is_named_with_what_to_do(tmp_path: Path, where: str) -> None:
    project, (free, sentence) = project_with(tmp_path), REFUSALS[where]
    project.write({"CLAUDE.md": "Greet politely.\n"})
    temporary, settings = tmp_path / "temporary", project.home / ".config"
    project.environ["TMPDIR"] = str(temporary)
    disk = {"workspaces": project.base, "settings": settings, "the demo": temporary, "a temporary folder": temporary}
    words = {
        "settings": ("run", "--accept-isolation", "landlock"),
        "the demo": ("demo",),
        "a temporary folder": ("run", "--without", "CLAUDE.md"),
    }
    place = disk.get(where, project.results)
    before = f"mkdir -p {place}/runs; touch {place}/runs/.lock; mount -o remount,ro {place}"
    before = before if free is None else filled(str(place), free)
    if where == "settings":
        before = f"export ZELDA_ACCEPT_ISOLATION=; {before}"
    with ScriptedApi([]) as api:
        code, output = run_on(project, place, api, before, words.get(where, ("run",)))
    errors = output[output.find("error: ") :].splitlines()
    assert code == 2, output
    assert sentence in errors[0], output
    assert str(place) in errors[0], output
    assert "unexpectedly" not in output, output
    assert errors[1].startswith(("Free some space", "Make ")), output
