"""A workspace from its making to its end: what it holds, what it leaves, and what it never touches."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tests.builders import suite
from tests.support.headless import headless_that_writes_its_number
from tests.support.patience import PATIENCE
from tests.support.projects import Project, folder, is_running, repository, wait_until
from zelda_ci.domain.workspace import MARKER, Workspace
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.folder import end_orphans
from zelda_ci.workspace.workspaces import Workspaces


async def nothing(_: Workspaces, workspace: Workspace) -> Workspace:
    return workspace


def files(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.relative_to(root).parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def test_a_workspace_holds_the_last_commit_and_not_what_differs_from_it(tmp_path: Path) -> None:
    project = repository(tmp_path, {"a.txt": "committed", "gone.txt": "still there", "bin/run": "#!/bin/sh\n"})
    (project.path / "bin/run").chmod(0o755)
    commit = project.commit()
    project.write({"a.txt": "edited", "untracked.txt": "new"})
    (project.path / "gone.txt").unlink()
    project.git("add", "gone.txt")
    before = project.fingerprint()

    async def work(_: Workspaces, workspace: Workspace) -> None:
        assert files(workspace.root) == {
            ".gitignore": b".zelda/\n",
            "a.txt": b"committed",
            "gone.txt": b"still there",
            "bin/run": b"#!/bin/sh\n",
        }
        assert os.access(workspace.root / "bin/run", os.X_OK)
        assert (workspace.source.kind, workspace.source.commit, workspace.source.branch) == ("worktree", commit, "main")
        assert workspace.source.dirty
        assert workspace.start == commit
        assert workspace.path == workspace.root
        assert not workspace.base.is_relative_to(project.path)
        assert workspace.notes == ()

    project.work(work)
    assert project.fingerprint() == before
    assert project.leftovers() == []


def test_dirty_means_that_files_differ_from_the_commit(tmp_path: Path) -> None:
    project = repository(tmp_path)
    (project.home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/ignored\n")
    (project.home / "ignored").write_text("*.swp\n")
    project.write({".gitignore": "*.log\n"})  # .zelda itself is not ignored here, and must not count all the same
    project.commit()

    def dirty() -> bool:
        before = project.fingerprint()
        found = anyio.run(project.workspaces().inspect).dirty
        assert project.fingerprint() == before
        return found

    assert not dirty()
    project.write({".zelda/runs/r/result.json": "{}", "ignored.log": "x", "a.swp": "x"})
    (project.path / "README.md").touch()
    assert not dirty()
    for files in ({"new.txt": "x"}, {"README.md": "x"}):
        project.write(files)
        assert dirty()
        project.git("stash", "push", "-q", "--include-untracked")
        assert not dirty()
    project.git("rm", "-q", "--cached", "README.md")
    assert dirty()


def test_a_run_is_private_and_gone_after_an_error(tmp_path: Path) -> None:
    project = repository(tmp_path)

    async def work(_: Workspaces, workspace: Workspace) -> None:
        # Everything is private to the user; the run's own user, where it has one, must pass through.
        passing = 0o001 if workspace.confinement.level == "uid" else 0
        for place in (project.base, workspace.base.parent.parent):
            assert place.stat().st_mode & 0o777 & ~passing == 0o700
        (workspace.root / "locked").mkdir(mode=0o500)
        raise FileNotFoundError("the user's own")

    with pytest.raises(FileNotFoundError, match="the user's own"):
        project.work(work)
    assert project.leftovers() == []


@pytest.mark.parametrize("make", [repository, folder])
def test_cancelling_at_any_moment_leaves_nothing(tmp_path: Path, make: Callable[..., Project]) -> None:
    project = make(tmp_path)
    before = project.fingerprint()
    cancelled = []

    async def main() -> None:
        for number in range(12):
            shutil.rmtree(project.base, ignore_errors=True)
            workspaces = project.workspaces()
            with anyio.move_on_after(number * 0.004) as scope:
                async with workspaces.open(f"run-{number}", suite()):
                    await anyio.lowlevel.checkpoint()
            cancelled.append(scope.cancelled_caught)
            assert project.leftovers() == []
        # The next run works.
        async with project.workspaces().open("after", suite()) as workspace:
            assert (workspace.root / "README.md").exists()

    anyio.run(main)
    assert any(cancelled), "no attempt was cut short"
    assert project.fingerprint() == before


def counted_git(project: Project, tmp_path: Path) -> Path:
    """The file in which each call of git by Zelda itself is a line."""
    counted, program = tmp_path / "counted", tmp_path / "bin/git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >> {counted}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    project.environ["PATH"] = f"{program.parent}:{project.environ['PATH']}"
    return counted


def test_a_workspace_takes_few_git_processes(tmp_path: Path) -> None:
    project = repository(tmp_path, {"README.md": "hello\n", "zelda/test-a.yaml": "prompt: x\n"})
    counted = counted_git(project, tmp_path)

    async def main(workspaces: Workspaces) -> list[int]:
        found = [0]
        for name in ("one", "two"):
            async with workspaces.open(name, suite()):
                found.append(len(counted.read_text().splitlines()) - sum(found))
        counted.unlink()
        return found[1:]

    # Looking at the checkout, fetching and rewriting the commit, checking it out; then only what is not known yet.
    assert anyio.run(main, project.workspaces()) == [6, 1]
    assert anyio.run(main, project.workspaces()) == [4, 1]


def test_a_run_takes_few_git_processes(tmp_path: Path) -> None:
    project = repository(tmp_path)
    counted = counted_git(project, tmp_path)
    project.level = "none"

    async def work(workspaces: Workspaces, workspace: Workspace) -> list[str]:
        counted.write_text(f"worktree add {workspace.root}\n")
        workspaces.tested_files(workspace)
        (workspace.root / "README.md").write_text("changed\n")
        await workspaces.changes(workspace, tmp_path / "patch")
        measured = counted.read_text().splitlines()
        await workspaces.check_out_again(workspace)
        assert len(counted.read_text().splitlines()) == len(measured) + 4
        return measured

    assert len(project.work(work)) == 5


def test_cancelling_measurement_and_command_leaves_nothing_of_them(tmp_path: Path) -> None:
    project = repository(tmp_path)
    project.level = "none"
    cancelled, pids = [], tmp_path / "pids"

    async def work(workspaces: Workspaces, workspace: Workspace) -> None:
        await workspaces.run_command(workspace, "git init -q inner; echo x > inner/x; echo y >> README.md", PATIENCE)
        for number in range(12):
            with anyio.move_on_after(number * 0.002) as scope:
                await workspaces.changes(workspace, tmp_path / "patch")
            cancelled.append(scope.cancelled_caught)
            assert (workspace.root / "inner/.git/HEAD").exists()
        assert (await workspaces.changes(workspace, tmp_path / "patch")).files == ("README.md", "inner/x")
        async with anyio.create_task_group() as tasks:
            line = f"env -i setsid sleep 300 & echo $! > {pids}; wait"
            tasks.start_soon(workspaces.run_command, workspace, line, 600)
            await anyio.to_thread.run_sync(wait_until, lambda: pids.exists() and bool(pids.read_text()))
            tasks.cancel_scope.cancel()
        assert not is_running(pids.read_text())

    project.work(work)
    assert any(cancelled), "no attempt was cut short"


def test_all_runs_of_one_invocation_test_the_same_commit_each_in_a_place_of_its_own(tmp_path: Path) -> None:
    project = repository(tmp_path)
    commit = project.git("rev-parse", "HEAD")

    async def main() -> None:
        workspaces = project.workspaces()
        async with workspaces.open("one", suite()) as one:
            project.commit("the developer goes on")
            async with workspaces.open("two", suite()) as two:
                assert (one.start, two.start) == (commit, commit)
                (one.root / "README.md").write_text("mine")
                assert (two.root / "README.md").read_text() == "hello\n"

    anyio.run(main)
    assert project.leftovers() == []


def test_a_commit_is_fetched_once_and_anew_where_its_store_is_damaged(tmp_path: Path) -> None:
    project = repository(tmp_path)
    first = project.work(nothing)
    (pack,) = project.base.glob("*/stores/*/objects/pack/*.pack")
    fetched = pack.stat().st_ctime_ns
    second = project.work(nothing)
    assert first.base != second.base
    assert pack.stat().st_ctime_ns == fetched
    assert project.work(nothing, historyDepth=2)
    assert len(list(project.base.glob("*/stores/*-*"))) == 2
    pack.unlink()  # systems tidy their temporary folders file by file
    project.work(nothing)
    assert pack.exists()


def test_history_is_as_deep_as_asked_for_and_the_last_few_commits_are_kept(tmp_path: Path) -> None:
    project = repository(tmp_path)

    async def log(workspaces: Workspaces, workspace: Workspace) -> str:
        return (await workspaces.run_command(workspace, "git log --format=%s", PATIENCE)).output

    commits = []
    for number in range(5):
        commits.append(project.commit(f"commit {number}"))
        assert project.work(log) == f"commit {number}\n"
    kept = sorted(store.name.partition("-")[0] for store in project.base.glob("*/stores/*-1-*"))
    assert kept == sorted(commits[2:])
    assert project.work(log, historyDepth=3) == "commit 4\ncommit 3\ncommit 2\n"


def test_the_session_sees_no_object_but_those_of_the_tested_commit(tmp_path: Path) -> None:
    project = repository(tmp_path)
    project.write({"secret.txt": "stashed"})
    project.git("stash", "push", "-q", "--include-untracked")
    project.write({"old.txt": "in an older commit only"})
    project.commit()
    project.work(nothing)
    (project.path / "old.txt").unlink()
    project.commit()

    async def work(workspaces: Workspaces, workspace: Workspace) -> str:
        line = "git cat-file --batch-all-objects --batch; git for-each-ref; git remote; git stash list; git config -l"
        return (await workspaces.run_command(workspace, line, PATIENCE)).output

    said = project.work(work)
    assert "hello" in said
    assert "stashed" not in said
    assert "older commit only" not in said
    assert str(project.path) not in said


def test_the_sessions_processes_are_gone_with_the_workspace(tmp_path: Path) -> None:
    project = repository(tmp_path)
    pids = tmp_path / "pids"

    async def work(workspaces: Workspaces, workspace: Workspace) -> None:
        # Outside the supervisor, as if the session had killed it: only the mark in the environment is left.
        line = f"setsid sh -c 'echo $$ > {pids}; exec sleep 300' >/dev/null 2>&1 &"
        await anyio.run_process(["sh", "-c", line], env=dict(workspace.confinement.environment))
        await anyio.to_thread.run_sync(wait_until, lambda: pids.exists() and bool(pids.read_text()))
        assert is_running(pids.read_text())

    project.work(work)
    assert not is_running(pids.read_text())


def test_a_process_that_becomes_another_program_at_that_moment_is_not_overlooked(tmp_path: Path) -> None:
    # Amid execve it has no environment, and while much memory is given back that lasts.
    code = "import os; held = bytearray(256 << 20); os.write(1, b'.'); os.execlp('sleep', 'sleep', '300')"
    mark = {MARKER: str(tmp_path), "PATH": os.environ["PATH"]}

    def survives(pause: float) -> bool:
        with subprocess.Popen([sys.executable, "-SEc", code], env=mark, stdout=subprocess.PIPE) as process:
            assert process.stdout
            assert process.stdout.read(1)
            time.sleep(pause)
            anyio.run(end_orphans, tmp_path)
            is_alive = is_running(str(process.pid))
            process.kill()
        return is_alive

    assert [pause for pause in (0, 0.002, 0.004, 0.006, 0.008) if survives(pause)] == []


def test_a_process_whose_first_thread_has_ended_is_not_overlooked(tmp_path: Path) -> None:
    pids, code = tmp_path / "pids", headless_that_writes_its_number(tmp_path / "pids")
    with subprocess.Popen([sys.executable, "-c", code], env={MARKER: str(tmp_path)}) as process:
        wait_until(lambda: pids.exists() and bool(pids.read_text()))
        anyio.run(end_orphans, tmp_path)
        assert not is_running(str(process.pid))


def test_what_a_process_starts_that_ends_amid_a_look_is_not_overlooked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although whoever should bury it does not, and so it is still listed."""
    pids, listed = tmp_path / "pids", os.listdir
    line = f"read -r _; sleep 300 & echo $! > {pids}"
    mark = {MARKER: str(tmp_path), "PATH": os.environ["PATH"]}
    with subprocess.Popen(["sh", "-c", line], env=mark, stdin=subprocess.PIPE) as process:

        def listing(folder: str) -> list[str]:
            found = listed(folder)
            if not pids.exists():
                assert process.stdin
                os.write(process.stdin.fileno(), b"\n")
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            return found

        monkeypatch.setattr(os, "listdir", listing)
        anyio.run(end_orphans, tmp_path)
    assert not is_running(pids.read_text())


def test_git_is_missing_or_too_old(tmp_path: Path) -> None:
    project = repository(tmp_path)
    project.environ["PATH"] = str(tmp_path / "bin")
    with pytest.raises(WorkspaceError, match="git is not installed") as caught:
        project.work(nothing)
    assert caught.value.code == "GIT_MISSING"
    old = tmp_path / "bin/git"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho git version 2.25.1\n")
    old.chmod(0o755)
    project.environ["PATH"] += f":{os.environ['PATH']}"
    with pytest.raises(WorkspaceError, match=r"git 2\.25 is too old: Zelda needs 2\.32 or newer"):
        project.work(nothing)
