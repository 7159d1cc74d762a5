"""The composition root of `zelda ci`: settings and the event in, exit code out; suites are run by `app`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from zelda_ci import app
from zelda_ci.app import RunOrder
from zelda_ci.ci import comment_mode, evaluate, publish
from zelda_ci.ci.base import BaseSource, overrule, read_base
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.event import Checkout, Decision, decide
from zelda_ci.ci.settings import ActionSettings, environment, read_action_settings
from zelda_ci.config.project import LoadedProject
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.workspace import SettingFinding
from zelda_ci.errors import ConfigError
from zelda_ci.events import Emit
from zelda_ci.github.api import Api
from zelda_ci.github.artifacts import ArtifactService
from zelda_ci.github.revisions import merge_parents
from zelda_ci.github.workflow_commands import Log, OutputFile, Severity, StepSummary
from zelda_ci.imports import one_at_a_time
from zelda_ci.redact import Redactor, Secret
from zelda_ci.report.markdown import render_fork_notice
from zelda_ci.report.text import escape_markdown, sentence
from zelda_ci.workspace.git import head_commit

if TYPE_CHECKING:
    from zelda_ci.github.http import Http

TIMEOUT_SECONDS = 300.0

# The runner kills a cancelled step 10 seconds after its first signal.
CONCLUSION_SECONDS = 2.0


def ci(environ: Mapping[str, str], log: Log, emit: Emit) -> int:
    """Do what the event asks for; returns the exit code.

    Args:
        environ: The environment of the step.
        log: Where the runner listens.
        emit: Who watches the runs.

    Raises:
        ZeldaError: The step cannot be used as it is, nothing could be run, or results could not be written.
    """
    settings = read_action_settings(environ, Path.read_bytes)
    log.mask(settings.secrets())
    checkout = _checkout(settings, environ)
    decision = decide(settings, checkout)
    log.say(decision.sentence)
    match decision.activity:
        case "skip":
            return _skip(settings, decision, log)
        case "comment":
            return comment_mode.comment(_case(settings, decision, decision.head_sha, environ, log))
        case "run":
            case = _case(settings, decision, checkout.head or settings.context.sha, environ, log)
            return _evaluate(case, environ, emit)


def _evaluate(case: CiContext, environ: Mapping[str, str], emit: Emit) -> int:
    settings = case.settings
    _need_files(settings.project)
    loaded, findings, notes = _with_rights(app.load(settings.project), case, environ)
    order = RunOrder(
        names=settings.suites,
        overrides=settings.overrides,
        jobs=settings.jobs,
        replay=settings.replay,
        overruled=findings,
        conclusion_seconds=CONCLUSION_SECONDS,
    )

    def run() -> BatchResult:
        return app.run(loaded, order, environment(environ, settings), emit)

    return evaluate.evaluate(replace(case, root=loaded.root, results_dir=loaded.results_dir, notes=notes), run)


def _with_rights(
    loaded: LoadedProject, case: CiContext, environ: Mapping[str, str]
) -> tuple[LoadedProject, Mapping[str, tuple[SettingFinding, ...]], tuple[str, ...]]:
    """The project with no more rights than the base of a pull request gives, and what is to be told of it."""
    settings, commit = case.settings, case.decision.base
    if commit is None:
        return loaded, {}, ()
    context = settings.context
    source = BaseSource(
        settings.project, context.workspace, context.server_url, context.repository, settings.github_token, environ
    )
    redact = Redactor(settings.secrets())
    overruled = overrule(loaded, source.top, read_base(commit, source, loaded, redact), redact)
    for note in overruled.notes:
        # A new suite is nothing to be warned of.
        severity: Severity = "warning" if any(overruled.findings.values()) else "notice"
        case.log.report(severity, note, title="Rights come from the base")
    return overruled.project, overruled.findings, overruled.notes


def _need_files(project: Path) -> None:
    """Before suites are looked for in vain: GitHub's workspace is there before anything is in it."""
    if not any(project.iterdir()):
        hint = "A step with actions/checkout must come before this one; its `path` goes into working-directory."
        raise ConfigError("There is nothing in the workspace.", hint=hint, code="WORKSPACE_EMPTY")


def _case(settings: ActionSettings, decision: Decision, commit: str, environ: Mapping[str, str], log: Log) -> CiContext:
    with one_at_a_time("requests"):
        from zelda_ci.github.http import Http  # noqa: PLC0415 - a command that never asks GitHub need not wait for it

    http = Http(patience_seconds=TIMEOUT_SECONDS)

    def mask(value: str) -> None:
        log.mask([Secret(value)])

    return CiContext(
        settings=settings,
        decision=decision,
        commit=commit,
        api=_api(settings, http, mask),
        artifacts=lambda: ArtifactService.open(environ, http, mask=mask),
        root=settings.project,
        results_dir=settings.project / ".zelda",
        log=log,
        now=lambda: datetime.now(UTC),
    )


def _api(settings: ActionSettings, http: "Http", mask: Callable[[str], None]) -> Api | None:
    context = settings.context
    if settings.github_token is None:
        return None
    return Api(
        http,
        base_url=context.api_url,
        graphql_url=context.graphql_url,
        token=settings.github_token,
        repository=context.repository,
        mask=mask,
    )


def _checkout(settings: ActionSettings, environ: Mapping[str, str]) -> Checkout:
    project = anyio.run(head_commit, settings.project, environ)
    head = anyio.run(head_commit, settings.context.workspace, environ) or project
    return Checkout(head[0], merge_parents(head[1]), project[0] if project else None) if head else Checkout()


def _skip(settings: ActionSettings, decision: Decision, log: Log) -> int:
    log.report("notice", decision.sentence, title="Zelda did not run")
    notice = render_fork_notice() if decision.explain_forks else f"Zelda did not run: {decision.sentence}\n"
    publish.warn(log, publish.summarise(settings.context, notice))
    publish.warn(log, publish.hand_over(settings.context, {"verdict": "skipped"}))
    return 0


def give_up(environ: Mapping[str, str], log: Log, why: str, verdict: str) -> None:
    """Say in summary and outputs, too, that there are no results; the settings may be what is wrong."""
    summary, outputs = (
        Path(environ[name]) if environ.get(name) else None for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")
    )
    text = "\n\n".join(escape_markdown(sentence(line)) for line in why.splitlines())
    for write in (
        partial(StepSummary(summary).write, f"### Zelda could not do its work\n\n{text}\n"),
        partial(OutputFile(outputs).write, "verdict", verdict),
    ):
        try:
            write()
        except OSError as problem:
            log.say(f"The runner's files could not be written: {problem.strerror or problem}.")
