"""The commands of suites on the tested commit, in the sandbox, checkout and environment of a session's end."""

import json
import os
import secrets
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zelda_ci import process
from zelda_ci.config.merge import LoadedSuite
from zelda_ci.domain.check import Check
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.suite import Command, ResolvedSuite
from zelda_ci.domain.test_run import CommandResult
from zelda_ci.errors import ConfigError, WorkspaceError, ZeldaError
from zelda_ci.events import Checking, Emit, ignore
from zelda_ci.metrics.base import Services
from zelda_ci.metrics.functional_correctness import (
    CommandEvidence,
    FunctionalCorrectness,
    check_usable,
    reasoning,
    weigh,
)
from zelda_ci.pipeline.needed_programs import (
    ACTIONS,
    absent_program,
    found_elsewhere,
    how_to_get,
    missing_program,
    needed_program,
    shut_out,
)
from zelda_ci.pipeline.tools import WorkspaceCommandRunner
from zelda_ci.redact import EMPTY, Redactor, SafeText
from zelda_ci.sandbox.closed_folders import barrier, way_out
from zelda_ci.workspace.clean_checkout import CheckedOut
from zelda_ci.workspace.environment import search_path
from zelda_ci.workspace.workspaces import Workspaces

VERSION_SECONDS = 10
SETUP, BUILD, TEST = "setupCommand", "buildCommand", "testCommand"


@dataclass
class Planned:
    """One command, and who has it."""

    key: str
    command: Command
    suite: ResolvedSuite
    """The first that has it."""
    origin: str | None
    suites: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What it is known by among those with the same setup; tests depend on the build before them."""
        build = self.suite.build_command if self.key == TEST else None
        return json.dumps([self.key, self.command, build])

    @property
    def shown(self) -> str:
        """As one would type it."""
        return self.command if isinstance(self.command, str) else shlex.join(self.command)


class NoLogs:
    """For commands whose last lines are enough."""

    def keep_log(self, run_id: str, step: str, output: SafeText) -> None:
        """Keep nothing."""


class CommandTrial:
    """The commands of suites whose sandbox and setup are the same; each is tried once."""

    def __init__(
        self,
        suites: Sequence[LoadedSuite],
        workspaces: Workspaces,
        redact: Redactor,
        emit: Emit,
        environ: Mapping[str, str],
        *,
        goes_on: bool = False,
    ) -> None:
        self._suites, self._workspaces, self._redact, self._emit = suites, workspaces, redact, emit
        self._environ, self._goes_on = environ, goes_on
        self.planned = list(_planned(suites))
        self._bench = WorkspaceCommandRunner(workspaces, NoLogs(), ignore)
        self._metric = FunctionalCorrectness(Services(self._bench, redact))
        self._builds: dict[Command, CommandResult | None] = {}
        self._unready = False

    async def checks(self, known: Mapping[str, Check]) -> dict[str, Check]:
        """Try what is not known yet, setup first, in a workspace of their own; all results, by name."""
        unknown = [planned for planned in self.planned if planned.name not in known]
        builds = {planned.suite.build_command for planned in unknown}
        needed = [
            each
            for each in self.planned
            if each in unknown or each.key == SETUP or (each.key == BUILD and each.command in builds)
        ]
        tried = dict(zip([each.name for each in needed], await self._try(needed), strict=False)) if unknown else {}
        every = {planned.name: planned for planned in self.planned}
        told = {
            name: known[name].replace(suites=tuple(planned.suites), origin=planned.origin)
            for name, planned in every.items()
            if name in known
        }
        both = {**told, **tried}
        return {name: both[name] for name in every if name in both}

    async def _try(self, needed: Sequence[Planned]) -> list[Check]:
        try:
            await self._workspaces.sweep()  # of checks and runs that were killed
            async with self._workspaces.open(f"check-{secrets.token_hex(6)}", self.planned[0].suite) as workspace:
                checked = await self._workspaces.check_out_again(workspace)
                return [await self._check(planned, checked) for planned in needed]
        except ZeldaError as problem:
            return [self._without_workspace(problem)]

    def _without_workspace(self, problem: ZeldaError) -> Check:
        """No command could be tried at all; of a setting that is to blame, the message names the key first."""
        origin = self._suites[0].provenance.get(problem.message.partition(":")[0])
        return Check(
            subject="workspace",
            about=self._redact("a copy of the project"),
            status="failed",
            message=self._redact(problem.message),
            hint=problem.hint,
            origin=str(origin) if origin else None,
            suites=tuple(suite.resolved.name for suite in self._suites),
        )

    async def _check(self, planned: Planned, checked: CheckedOut) -> Check:
        redact = self._redact
        check = _check_of(planned, redact)
        build = self._builds.get(planned.suite.build_command) if planned.suite.build_command is not None else None
        needs_build = planned.key == TEST and not self._goes_on
        if self._unready or (needs_build and build and build.exit_code != 0):
            reason = f"not tried, since {SETUP if self._unready else BUILD} did not succeed"
            return check.replace(status="skipped", message=redact(reason))
        self._emit(Checking(f"{planned.key} {planned.shown}"))
        try:
            found = await self._tried(planned, checked, check)
        except (ConfigError, WorkspaceError) as problem:
            program, path = needed_program(planned.command, planned.suite), checked.workspace.confinement.environment
            hint = (program and shut_out(program, self._environ, path.get("PATH", ""))) or problem.hint
            found = check.replace(status="failed", message=redact(problem.message), hint=hint)
        self._unready |= planned.key == SETUP and found.status == "failed"
        return found

    async def _tried(self, planned: Planned, checked: CheckedOut, check: Check) -> Check:
        workspace, environment = checked.workspace, checked.workspace.confinement.environment
        match planned.key:
            case "setupCommand":
                return self._of_setup(check, await self._set_up(planned, checked), environment)
            case "buildCommand":
                # Later tests are to know, also where it cannot be run at all.
                self._builds[planned.command] = CommandResult(command=EMPTY, seconds=0, output=EMPTY, output_bytes=0)
                build = await self._metric.build(planned.suite, workspace)
                self._builds[planned.command] = build
                evidence = CommandEvidence(build)
                return self._of_evidence(planned.suite.replace(test_command=None), evidence, check, environment)
            case _:
                evidence = await self._metric.test(planned.suite, workspace, None)
                return self._of_evidence(planned.suite.replace(build_command=None), evidence, check, environment)

    async def _set_up(self, planned: Planned, checked: CheckedOut) -> CommandResult:
        limit = planned.suite.command_timeout_seconds
        done = await self._bench.set_up(checked.workspace, "setup-again", planned.suite)
        if done.exit_code == 0 and checked.update:
            updated = await self._workspaces.run_command(checked.workspace, checked.update, limit, phase="zelda")
            return done if updated.exit_code == 0 else updated
        return done.in_brief(self._redact)

    def _of_setup(self, check: Check, done: CommandResult, environment: Mapping[str, str]) -> Check:
        """Without it no session begins."""
        check = check.replace(seconds=done.seconds)
        missing = missing_program(done.output)
        if missing and done.exit_code != 0:
            return self._without(missing, check, done, environment)
        check_usable(SETUP, done, environment)
        if done.exit_code == 0:
            return check
        how = "ran into its time limit" if done.timed_out else f"ended with exit code {done.exit_code}"
        hint = "Correct setupCommand, or what it needs."
        message = self._redact(f"{SETUP} `{check.about}` {how}. {_path(environment)}")
        failing = self._redact(f"{SETUP} {how}.")
        return check.replace(status="failed", message=message, failing=failing, output=done.output, hint=hint)

    def _without(self, program: str, check: Check, done: CommandResult, environment: Mapping[str, str]) -> Check:
        closed = shut_out(program, self._environ, environment.get("PATH", ""))
        hint = closed or how_to_get(program, self._environ)
        return _without(check, program, environment, hint, self._redact).replace(output=done.output)

    def _of_evidence(
        self, suite: ResolvedSuite, evidence: CommandEvidence, check: Check, environment: Mapping[str, str]
    ) -> Check:
        """That the project's own tests fail may be what the suite is about."""
        done = evidence.test or evidence.build
        if done is None:
            return check
        check = check.replace(seconds=done.seconds)
        _, details = weigh(suite, evidence)
        missing = missing_program(done.output)
        if missing and done.exit_code != 0:
            return self._without(missing, check, done, environment)
        if details.passed and not missing:
            return check.replace(message=self._redact(reasoning(details)))
        why = reasoning(details) if not details.passed else f"{check.subject} succeeded, but {missing} is missing."
        message = (
            f"on the tested commit, before any session: {why} That is right only for a suite whose task is to mend it."
        )
        failing = self._redact(why)
        return check.replace(status="warning", message=self._redact(message), failing=failing, output=done.output)


def _path(environment: Mapping[str, str]) -> str:
    return f"PATH in the run: {environment.get('PATH', '')}"


def _without(check: Check, program: str, environment: Mapping[str, str], hint: str, redact: Redactor) -> Check:
    """Of a command whose program is not there: which one, where it was looked for, and how to get it."""
    why = f"cannot be run: {program} is missing."
    message = redact(f"{check.subject} `{check.about}` {why} {_path(environment)}")
    return check.replace(status="failed", message=message, failing=redact(f"{check.subject} {why}"), hint=hint)


def not_there(
    suites: Sequence[LoadedSuite],
    project: Path,
    environ: Mapping[str, str],
    redact: Redactor,
    inside: Callable[[ResolvedSuite], Mapping[str, str]],
) -> list[Check]:
    """The first commands of suites whose program is certainly not there, found out without running anything.

    Args:
        suites: Whose commands they are.
        project: The project's folder.
        environ: The user's environment.
        redact: For what is told.
        inside: The same with what of PATH is within the reach of a suite's runs.
    """
    found = []
    for planned in _planned(suites):
        first = next(command for command in _commands(planned.suite).values() if command is not None)
        # What runs before a command might install its program.
        within = inside(planned.suite)
        program = absent_program(first, planned.suite, project, within) if planned.command == first else None
        if program:
            path = search_path(within.get("PATH", ""), project)
            hint = shut_out(program, environ, path) or how_to_get(program, environ)
            found.append(_without(_check_of(planned, redact), program, {"PATH": path}, hint, redact))
    return found


def others(
    suites: Sequence[LoadedSuite],
    project: Path,
    environ: Mapping[str, str],
    redact: Redactor,
    inside: Mapping[str, str],
) -> Iterator[Check]:
    """That runs of suites find other programs than the user's shell, with the versions of both; where it is so.

    Args:
        suites: Of one level.
        project: The project's folder.
        environ: The user's environment.
        redact: For what is told.
        inside: The same with what of PATH is within the reach of the suites' runs.
    """
    commands = [command for suite in suites for command in _commands(suite.resolved).values() if command is not None]
    firsts = [needed_program(command, suites[0].resolved) for command in commands]
    programs = dict.fromkeys([*filter(None, firsts), *ACTIONS])
    paths = [search_path(each.get("PATH", ""), project) for each in (environ, inside)]
    told = [
        f"{Path(usual).name} is {other} ({version_of(other)}) in the run, {usual} ({version_of(usual)}) in your shell"
        for usual, other in found_elsewhere(programs, *paths)
    ]
    if told:
        closed = next((folder for entry in paths[0].split(os.pathsep) if (folder := barrier(Path(entry)))), None)
        yield Check(
            subject="programs",
            about=redact(f"{len(told)} found elsewhere"),
            status="warning",
            message=redact(f"{'; '.join(told)}."),
            hint=way_out(closed) if closed else None,
            suites=tuple(suite.resolved.name for suite in suites),
        )


def version_of(program: str) -> str:
    """What a program says of its version, in a line."""
    try:
        said = process.answer([program, "--version"], timeout_seconds=VERSION_SECONDS)
    except (OSError, TimeoutError):
        return "of unknown version"
    lines = (said.stdout or said.stderr).decode("utf-8", "replace").strip().splitlines()
    return lines[0][:80] if said.exit_code == 0 and lines else "of unknown version"


def _check_of(planned: Planned, redact: Redactor) -> Check:
    """Of a command that nothing speaks against so far."""
    return Check(
        subject=planned.key,
        about=redact(planned.shown),
        status="passed",
        origin=planned.origin,
        suites=tuple(planned.suites),
    )


def _planned(suites: Sequence[LoadedSuite]) -> Iterator[Planned]:
    """Each distinct command, setup first and tests last."""
    found: dict[str, Planned] = {}
    for key in (SETUP, BUILD, TEST):
        for suite in suites:
            command = _commands(suite.resolved)[key]
            if command is not None:
                origin = suite.provenance.get(key)
                first = Planned(key, command, suite.resolved, str(origin) if origin else None)
                found.setdefault(first.name, first).suites.append(suite.resolved.name)
    yield from found.values()


def _commands(suite: ResolvedSuite) -> Mapping[str, Command | None]:
    judged = suite.metrics.is_on(Metric.FUNCTIONAL_CORRECTNESS)
    return {
        SETUP: suite.setup_command,
        BUILD: suite.build_command if judged else None,
        TEST: suite.test_command if judged else None,
    }
