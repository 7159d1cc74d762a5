"""What one command is to do on one project, and what that needs: made once, when it is first asked for."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Self

from zelda_ci.compare.shards import trial_seconds
from zelda_ci.config.document import DEFAULT, Origin
from zelda_ci.config.environment import EnvironmentSettings, accepted_isolation
from zelda_ci.config.project import LoadedProject, select
from zelda_ci.config.suites import LoadedSuite
from zelda_ci.domain.run import StoredTrials
from zelda_ci.domain.suite import IsolationLevel, ResolvedSuite
from zelda_ci.domain.trials import TrialPlan, plan_of
from zelda_ci.domain.workspace import SettingFinding
from zelda_ci.errors import ConfigError, ExecutionError, StorageError
from zelda_ci.execution import launch
from zelda_ci.files.secret_files import FoundSecrets, find_secrets
from zelda_ci.overrides import Overrides, apply, read
from zelda_ci.redact import Redactor
from zelda_ci.sandbox import levels
from zelda_ci.sandbox.confine import Isolation
from zelda_ci.sandbox.readable_paths import NARROW, PrivateFolders, refusals
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.survey import folder
from zelda_ci.workspace.folder import search_path
from zelda_ci.workspace.source import BaseOrder
from zelda_ci.workspace.units import Variant
from zelda_ci.workspace.workspaces import Workspaces

SETUP, PROGRAMS = "setupCommand", "execution.path"
# The level that somebody must accept first, and how.
WEAK: IsolationLevel = "landlock"
ACCEPTANCE = (
    f"Or accept it once, which is remembered: `zelda check --accept-isolation {WEAK}` (for one command: "
    f"ZELDA_ACCEPT_ISOLATION={WEAK}, or the input accept-isolation)."
)


@dataclass(frozen=True)
class RunOrder:
    """What `zelda run` was asked for; without names and tags, every suite."""

    names: Sequence[str] = ()
    tags: Sequence[str] = ()
    overrides: Overrides = field(default_factory=Overrides)
    jobs: int = 1
    record: Path | None = None
    replay: Path | None = None
    unsafe: bool = False
    """Whether a run may have no isolation at all."""
    overruled: Mapping[str, tuple[SettingFinding, ...]] = field(default_factory=dict)
    """By suite, what a pull request wanted to set, and may not."""
    is_own_content: bool = False
    """Whether the project is Zelda's own, so that nobody need accept weak isolation for it."""
    conclusion_seconds: float = 60
    """Most that changes and evaluation may take once a run was interrupted."""
    check: bool = True
    """Whether what a run needs is tried first; a replay spends nothing and needs no check."""
    despite_failing: bool = True
    """Whether suites run whose build or tests fail before any session."""
    working_tree: bool = False
    """Whether the files are tested as they are, and not as they were last committed."""
    commit: BaseOrder | None = None
    """The commit that is tested in place of the last one."""
    against: BaseOrder | None = None
    """The commit that runs side by side with the tested one."""
    variant: Variant | None = None
    """What is changed of the tested files; these themselves then are the base."""
    needs_base: bool = True
    """Whether nothing runs where that commit cannot be had; otherwise each suite runs as often as without it."""
    stored: Mapping[str, StoredTrials] = field(default_factory=dict)
    """By suite, stored trials that count or say what to expect."""
    budget_usd: float | None = None
    """For the whole invocation, judges included; above what the suites say."""
    max_failures: int | None = None
    """Runs that do not pass, after which nothing more is begun."""
    elsewhere: Sequence[str] = ()
    """Suites that other machines run, and that are compared together with these."""

    def compares(self, suites: Iterable[ResolvedSuite]) -> bool:
        """Whether a base runs beside suites: who names one means it, elsewhere fixed numbers have stored trials."""
        has_plan = any(isinstance(plan_of(suite.trials), TrialPlan) for suite in suites)
        return self.against is not None and (self.needs_base or has_plan)


class Prepared:
    """An order on one project, with what it needs. All of it raises `ConfigError` where the order cannot be used."""

    def __init__(self, loaded: LoadedProject, order: RunOrder, settings: EnvironmentSettings) -> None:
        self.loaded, self.order, self.settings = loaded, order, settings
        self.environ, self.replayed = settings.environ, order.replay is not None
        self._is_unsafe = order.unsafe or settings.unsafe
        self.store = ResultStore(loaded.results_dir)
        self.given = order.overrides.above(read("variable", settings.environ.get))
        self.find_secrets = cache(partial(find_secrets, loaded.root, self.environ))

    def ordering(self, order: RunOrder) -> Self:
        """The same with another order."""
        other = type(self)(self.loaded, order, self.settings)
        other.find_secrets = self.find_secrets
        return other

    @cached_property
    def chosen(self) -> list[LoadedSuite]:
        """The suites that were ordered, with their overrides and the setup that the project suggests."""
        chosen = select(self.loaded, self.order.names, self.order.tags)
        applied = [replace(suite, resolved=apply(suite.resolved, self.given)) for suite in chosen]
        return settled(self.loaded.root, applied, self.environ)

    @cached_property
    def suites(self) -> list[ResolvedSuite]:
        """The same as they run."""
        return [suite.resolved for suite in self.chosen]

    @property
    def masked(self) -> list[ResolvedSuite]:
        """The same as results hold them."""
        return [suite.redacted(self.redact) for suite in self.suites]

    @cached_property
    def expected_seconds(self) -> dict[str, float]:
        """What a run of each suite is expected to take, by name; without stored runs nothing is."""
        with suppress(StorageError):
            return trial_seconds(self.store.overview().runs, replayed=self.replayed)
        return {}

    @cached_property
    def elsewhere(self) -> list[ResolvedSuite]:
        """Suites that other machines run, and that are compared together with these."""
        names = self.order.elsewhere
        return self.ordering(replace(self.order, names=names)).suites if names else []

    @cached_property
    def isolation(self) -> Isolation:
        """What runs are confined with; protection that was asked for and is not there is an error, before it costs."""
        cli = None
        with suppress(ExecutionError):  # every session will say so
            cli = launch.find_cli()
        isolation = Isolation(
            levels.probe(self.environ, cli),
            unsafe=self._is_unsafe,
            programs=[cli] if cli else [],
            sockets=levels.container_sockets(self.environ),
        )
        for suite in self.suites:
            isolation.of(suite)
        return isolation

    def weak_isolation(self) -> str | None:
        """What the level `WEAK` means, where runs have it and nobody who decides over this machine has accepted it."""
        if self._is_unsafe and not self.order.is_own_content:
            return None
        isolation = self.isolation
        # What the files of the project say is not the user's word.
        words = [it.value for key in ("acceptIsolation", "isolation.level") if (it := self.given.get(key))]
        words.append(accepted_isolation(self.environ))
        used = [isolation.of(suite) for suite in self.suites] or [isolation.offered.level]
        return levels.remark(WEAK, isolation.offered) if WEAK in used and not {WEAK, "none"} & set(words) else None

    @property
    def found_secrets(self) -> FoundSecrets:
        """What lies about in the project, and in the variables that sessions get."""
        return self.find_secrets(frozenset(name for suite in self.suites for name in suite.execution.passed_on))

    @cached_property
    def redact(self) -> Redactor:
        """Masks these and the credentials."""
        return Redactor([*self.settings.secrets, *self.found_secrets.secrets])

    @cached_property
    def workspaces(self) -> Workspaces:
        """Where the tested files are run."""
        if not self.replayed:
            self._keep_credentials_back()
        return self._whole.varied(self.order.variant) if self.order.variant else self._whole

    @cached_property
    def _whole(self) -> Workspaces:
        return self._workspaces_of(self.order.commit, working_tree=self.order.working_tree)

    @cached_property
    def base_workspaces(self) -> Workspaces:
        """Where the files of the base are run, beside the tested ones."""
        return self._whole if self.order.variant else self._workspaces_of(self.order.against)

    def _workspaces_of(self, commit: BaseOrder | None, *, working_tree: bool = False) -> Workspaces:
        return Workspaces(
            self.loaded.root,
            self.loaded.results_dir,
            self.environ,
            self.redact,
            self.isolation,
            self.loaded.own_files([self.order.record, self.order.replay]),
            working_tree=working_tree,
            base=commit,
        )

    def _keep_credentials_back(self) -> None:
        """See to it that no session gets what pays for it."""
        credential = None
        with suppress(ConfigError):  # whoever wants to use it will say so
            credential = self.settings.credential()
        paying = credential.variables if credential else frozenset()
        for suite in self.suites:
            for name in paying.intersection(suite.execution.env):
                raise ConfigError(
                    f"{suite.file}: execution.env: {name} must not be passed on: it pays for the models here, and "
                    "sessions never hold such a credential.",
                    hint="Give the session's commands another credential, under another name.",
                    code="CREDENTIAL_PASSED_ON",
                )


def settled(root: Path, suites: Sequence[LoadedSuite], environ: Mapping[str, str]) -> list[LoadedSuite]:
    """The suites as they run here, with the setup that the project's lock file suggests where they name none."""
    private, problems = PrivateFolders.of(root, root, environ), []
    for suite in suites:
        for key, problem in refusals(suite.resolved, private):
            origin = suite.provenance.get(key, DEFAULT)
            problems.append(problem if origin == DEFAULT else f"{origin}: {problem}")
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)), hint=NARROW, code="READ_PATH_REFUSED")
    if all(suite.provenance.get(SETUP, DEFAULT) != DEFAULT for suite in suites):
        return list(suites)
    *_, kinds = folder.look(Path(os.path.realpath(root)))
    path = search_path(environ.get("PATH", os.defpath), root)
    # Without a lock file nobody knows what would be installed: that is for people to decide.
    usable = (kind for kind in kinds if kind.setup and kind.lock and shutil.which(kind.program, path=path))
    kind, found = next(usable, None), []
    for suite in suites:
        resolved, origins = suite.resolved, dict(suite.provenance)
        if kind and origins.get(SETUP, DEFAULT) == DEFAULT:
            resolved, origins[SETUP] = resolved.replace(setup_command=kind.setup), Origin(kind.lock)
            if kind.programs and origins.get(PROGRAMS, DEFAULT) == DEFAULT:
                resolved = resolved.replace(execution=resolved.execution.replace(path=kind.programs))
                origins[PROGRAMS] = Origin(kind.lock)
        found.append(replace(suite, resolved=resolved, provenance=origins))
    return found
