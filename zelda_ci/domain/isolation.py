"""How a run was confined, and what its repository tried to change about that."""

from typing import Literal

from zelda_ci.domain.base import Record
from zelda_ci.domain.suite import IsolationLevel, NetworkSettings
from zelda_ci.redact import SafeText


class SettingFinding(Record):
    """A setting of the tested repository that would have changed requests or confinement, and did not take effect."""

    file: SafeText
    """Relative to the workspace."""
    setting: SafeText
    """The key, like `env.ANTHROPIC_BASE_URL` or `apiKeyHelper`; its value is not shown."""
    effect: str
    """What it would have done, and what became of it, in one sentence."""


class TreeChange(Record):
    """One difference of the developer's tree before and after a run."""

    path: SafeText
    """Relative to the project."""
    kind: Literal["added", "removed", "changed"]


class Tripwire(Record):
    """Whether the developer's tree and repository were the same after a run as before; never repaired, only told."""

    entries: int
    """Files, folders and links that were looked at."""
    seconds: float
    changes: tuple[TreeChange, ...] = ()
    """At most 50; the developer's own edits meanwhile are among them."""
    more: int = 0
    """Differences beyond those listed."""


class IsolationReport(Record):
    """How session and commands of a run were confined."""

    level: IsolationLevel
    reasons: tuple[str, ...] = ()
    """Why it is no higher level, and what would help, in sentences; empty at `full`."""
    network: NetworkSettings = NetworkSettings()
    findings: tuple[SettingFinding, ...] = ()
    protected: tuple[SafeText, ...] = ()
    """Protected files that the session changed; build and tests saw them as committed."""
    tripwire: Tripwire | None = None
