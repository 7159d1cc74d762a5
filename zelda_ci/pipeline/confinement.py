"""How a run was confined, for its result, and whether the user's checkout stayed as it was."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.suite import IsolationLevel
from zelda_ci.domain.workspace import Confinement, IgnoredFiles, IsolationReport, SettingFinding
from zelda_ci.errors import ConfigError
from zelda_ci.events import Emit, Warned
from zelda_ci.pipeline.tools import PlannedRun
from zelda_ci.redact import Redactor, SafeText
from zelda_ci.sandbox import levels
from zelda_ci.sandbox.confine import Isolation
from zelda_ci.storage.result_store import RunState


@dataclass(frozen=True)
class WeakIsolation:
    """A level that somebody must accept first."""

    level: IsolationLevel
    meaning: str
    """What raises it, and what it means, in sentences."""

    @property
    def acceptance(self) -> str:
        """How somebody accepts it."""
        return (
            f"Or accept it once, which is remembered: `zelda check --accept-isolation {self.level}` (for one command: "
            f"ZELDA_ACCEPT_ISOLATION={self.level}, or the input accept-isolation)."
        )


def weak_isolation(
    chosen: Iterable[IsolationLevel], isolation: Isolation, words: Sequence[str | None]
) -> WeakIsolation | None:
    """The first of these levels that none of the user's words accepts."""
    for level in chosen:
        if all(levels.unaccepted(level, word) for word in words):
            return WeakIsolation(level, levels.weakness(isolation.offered))
    return None


def heed(weak: WeakIsolation, emit: Emit, *, is_own_content: bool) -> None:
    """Go on only with Zelda's own project.

    Raises:
        ConfigError: With what accepts the level.
    """
    if not is_own_content:
        raise ConfigError(
            weak.meaning,
            hint=f"{weak.acceptance} Nothing was run.",
            code="ISOLATION_NOT_ACCEPTED",
        )
    emit(Warned(weak.meaning))
    emit(Warned("it goes on all the same, because the project is Zelda's own"))


# Only there can what a session starts look into the processes that hold its token, Zelda's own included.
FORGEABLE = "At level none a hostile session can forge what is recorded of it."


def isolation_report(planned: PlannedRun, confinement: Confinement, reasons: tuple[str, ...]) -> IsolationReport:
    """What is known when the workspace is there."""
    is_chosen_by_machine = confinement.level != "full" and planned.suite.isolation.level == "auto"
    kept = reasons if is_chosen_by_machine else ()
    kept = (*kept, FORGEABLE) if confinement.level == "none" else kept
    network = planned.suite.isolation.network
    return IsolationReport(level=confinement.level, reasons=kept, network=network, findings=planned.overruled)


def enter_refusals(state: RunState, offered: ToolsManifest, redact: Redactor) -> None:
    """What Claude Code refuses of the project's settings files: no session of the run has it."""
    whole = redact("the whole file")
    findings = (SettingFinding(file=it.file, setting=it.key or whole, effect=it.effect) for it in offered.refused)
    enter_findings(state, tuple(findings))


def enter_findings(state: RunState, findings: tuple[SettingFinding, ...]) -> None:
    """Add what the project's settings tried."""
    report = state.known.isolation
    _enter(state, findings=(*(report.findings if report else ()), *findings))


def enter_protected(state: RunState, restored: tuple[SafeText, ...]) -> None:
    """Add what the session changed of the protected files."""
    _enter(state, protected=restored)


def enter_ignored(state: RunState, ignored: IgnoredFiles | None) -> None:
    """Add what the session did where the patch does not show it."""
    if ignored:
        _enter(state, ignored=ignored)


def _enter(state: RunState, **facts: object) -> None:
    report = state.known.isolation
    if report:
        state.update(isolation=report.replace(**facts))
