"""What runs and checks of one project stand on, whatever is run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from zelda_ci.config.environment import EnvironmentSettings
from zelda_ci.errors import ZeldaError
from zelda_ci.events import Emit
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.redact import Redactor
from zelda_ci.sandbox.confine import Isolation
from zelda_ci.storage.checks import CheckMemory
from zelda_ci.workspace.workspaces import Workspaces


@dataclass(frozen=True)
class CheckTools:
    """What checks work with; built by `app`."""

    workspaces: Workspaces
    redact: Redactor
    isolation: Isolation
    memory: CheckMemory
    environ: Mapping[str, str]
    session: ModelProxy | ZeldaError
    judge: ModelProxy | ZeldaError
    identity: str = field(repr=False)
    """What the answers of models depend on: the credentials. It becomes part of a digest."""
    emit: Emit


@dataclass(frozen=True)
class Ground:
    """What runs and checks stand on."""

    workspaces: Workspaces
    redact: Redactor
    isolation: Isolation
    results_dir: Path

    def for_checks(
        self,
        session: ModelProxy | ZeldaError,
        judge: ModelProxy | ZeldaError,
        settings: EnvironmentSettings,
        emit: Emit,
    ) -> CheckTools:
        """What checks need beside it."""
        return CheckTools(
            workspaces=self.workspaces,
            redact=self.redact,
            isolation=self.isolation,
            memory=CheckMemory(self.results_dir),
            environ=settings.environ,
            session=session,
            judge=judge,
            identity="".join(secret.fingerprint() for secret in settings.secrets()),
            emit=emit,
        )
