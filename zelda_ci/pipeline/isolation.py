"""What a run's result says about how it was confined."""

from collections.abc import Collection

from zelda_ci.domain.isolation import IsolationReport, SettingFinding
from zelda_ci.domain.suite import IsolationLevel, ResolvedSuite
from zelda_ci.domain.workspace import Confinement
from zelda_ci.redact import SafeText
from zelda_ci.storage.ledger import RunLedger


def confined(suite: ResolvedSuite, level: str | None, require: IsolationLevel | None) -> ResolvedSuite:
    """The suite with what was ordered in place of its own wishes."""
    ordered = {"level": level, "require": require}
    given = {name: value for name, value in ordered.items() if value is not None}
    return suite.model_copy(update={"isolation": suite.isolation.model_copy(update=given)}) if given else suite


def in_one_line(levels: Collection[IsolationLevel], reasons: tuple[str, ...]) -> str:
    """For the log, before anything is spent."""
    why = f" ({' '.join(reasons)})" if reasons and set(levels) != {"full"} else ""
    return f"isolation: {', '.join(sorted(levels))}{why}"


def report(suite: ResolvedSuite, confinement: Confinement, reasons: tuple[str, ...]) -> IsolationReport:
    """What is known when the workspace is there."""
    kept = () if confinement.level == "full" else reasons
    return IsolationReport(level=confinement.level, reasons=kept, network=suite.isolation.network)


def enter_findings(ledger: RunLedger, findings: tuple[SettingFinding, ...]) -> None:
    """Add what the project's settings tried."""
    _enter(ledger, findings=findings)


def enter_protected(ledger: RunLedger, restored: tuple[SafeText, ...]) -> None:
    """Add what the session changed of the protected files."""
    _enter(ledger, protected=restored)


def _enter(ledger: RunLedger, **facts: object) -> None:
    known = ledger.known.isolation
    if known:
        ledger.learn(isolation=known.model_copy(update=facts))
