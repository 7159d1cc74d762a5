"""The isolated copy of a project in which one session works, and how its processes are isolated."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, get_args

from zelda_ci.domain.base import Record
from zelda_ci.domain.suite import MODEL_CREDENTIALS, IsolationLevel, NetworkSettings
from zelda_ci.redact import SafeText

# What a process is started for; "zelda" is Zelda's own reading of what a session left.
CommandPhase = Literal["setup", "session", "build", "test", "zelda"]
PHASES: tuple[CommandPhase, ...] = get_args(CommandPhase)


@dataclass(frozen=True)
class Confinement:
    """Start of every process of a run: through a supervisor that ends all its descendants, behind walls.

    Where the caller cannot choose a child's environment (the Agent SDK adds Zelda's own), the supervisor replaces it
    with exactly that in a file, as `env -0` prints it.
    """

    supervisor: tuple[str, ...]
    environment: Mapping[str, str]
    """Complete: built from an allow-list, never Zelda's own."""
    level: IsolationLevel = "none"
    options: tuple[str, ...] = ()
    starts: Mapping[CommandPhase, tuple[str, ...]] = field(default_factory=dict)
    """Words between supervisor and program that give up rights, by phase."""
    shell_prefix: Path | None = None
    """A program for `CLAUDE_CODE_SHELL_PREFIX`, which takes Claude Code's own variables away; absent without walls."""
    shell: Path | None = None
    """The same under the name of the shell, for `CLAUDE_CODE_SHELL`, where shells get fewer rights than the CLI."""
    socket: Path | None = None
    """Path at which the session finds the model proxy's socket; absent where there is none."""
    session_variables: Mapping[str, str] = field(default_factory=dict)
    """Variables for the session's program alone, closed to the processes that it starts."""
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
        """Arguments that start `argv` under the supervisor; behind walls, a secret variable is handed to it apart."""
        start = self.starts.get(phase, ())
        values = {"--environment": environment_file, "--status": status_file, "--secret": secret if start else None}
        options = [word for name, value in values.items() if value for word in (name, str(value))]
        return [*self.supervisor, *self.options, *options, "--", *start, *argv]


@dataclass(frozen=True)
class Parts:
    """Parts of the tree that a commit only names, by path from its top: present and missing."""

    present: frozenset[str] = frozenset()
    missing: Mapping[str, str] = field(default_factory=dict)
    """Missing parts with the reason in a few words; empty where it was never checked out."""


@dataclass(frozen=True)
class NamedContents:
    """Contents that the tested commit only names: submodules by their commits, files of Git LFS by their hashes."""

    submodules: Parts = Parts()
    lfs: Parts = Parts()
    changed: tuple[str, ...] = ()
    """Submodules whose checkout differs from the commit that is tested."""
    key: str = ""
    """Key that is equal for equal contents; empty where there are none."""


class TestedSource(Record):
    """Tested state: the commit (absent outside git) and whether the user's tree differed from it."""

    __test__ = False  # not a pytest class

    kind: Literal["worktree", "copy"]
    commit: str | None = None
    branch: str | None = None
    dirty: bool = False
    parent: str | None = None
    """The user's last commit, where what differed from it was tested too: the commit is one of Zelda's own then."""


class WorkspaceSource(TestedSource):
    """Tested state with the facts that no result stores."""

    changed: tuple[str, ...] = ()
    """The files that differed, a new folder as one."""
    left_out: tuple[str, ...] = ()
    """Changed files that may hold credentials and are left out."""
    contents: NamedContents = NamedContents()
    """Submodules and files of Git LFS in the tested tree."""

    @property
    def shown(self) -> str:
        """The commit that the user knows, in short."""
        return (self.parent or self.commit or "")[:7]


@dataclass(frozen=True)
class Listing:
    """The files of a tree, or of all commits of a history together; paths from its top, with forward slashes."""

    files: frozenset[str]
    texts: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    """Every version of the files that a `SuiteFinder` reads."""
    links: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Targets of symbolic links, in every version."""


@dataclass(frozen=True)
class Withheld:
    """Files that no session sees: suites say what a result is judged by."""

    paths: frozenset[str] = frozenset()
    """Files, and folders with all that is in them."""
    beside: tuple[str, ...] = ()
    """Other files in the suites' folders that are hidden with them."""


class SuiteFinder(Protocol):
    """Finds suites, and what belongs to them, in a tree."""

    @property
    def key(self) -> str:
        """Key that is equal for two finders that find the same."""

    @property
    def from_disk(self) -> Collection[str]:
        """Files of the project that no session sees, and that are the same whatever commit is tested."""

    def reads(self, name: str) -> bool:
        """True where a file of this name is needed in `Listing.texts`."""

    def find(self, listing: Listing, project: str) -> Withheld:
        """Find what belongs to the suites of every project; that of this folder is the one that is tested."""


@dataclass(frozen=True)
class Workspace:
    """One run's private folders, all outside the project."""

    run_id: str
    base: Path
    """The run's own folder, holding everything below."""
    root: Path
    path: Path
    """Folder in which session and commands work: `root`, or the project's subfolder of it."""
    home: Path
    tmp: Path
    git_dir: Path
    start: str
    """The commit from which changes are computed; in the run's own repository."""
    source: WorkspaceSource
    confinement: Confinement
    notes: tuple[SafeText, ...] = ()
    """Sentences on what the workspace cannot show of the tested state: submodules, content filters, …"""

    def status_file(self, phase: CommandPhase) -> Path:
        """File in which the supervisor says whether a program of this phase began, out of reach of the confined."""
        return self.base / f"{phase}.status"


class ChangeSummary(Record):
    """The size of what a session changed, against the start state. Counts are of all files that were read."""

    files: tuple[SafeText, ...] = ()
    insertions: int = 0
    deletions: int = 0
    patch_bytes: int = 0
    truncated: bool = False
    """True where files that were too large, or not readable, or did not fit are named without their content."""


class Changes(ChangeSummary):
    """Changes of a session with the facts that no result stores."""

    patch: Path
    """A redacted `git diff --binary`, readable as UTF-8 with replaced bytes."""
    ignored: "IgnoredFiles | None" = None
    """Absent where the run is judged again."""


class SettingFinding(Record):
    """A setting of the tested repository that did not take effect, or that lets something unusual in.

    It would have changed requests or confinement, or Claude Code refuses it; of mods, the configuration allows them.
    """

    file: SafeText
    """Path from the top of the tree."""
    setting: SafeText
    """The key, like `env.ANTHROPIC_BASE_URL` or `apiKeyHelper`; its value is not shown."""
    effect: str
    """Sentence on its effect, and what became of it."""


class TreeChange(Record):
    """One difference of the ignored files before and after a session."""

    path: SafeText
    """Relative to the top of the tree."""
    kind: Literal["added", "removed", "changed"]


class IgnoredFiles(Record):
    """Changes of a session to files that git ignores: no patch shows it.

    Paths count from the top of the tree; a new folder ends with a slash and stands for all that is in it.
    """

    changes: tuple[TreeChange, ...] = ()
    """Differences, at most 50; build and tests did not find them, but what setup makes."""
    more: int = 0
    """Differences beyond those listed."""
    kept: tuple[SafeText, ...] = ()
    """Files, at most 50, that build and tests found as the session left them, since `keepIgnored` names them."""


class IsolationReport(Record):
    """Isolation of a run's session and commands."""

    level: IsolationLevel
    reasons: tuple[str, ...] = ()
    """Sentences on why it is no higher level, and what would help; empty at `full`."""
    network: NetworkSettings = NetworkSettings()
    findings: tuple[SettingFinding, ...] = ()
    protected: tuple[SafeText, ...] = ()
    """Protected files that the session changed; build and tests saw them as committed."""
    ignored: IgnoredFiles = IgnoredFiles()


# Holds the run's own folder, which no two runs share.
MARKER = "ZELDA_RUN"
# Zelda's own business: a session never holds the key, and has folders of its own.
REFUSED = frozenset({
    *MODEL_CREDENTIALS, "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CONFIG_DIR", "GITHUB_WORKSPACE",
    "BASH_ENV", "GLIBC_TUNABLES", "HOME", "PATH", "PWD", "SSH_AUTH_SOCK", "TMPDIR", "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR", MARKER,
})  # fmt: skip
REFUSED_STARTS = (
    "GIT_", "LD_", "DYLD_", "ACTIONS_", "ANTHROPIC_UNIX_SOCKET",
    "CLAUDE_CODE_API_", "CLAUDE_CODE_EXTRA_BODY",
    "CLAUDE_CODE_PROVIDER_", "CLAUDE_CODE_SHELL", "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", "CLAUDE_CODE_TMPDIR",
)  # fmt: skip
# With these the CLI would go to another provider, past the proxy that holds the key and counts the cost.
OTHER_PROVIDERS = (
    "ANTHROPIC_BEDROCK_", "ANTHROPIC_FOUNDRY_", "ANTHROPIC_VERTEX_", "AWS_BEARER_TOKEN_BEDROCK", "CLAUDE_CODE_SKIP_",
    "CLAUDE_CODE_USE_",
)  # fmt: skip
# A value of the suite's own may not be what Claude Code, its runtime or Zelda read of themselves.
OWNED_STARTS = ("ANTHROPIC_", "API_TIMEOUT_MS", "BUN_", "CCR_", "CLAUDE_", "OTEL_", "ZELDA_", "BASH_FUNC_")
OWNED = frozenset({"ALL_PROXY", "CI", "ENV", "HTTPS_PROXY", "HTTP_PROXY", "IS_SANDBOX", "NO_PROXY", "SHELL"})
INSTEAD = {
    "PATH": "list folders in execution.path instead",
    "HOME": "every run has a HOME of its own",
    "TMPDIR": "every run has a TMPDIR of its own",
}


def why_withheld(name: str, *, has_value: bool = False) -> str | None:
    """Reason why a variable, or a value for it, cannot be given to a session, to be read after its name."""
    if name.startswith(OTHER_PROVIDERS):
        return "would lead sessions to another provider, past Zelda's own proxy to the model"
    if name in REFUSED or name.startswith(REFUSED_STARTS):
        why = "Zelda's proxy holds the key, and every session has folders of its own"
        return f"is a variable that a session never gets: {INSTEAD.get(name, why)}"
    if has_value and (name.upper() in OWNED or name.upper().startswith(OWNED_STARTS)):
        return "belongs to Claude Code or Zelda, so a suite cannot say what is in it"
    return None
