"""What GitHub remembers: repositories, commits, runs, artifacts, pull requests and comments."""

import hashlib
import io
import itertools
import subprocess
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

BOT = "github-actions[bot]"
FIRST_COMMIT = datetime(2026, 1, 1, tzinfo=UTC)

_numbers = itertools.count(1000)


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


@dataclass
class Commit:
    sha: str
    parents: tuple[str, ...] = ()
    message: str = "Change"
    date: datetime = FIRST_COMMIT


@dataclass
class Run:
    """A run of a workflow; `backend_id` is what the artifact service calls it."""

    head_sha: str
    head_branch: str | None
    event: str
    repository: "Repository"
    head_repository: "Repository | None"
    """None where the fork was deleted."""
    workflow: str = "zelda.yml"
    status: str = "completed"
    conclusion: str | None = "success"
    attempt: int = 1
    repeated: list[str] = field(default_factory=list)
    """How it was run again: `rerun` or `rerun-failed-jobs`."""
    id: int = field(default_factory=lambda: next(_numbers))
    created_at: datetime = field(default_factory=_now)

    @property
    def backend_id(self) -> str:
        return f"backend-of-run-{self.id}"

    @property
    def workflow_id(self) -> int:
        return int(hashlib.sha256(self.workflow.encode()).hexdigest()[:6], 16)


@dataclass
class Artifact:
    """An artifact; its bytes may lie in a file."""

    name: str
    run: Run | None
    """None where GitHub says null: the run was deleted."""
    repository: "Repository"
    blob: bytes | Path
    expired: bool = False
    digest: str | None = ""
    """Absent for artifacts of old clients; a false one stands for storage that was tampered with."""
    job: str = "job"
    attempt: int = 1
    mime_type: str = "application/zip"
    id: int = field(default_factory=lambda: next(_numbers))
    created_at: datetime = field(default_factory=_now)
    expires_at: datetime = field(default_factory=lambda: _now() + timedelta(days=90))

    def __post_init__(self) -> None:
        if self.digest == "":
            self.digest = f"sha256:{hashlib.sha256(self.content).hexdigest()}"

    @property
    def size(self) -> int:
        return len(self.blob) if isinstance(self.blob, bytes) else self.blob.stat().st_size

    @property
    def content(self) -> bytes:
        return self.blob if isinstance(self.blob, bytes) else self.blob.read_bytes()

    @property
    def files(self) -> dict[str, bytes]:
        """What is in the archive."""
        with zipfile.ZipFile(io.BytesIO(self.content)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


@dataclass
class Comment:
    body: str
    author: str = BOT
    minimized: str | None = None
    """Why it is hidden, like OUTDATED."""
    edits: int = 0
    reactions: list[str] = field(default_factory=list)
    """Of the token's owner."""
    id: int = field(default_factory=lambda: next(_numbers))
    created_at: datetime = field(default_factory=_now)
    updated_at: datetime = field(default_factory=_now)

    def edit(self, body: str) -> None:
        """Anybody's edit, a minute later."""
        self.body = body
        self.edits += 1
        self.updated_at = self.created_at + timedelta(minutes=self.edits)

    @property
    def node_id(self) -> str:
        return f"IC_{self.id}"


@dataclass
class Pull:
    number: int
    head_sha: str
    head_branch: str
    base_branch: str
    base_sha: str
    repository: "Repository"
    head_repository: "Repository | None"
    state: str = "open"
    merged: bool = False
    merge_commit_sha: str | None = None
    comments: list[Comment] = field(default_factory=list)
    id: int = field(default_factory=lambda: next(_numbers))

    @property
    def bodies(self) -> list[str]:
        return [comment.body for comment in self.comments]


@dataclass
class Issue:
    """An issue; pull requests, which GitHub lists with them, are `Pull`."""

    number: int
    title: str
    body: str
    author: str = BOT
    state: str = "open"
    reason: str | None = None
    edits: int = 0
    id: int = field(default_factory=lambda: next(_numbers))


@dataclass
class Repository:
    """A repository; forks share their commits, as on GitHub."""

    full_name: str
    fork_of: "Repository | None" = None
    private: bool = True
    default_branch: str = "main"
    id: int = field(default_factory=lambda: next(_numbers))
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    pulls: list[Pull] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    has_issues: bool = True
    roles: dict[str, str] = field(default_factory=dict)
    """By login: admin, maintain, write, triage or read."""
    folder: Path | None = None
    """The real repository whose commits were learnt, for files and archives."""

    def __post_init__(self) -> None:
        if self.fork_of:
            self.commits = self.fork_of.commits

    @property
    def owner(self) -> str:
        return self.full_name.split("/")[0]

    def add_commit(self, *, parents: Sequence[str] = (), branch: str | None = None) -> str:
        """One commit."""
        count = len(self.commits)
        sha = hashlib.sha256(f"{self.full_name} {count}".encode()).hexdigest()[:40]
        self.commits[sha] = Commit(sha, tuple(parents), f"Commit {count}", FIRST_COMMIT + timedelta(minutes=count))
        if branch:
            self.branches[branch] = sha
        return sha

    def add_commits(self, count: int) -> list[str]:
        """A row of commits at the end of main, oldest first."""
        made: list[str] = []
        for _ in range(count):
            tip = self.branches.get("main")
            made.append(self.add_commit(parents=[tip] if tip else [], branch="main"))
        return made

    def learn(self, folder: Path) -> None:
        """Take over commits and branches of a real repository."""
        self.folder = folder
        listed = _git(folder, "rev-list", "--all", "--topo-order", "--reverse", "--parents", "--timestamp")
        for line in listed.splitlines():
            timestamp, sha, *parents = line.split()
            self.commits[sha] = Commit(sha, tuple(parents), "Real", datetime.fromtimestamp(int(timestamp), UTC))
        for line in _git(folder, "for-each-ref", "--format=%(objectname) %(refname:short)", "refs/heads").splitlines():
            sha, _, name = line.partition(" ")
            self.branches[name] = sha

    def add_run(
        self,
        head_sha: str,
        *,
        branch: str | None = "main",
        event: str = "push",
        head_repository: "Repository | None" = None,
        deleted_fork: bool = False,
        **more: object,
    ) -> Run:
        """A run of a workflow; `more` are fields of `Run`."""
        head = None if deleted_fork else head_repository or self
        run = Run(head_sha, branch, event, self, head, **more)  # type: ignore[arg-type]
        self.runs.append(run)
        return run

    def add_artifact(
        self, name: str, files: Mapping[str, bytes] | bytes, *, run: Run | None, **more: object
    ) -> Artifact:
        """An artifact of files, or of the bytes of an archive; `more` are fields of `Artifact`."""
        blob = files if isinstance(files, bytes) else archive_of(files)
        artifact = Artifact(name, run, self, blob, **more)  # type: ignore[arg-type]
        self.artifacts.append(artifact)
        return artifact

    def add_pull(
        self,
        *,
        head_sha: str,
        number: int | None = None,
        head: str = "feature",
        base: str = "main",
        head_repository: "Repository | None" = None,
        deleted_fork: bool = False,
        **more: object,
    ) -> Pull:
        """A pull request; `more` are fields of `Pull`."""
        number = number or len(self.pulls) + 1
        source = None if deleted_fork else head_repository or self
        base_sha = self.branches.get(base, "0" * 40)
        pull = Pull(number, head_sha, head, base, base_sha, self, source, **more)  # type: ignore[arg-type]
        self.pulls.append(pull)
        return pull

    def add_comment(self, number: int, body: str, *, author: str = "octocat", **more: object) -> Comment:
        """A comment on a pull request; `more` are fields of `Comment`."""
        comment = Comment(body, author, **more)  # type: ignore[arg-type]
        self.pull(number).comments.append(comment)
        return comment

    def add_issue(self, title: str, body: str, *, author: str = "octocat", **more: object) -> Issue:
        """An issue; `more` are fields of `Issue`. Issues and pull requests share their numbers."""
        taken = [*(issue.number for issue in self.issues), *(pull.number for pull in self.pulls)]
        issue = Issue(max(taken, default=0) + 1, title, body, author, **more)  # type: ignore[arg-type]
        self.issues.append(issue)
        return issue

    def comments(self, number: int) -> list[Comment]:
        return self.pull(number).comments

    def pull(self, number: int) -> Pull:
        return next(pull for pull in self.pulls if pull.number == number)

    def git(self, *arguments: str) -> bytes | None:
        """What git prints in the real repository; nothing where it fails, or there is none."""
        if self.folder is None:
            return None
        done = subprocess.run(["git", "-C", str(self.folder), *arguments], check=False, capture_output=True)
        return done.stdout if done.returncode == 0 else None

    def ancestors(self, tip: str) -> Iterator[Commit]:
        """A commit and all before it, newest first."""
        seen: dict[str, Commit] = {}
        waiting = [tip]
        while waiting:
            sha = waiting.pop()
            if sha not in seen and sha in self.commits:
                seen[sha] = self.commits[sha]
                waiting += self.commits[sha].parents
        order = {sha: index for index, sha in enumerate(self.commits)}
        yield from sorted(seen.values(), key=lambda commit: (commit.date, order[commit.sha]), reverse=True)

    def resolve(self, ref: str) -> str | None:
        """The commit that a branch, a SHA or `owner:branch` names."""
        name = ref.rpartition(":")[2]
        return self.branches.get(name) or (name if name in self.commits else None)


def archive_of(files: Mapping[str, bytes]) -> bytes:
    blob = io.BytesIO()
    with zipfile.ZipFile(blob, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return blob.getvalue()


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout
