"""What evaluators receive."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from zelda_ci.domain.details import CriterionJudgement
from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.session import ApiUsage, SessionTranscript
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Changes, Workspace
from zelda_ci.redact import SafeText


@dataclass(frozen=True)
class EvalContext:
    """All that an evaluator may look at: data only, services go to its constructor."""

    suite: ResolvedSuite
    workspace: Workspace | None
    """Absent where it is gone: the run was killed, or is judged again later."""
    transcript: SessionTranscript
    api: ApiUsage
    changes: Changes | None
    """Absent where they are not known."""
    checks: tuple[SafeText, ...] = ()
    """Output of build and tests, each as one finished text that a judge can read."""
    commands: Mapping[str, CriterionJudgement] = field(default_factory=dict)
    """Judgements on those checks that are commands, by the check's text."""
    unready: SafeText | None = None
    """Reason why build and tests cannot be run, though it is the session's work that they would judge."""
    images: Path | None = None
    manifest: ToolsManifest | None = None
    """Items that the project offered, and which of them the session had; absent where nobody looked."""
