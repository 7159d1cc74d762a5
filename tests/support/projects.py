"""Real repositories and folders to test, and the workspaces of them."""

import atexit
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import anyio

from tests.builders import suite
from tests.support.patience import PATIENCE
from tests.support.places import make_passable
from zelda_ci.config.files import OwnFiles
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Changes, Workspace, WorkspaceSource
from zelda_ci.redact import Redactor
from zelda_ci.sandbox import levels
from zelda_ci.sandbox.confine import Isolation
from zelda_ci.workspace.workspaces import Workspaces

ENVIRON = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in (("NAME", "Dev"), ("EMAIL", "dev@example.com"))
    },
}

Work = Callable[[Workspaces, Workspace], Awaitable[Any]]


def wait_until(condition: Callable[[], bool]) -> None:
    """Look again and again; a test that waits in vain fails."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_running(pid: str) -> bool:
    """A process that is dead, and only not yet buried by whoever adopted it, does not run."""
    try:
        fields = Path("/proc", pid.strip(), "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    # proc_pid_stat(5): num_threads, vsize. One that ends gives its memory back first, and is no zombie before it has
    # closed its files. Its first thread may be dead, and others run.
    return int(fields[17]) > 1 or int(fields[20]) > 0


@dataclass
class Project:
    """A developer's folder; `environ` is what the developer's shell would hold."""

    path: Path
    home: Path
    environ: dict[str, str] = field(default_factory=dict)
    level: str = os.environ.get("ZELDA_ISOLATION", "auto")
    """How strictly its workspaces are confined; without any confinement, a session can do the most harm."""

    own: OwnFiles = field(default_factory=OwnFiles)
    """What its configuration says of suites."""

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "ZELDA_WORKSPACES": str(self.base),
            **self.environ,
        }

    @property
    def base(self) -> Path:
        """Where its workspaces lie."""
        return Path(self.environ.get("ZELDA_WORKSPACES", self.home.parent / "base"))

    @property
    def results(self) -> Path:
        return self.path / ".zelda"

    def git(self, *arguments: str, cwd: Path | None = None, stdin: bytes = b"") -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=cwd or self.path,
            env=ENVIRON,
            check=True,
            capture_output=True,
            timeout=PATIENCE,
            input=stdin,
        )
        return os.fsdecode(done.stdout).strip()

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, message: str = "more") -> str:
        self._commit(message)
        return self.git("rev-parse", "HEAD")

    def _commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def found(self, init: tuple[str, ...]) -> None:
        """Make it a repository with one commit."""
        if init:
            self.git("init", "-q", "-b", "main", *init)
        else:
            shutil.copytree(_empty_repository(), self.path / ".git")
        self._commit("first")

    def workspaces(self, **sides: Any) -> Workspaces:
        isolation = Isolation(levels.probe(self.environ), unsafe=True)
        return Workspaces(self.path, Path(".zelda"), self.environ, Redactor(), isolation, self.own, **sides)

    def inspected(self, **sides: Any) -> WorkspaceSource:
        """What is tested of it."""
        return anyio.run(self.workspaces(**sides).inspect)

    def suite(self, **settings: Any) -> ResolvedSuite:
        # The scripts of tests stand for sessions: they go on after what is refused them.
        return suite(**{"isolation": {"level": self.level}, "shell": "sh -c", **settings})

    def work(self, work: Work, run_id: str = "run-1", **settings: Any) -> Any:
        """Open a workspace, do the work in it, and return what it returned."""

        async def main() -> Any:
            workspaces = self.workspaces()
            async with workspaces.open(run_id, self.suite(**settings)) as workspace:
                return await work(workspaces, workspace)

        return anyio.run(main)

    def changes_after(self, script: str, **settings: Any) -> tuple[Changes, str]:
        """What a session that runs this shell script changes; and the patch."""
        patch = self.home / "changes.patch"

        async def work(workspaces: Workspaces, workspace: Workspace) -> Changes:
            done = await workspaces.run_command(workspace, script, PATIENCE)
            assert done.exit_code == 0, done.output
            return await workspaces.changes(workspace, patch)

        changes = self.work(work, **settings)
        return changes, patch.read_text("utf-8", "replace")

    def fingerprint(self) -> dict[str, tuple[object, ...]]:
        """All that a run could have changed: every entry with its times and content, `.git` included."""
        found: dict[str, tuple[object, ...]] = {}
        for folder, names, files in os.walk(self.path):
            if ".zelda" in names:
                names.remove(".zelda")
            for name in (".", *names, *files):
                place = Path(folder, name)
                status = place.lstat()
                small = stat.S_ISREG(status.st_mode) and status.st_size < 10_000_000
                content = place.read_bytes() if small else b""
                # Git renews the time of a shared index whenever it reads it, so that it does not expire.
                times = () if name.startswith("sharedindex.") else (status.st_mtime_ns, status.st_ctime_ns)
                kind = (status.st_ino, status.st_mode, status.st_uid, status.st_nlink, status.st_size)
                found[str(place)] = (*kind, content, times)
        return found

    def leftovers(self) -> list[str]:
        """Whatever of finished runs still lies anywhere."""
        return [str(entry) for name in ("runs", "trash") for entry in self.base.glob(f"*/{name}/*")]


@cache
def _empty_repository() -> Path:
    """What `git init` makes, copied for each repository: hundreds are founded."""
    made = make_passable(prefix="zelda-empty-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    subprocess.run(["git", "init", "-q", "-b", "main", made], env=ENVIRON, check=True, timeout=PATIENCE)
    return made / ".git"


def folder(tmp_path: Path, files: Mapping[str, str | bytes] | None = None, *, name: str = "project") -> Project:
    """A folder that is in no repository."""
    project = Project(tmp_path / name, tmp_path / "home")
    project.results.mkdir(parents=True)
    project.write(files or {"README.md": "hello\n"})
    return project


def repository(
    tmp_path: Path, files: Mapping[str, str | bytes] | None = None, *, name: str = "project", init: tuple[str, ...] = ()
) -> Project:
    """A repository with one commit, in which Zelda's results are ignored."""
    project = folder(tmp_path, files, name=name)
    project.write({".gitignore": ".zelda/\n"})
    project.found(init)
    return project
