"""The isolated copy of a project in which one session works, and how its processes are isolated."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from zelda_ci.domain.base import Record
from zelda_ci.domain.suite import IsolationLevel, NetworkSettings
from zelda_ci.redact import SafeText

# What a process is started for; "zelda" is Zelda's own reading of what a session left.
CommandPhase = Literal["setup", "session", "build", "test", "zelda"]

PHASES: tuple[CommandPhase, ...] = get_args(CommandPhase)


@dataclass(frozen=True)
class Confinement:
    """How every process of a run is started: through a supervisor that ends all its descendants, behind walls.

    Where the caller cannot choose a child's environment (the Agent SDK adds Zelda's own), the supervisor replaces it
    with exactly the JSON object in a file.
    """

    supervisor: tuple[str, ...]
    environment: Mapping[str, str]
    """Complete: built from an allow-list, never Zelda's own."""
    level: IsolationLevel = "none"
    options: tuple[str, ...] = ()
    """Of the supervisor."""
    starts: Mapping[CommandPhase, tuple[str, ...]] = field(default_factory=dict)
    """What comes between supervisor and program, and gives up rights."""
    shell_prefix: Path | None = None
    """A program for `CLAUDE_CODE_SHELL_PREFIX`; absent where the level has no walls between shells and the CLI."""
    shell: Path | None = None
    """The same under the name of the shell, for `CLAUDE_CODE_SHELL`: it starts login shells without the prefix."""
    socket: Path | None = None
    """Where the model proxy's socket appears to the session; absent where there is none."""
    session_variables: Mapping[str, str] = field(default_factory=dict)
    """What else a session's program needs in its environment, to be closed to the processes that it starts."""
    uid: int | None = None
    """The user and group that everything runs as and that owns the run's folders; absent where it is Zelda's own."""

    def command(
        self,
        argv: Sequence[str],
        *,
        phase: CommandPhase = "test",
        environment_file: Path | None = None,
        status_file: Path | None = None,
        secret: str | None = None,
    ) -> list[str]:
        """Arguments that start `argv` under the supervisor, which says in the status file how that went.

        Where there are walls, a variable that is secret is handed to the program beside its environment.
        """
        start = self.starts.get(phase, ())
        values = {"--environment": environment_file, "--status": status_file, "--secret": secret if start else None}
        options = [word for name, value in values.items() if value for word in (name, str(value))]
        return [*self.supervisor, *self.options, *options, "--", *start, *argv]


@dataclass(frozen=True)
class Parts:
    """Of what a commit only names, what is there and what is not; by path, from the top of the tree."""

    present: frozenset[str] = frozenset()
    missing: Mapping[str, str] = field(default_factory=dict)
    """Why, in a few words; empty where it was never checked out."""


@dataclass(frozen=True)
class NamedContents:
    """What the tested commit only names: submodules by their commits, and files of Git LFS by their hashes."""

    submodules: Parts = Parts()
    lfs: Parts = Parts()
    changed: tuple[str, ...] = ()
    """Submodules whose checkout differs from the commit that is tested."""
    key: str = ""
    """The same for two that have the same contents; empty where there are none."""


class TestedSource(Record):
    """What was tested: the commit (absent outside git) and whether the user's tree differed from it."""

    __test__ = False  # not a pytest class

    kind: Literal["worktree", "copy"]
    commit: str | None = None
    branch: str | None = None
    dirty: bool = False
    parent: str | None = None
    """The user's last commit, where what differed from it was tested too: the commit is one of Zelda's own then."""


class WorkspaceSource(TestedSource):
    """What is tested, with what no result stores of it."""

    changed: tuple[str, ...] = ()
    """The files that differed, a new folder as one."""
    left_out: tuple[str, ...] = ()
    """Of those files, what may hold credentials."""
    contents: NamedContents = NamedContents()
    """What of submodules and of Git LFS is in the tested tree."""

    @property
    def shown(self) -> str:
        """The commit that the user knows, in short."""
        return (self.parent or self.commit or "")[:12]


@dataclass(frozen=True)
class Listing:
    """The files of a tree, or of all commits of a history together; paths from its top, with forward slashes."""

    files: frozenset[str]
    texts: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    """Every version of the files that a `SuiteFinder` reads."""
    links: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Where symbolic links point, in every version."""


@dataclass(frozen=True)
class Withheld:
    """What no session gets to see: suites say what a result is judged by."""

    paths: frozenset[str] = frozenset()
    """Files, and folders with all that is in them."""
    beside: tuple[str, ...] = ()
    """Files of the project among them that are no suites, but lie in a folder of suites."""


class SuiteFinder(Protocol):
    """Finds suites, and what belongs to them, in a tree."""

    @property
    def key(self) -> str:
        """The same for two that find the same."""
        ...

    @property
    def from_disk(self) -> Collection[str]:
        """Files of the project that no session sees, and that are the same whatever commit is tested."""
        ...

    def reads(self, name: str) -> bool:
        """Whether a file of this name is needed in `Listing.texts`."""
        ...

    def find(self, listing: Listing, project: str) -> Withheld:
        """What belongs to the suites of every project; that of this folder is the one that is tested."""
        ...


@dataclass(frozen=True)
class Workspace:
    """One run's private folders, all outside the project."""

    run_id: str
    base: Path
    """The run's own folder, holding everything below."""
    root: Path
    """Top of the checked-out tree."""
    path: Path
    """Where session and commands work: `root`, or the project's subfolder of it."""
    home: Path
    tmp: Path
    git_dir: Path
    start: str
    """The commit from which changes are computed; in the run's own repository."""
    source: WorkspaceSource
    confinement: Confinement
    notes: tuple[SafeText, ...] = ()
    """What the workspace cannot show of the tested state, in sentences: submodules, content filters, …"""

    def status_file(self, phase: CommandPhase) -> Path:
        """Where the supervisor says whether a program of this phase began: beyond the reach of all that is confined."""
        return self.base / f"{phase}.status"


class ChangeSummary(Record):
    """The size of what a session changed, against the start state. Counts are of all files that were read."""

    files: tuple[SafeText, ...] = ()
    insertions: int = 0
    deletions: int = 0
    patch_bytes: int = 0
    truncated: bool = False
    """Whether files that were too large, or not readable, or did not fit are named without their content."""


class Changes(ChangeSummary):
    """What a session changed, with what no result stores of it."""

    patch: Path
    """A redacted `git diff --binary`, readable as UTF-8 with replaced bytes."""
    ignored: "IgnoredFiles | None" = None
    """Absent where the run is judged again."""


@dataclass(frozen=True)
class PluginPins:
    """What Zelda sets above the project's settings, so that a session has its own plugins, and no others."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    installs: bool = False
    """Whether Claude Code has to take in plugins of a marketplace in the repository, before the session begins."""
    findings: tuple["SettingFinding", ...] = ()


class SettingFinding(Record):
    """A setting of the tested repository that did not take effect, or that lets something unusual in.

    It would have changed requests or confinement, or Claude Code refuses it; of mods, the configuration allows them.
    """

    file: SafeText
    """Relative to the workspace."""
    setting: SafeText
    """The key, like `env.ANTHROPIC_BASE_URL` or `apiKeyHelper`; its value is not shown."""
    effect: str
    """What it would have done, and what became of it, in one sentence."""


class TreeChange(Record):
    """One difference of the ignored files before and after a session."""

    path: SafeText
    """Relative to the top of the tree."""
    kind: Literal["added", "removed", "changed"]


class IgnoredFiles(Record):
    """What the session added, changed and removed of files that git ignores: no patch shows it.

    Paths count from the top of the tree; a new folder ends with a slash and stands for all that is in it.
    """

    changes: tuple[TreeChange, ...] = ()
    """At most 50; build and tests did not find them, but what setup makes."""
    more: int = 0
    """Differences beyond those listed."""
    kept: tuple[SafeText, ...] = ()
    """At most 50 that build and tests found as the session left them, since `keepIgnored` names them."""


class IsolationReport(Record):
    """How session and commands of a run were confined."""

    level: IsolationLevel
    reasons: tuple[str, ...] = ()
    """Why it is no higher level, and what would help, in sentences; empty at `full`."""
    network: NetworkSettings = NetworkSettings()
    findings: tuple[SettingFinding, ...] = ()
    protected: tuple[SafeText, ...] = ()
    """Protected files that the session changed; build and tests saw them as committed."""
    ignored: IgnoredFiles = IgnoredFiles()
