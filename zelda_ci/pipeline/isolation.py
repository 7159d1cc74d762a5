"""What a run's result says about how it was confined."""

from zelda_ci.domain.isolation import IsolationReport, SettingFinding
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Confinement
from zelda_ci.storage.ledger import RunLedger


def report(suite: ResolvedSuite, confinement: Confinement, reasons: tuple[str, ...]) -> IsolationReport:
    """What is known when the workspace is there."""
    kept = () if confinement.level == "full" else reasons
    return IsolationReport(level=confinement.level, reasons=kept, network=suite.isolation.network)


def enter_findings(ledger: RunLedger, findings: tuple[SettingFinding, ...]) -> None:
    """Add what the project's settings tried."""
    _enter(ledger, findings=findings)


def _enter(ledger: RunLedger, **facts: object) -> None:
    known = ledger.known.isolation
    if known:
        ledger.learn(isolation=known.model_copy(update=facts))
