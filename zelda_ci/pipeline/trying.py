"""The commands of suites on the tested commit, in the sandbox, checkout and environment of a session's end."""

import json
import os
import secrets
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from zelda_ci import process
from zelda_ci.config.merge import LoadedSuite
from zelda_ci.domain.check import Check, Status
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
    ending,
    reasoning,
    weigh,
)
from zelda_ci.pipeline.invocation import Prepared
from zelda_ci.pipeline.needed_programs import (
    ACTIONS,
    absent_program,
    how_to_get,
    missing_program,
    needed_program,
    shut_out,
)
from zelda_ci.pipeline.tools import WorkspaceCommandRunner
from zelda_ci.redact import EMPTY, Redactor
from zelda_ci.sandbox.closed_folders import barrier, way_out
from zelda_ci.workspace.clean_checkout import CheckedOut
from zelda_ci.workspace.environment import search_path

VERSION_SECONDS = 10
SETUP, BUILD, TEST = "setupCommand", "buildCommand", "testCommand"


@dataclass
class Planned:
    """One command."""

    command: Command
    suite: ResolvedSuite
    """The first that has it."""
    check: Check
    """What is said of it where nothing speaks against it."""


class CommandTrial:
    """The commands of suites whose sandbox and setup are the same; each is tried once."""

    def __init__(self, prepared: Prepared, suites: Sequence[LoadedSuite], emit: Emit, *, goes_on: bool) -> None:
        self._prepared, self._suites, self._emit, self._goes_on = prepared, suites, emit, goes_on
        self._redact, self._workspaces = prepared.redact, prepared.workspaces
        self.planned = planned_commands(suites, self._redact)
        self._commands = WorkspaceCommandRunner(self._workspaces, None, ignore)
        self._metric = FunctionalCorrectness(Services(self._commands, self._redact))
        self._builds: dict[Command, CommandResult | None] = {}
        self._unready = False

    async def checks(self, known: Mapping[str, Check]) -> dict[str, Check]:
        """Try what is not known yet, setup first, in a workspace of their own; all results, by name."""
        found = {
            name: known[name].replace(suites=planned.check.suites, origin=planned.check.origin)
            for name, planned in self.planned.items()
            if name in known
        }
        builds = {planned.suite.build_command for name, planned in self.planned.items() if name not in known}
        needed = {
            name: each
            for name, each in self.planned.items()
            if name not in known
            or (builds and each.check.subject == SETUP)
            or (each.check.subject == BUILD and each.command in builds)
        }
        if needed:
            found |= zip(needed, await self._try([*needed.values()]), strict=False)
        return {name: found[name] for name in self.planned if name in found}

    async def _try(self, needed: Sequence[Planned]) -> list[Check]:
        try:
            await self._workspaces.sweep()  # of checks and runs that were killed
            suite = self._suites[0].resolved
            async with self._workspaces.open(f"check-{secrets.token_hex(6)}", suite) as workspace:
                checked = await self._workspaces.check_out_again(workspace)
                return [await self._check(planned, checked) for planned in needed]
        except ZeldaError as problem:
            # No command could be tried at all; of a setting that is to blame, the message names the key first.
            origin = self._suites[0].provenance.get(problem.message.partition(":")[0])
            names = tuple(suite.resolved.name for suite in self._suites)
            failed = made(self._redact, "workspace", "failed", "a copy of the project", problem.message)
            return [failed.replace(hint=problem.hint, origin=str(origin) if origin else None, suites=names)]

    async def _check(self, planned: Planned, checked: CheckedOut) -> Check:
        check, redact, build = planned.check, self._redact, None
        if planned.suite.build_command is not None and check.subject == TEST and not self._goes_on:
            build = self._builds.get(planned.suite.build_command)
        if self._unready or (build and build.exit_code != 0):
            reason = f"not tried, since {SETUP if self._unready else BUILD} did not succeed"
            return check.replace(status="skipped", message=redact(reason))
        self._emit(Checking(f"{check.subject} {check.about}"))
        environment = checked.workspace.confinement.environment
        try:
            found = await self._tried(planned, checked, environment)
        except (ConfigError, WorkspaceError) as problem:
            program = needed_program(planned.command, planned.suite)
            closed = program and shut_out(program, self._prepared.environ, environment.get("PATH", ""))
            found = check.replace(status="failed", message=redact(problem.message), hint=closed or problem.hint)
        self._unready |= check.subject == SETUP and found.status == "failed"
        return found

    async def _tried(self, planned: Planned, checked: CheckedOut, environment: Mapping[str, str]) -> Check:
        check, redact = planned.check, self._redact
        done, passed, why = await self._run(planned, checked)
        if done is None:
            return check
        check = check.replace(seconds=done.seconds)
        missing = missing_program(done.output)
        if missing and done.exit_code != 0:
            path = environment.get("PATH", "")
            return _without(check, missing, path, self._prepared.environ, redact).replace(output=done.output)
        if check.subject == SETUP:
            check_usable(SETUP, done, environment)
            # Without it no session begins.
            status, hint = "failed", "Correct setupCommand, or what it needs."
            message = (
                f"{SETUP} `{check.about}` {ending(planned.suite, done)}. PATH in the run: {environment.get('PATH', '')}"
            )
        else:
            if passed and missing:
                passed, why = False, f"{check.subject} succeeded, but {missing} is missing."
            # That the project's own tests fail may be what the suite is about.
            status, hint, purpose = "warning", None, "That is right only for a suite whose task is to mend it."
            message = f"on the tested commit, before any session: {why} {purpose}"
        if passed:
            return check.replace(message=redact(why) if why else None)
        known = {"message": redact(message), "failing": redact(why), "output": done.output, "hint": hint}
        return check.replace(status=status, **known)

    async def _run(self, planned: Planned, checked: CheckedOut) -> tuple[CommandResult | None, bool, str]:
        """How a command ended, whether that is well, and why."""
        suite, workspace = planned.suite, checked.workspace
        match planned.check.subject:
            case "setupCommand":
                done = (await self._commands.set_up_again(checked, suite)).in_brief(self._redact)
                return done, done.exit_code == 0, "" if done.exit_code == 0 else f"{SETUP} {ending(suite, done)}."
            case "buildCommand":
                # Later tests are to know, also where it cannot be run at all.
                self._builds[planned.command] = CommandResult(command=EMPTY, seconds=0, output=EMPTY, output_bytes=0)
                build = await self._metric.build(suite, workspace)
                self._builds[planned.command] = build
                suite, evidence = suite.replace(test_command=None), CommandEvidence(build)
            case _:
                evidence = await self._metric.test(suite, workspace, None)
                suite = suite.replace(build_command=None)
        _, details = weigh(suite, evidence)
        return evidence.test or evidence.build, bool(details.passed), reasoning(details)


def made(redact: Redactor, subject: str, status: Status, about: str, message: str | None = None) -> Check:
    """A check, with what is said of it made safe."""
    return Check(subject=subject, status=status, about=redact(about), message=redact(message) if message else None)


def _without(check: Check, program: str, path: str, environ: Mapping[str, str], redact: Redactor) -> Check:
    """Of a command whose program is not there: which one, where it was looked for, and how to get it."""
    why = f"cannot be run: {program} is missing."
    message = redact(f"{check.subject} `{check.about}` {why} PATH in the run: {path}")
    hint = shut_out(program, environ, path) or how_to_get(program, environ)
    return check.replace(status="failed", message=message, failing=redact(f"{check.subject} {why}"), hint=hint)


def not_there(prepared: Prepared, inside: Callable[[ResolvedSuite], Mapping[str, str]]) -> Iterator[Check]:
    """The first commands of suites whose program is certainly not there, found out without running anything.

    `inside` is the user's environment with what of PATH is within the reach of a suite's runs.
    """
    project, environ, redact = prepared.loaded.root, prepared.environ, prepared.redact
    for planned in planned_commands(prepared.chosen, redact).values():
        first = next(command for command in _commands(planned.suite).values() if command is not None)
        # What runs before a command might install its program.
        within = inside(planned.suite)
        program = absent_program(first, planned.suite, project, within) if planned.command == first else None
        if program:
            yield _without(planned.check, program, search_path(within.get("PATH", ""), project), environ, redact)


def others(prepared: Prepared, suites: Sequence[LoadedSuite], inside: Mapping[str, str]) -> Iterator[Check]:
    """That runs of suites find other programs than the user's shell, with the versions of both; where it is so.

    `inside` is the user's environment with what of PATH is within the reach of these runs, which have one level.
    """
    commands = [command for suite in suites for command in _commands(suite.resolved).values() if command is not None]
    firsts = [needed_program(command, suites[0].resolved) for command in commands]
    programs = dict.fromkeys([*filter(None, firsts), *ACTIONS])
    paths = [search_path(each.get("PATH", ""), prepared.loaded.root) for each in (prepared.environ, inside)]
    told = []
    for program in programs:
        usual, other = (shutil.which(program, path=path) for path in paths)
        if usual and other and os.path.realpath(usual) != os.path.realpath(other):
            said = f"{other} ({version_of(other)}) in the run, {usual} ({version_of(usual)}) in your shell"
            told.append(f"{Path(usual).name} is {said}")
    if told:
        closed = next((folder for entry in paths[0].split(os.pathsep) if (folder := barrier(Path(entry)))), None)
        names = tuple(suite.resolved.name for suite in suites)
        about, message = f"{len(told)} found elsewhere", f"{'; '.join(told)}."
        check = made(prepared.redact, "programs", "warning", about, message)
        yield check.replace(hint=way_out(closed) if closed else None, suites=names)


def version_of(program: str) -> str:
    """What a program says of its version, in a line."""
    try:
        said = process.answer([program, "--version"], timeout_seconds=VERSION_SECONDS)
    except (OSError, TimeoutError):
        return "of unknown version"
    lines = (said.stdout or said.stderr).decode("utf-8", "replace").strip().splitlines()
    return lines[0][:80] if said.exit_code == 0 and lines else "of unknown version"


def planned_commands(suites: Sequence[LoadedSuite], redact: Redactor) -> dict[str, Planned]:
    """Each distinct command, setup first and tests last, by what it is known by among those with the same setup."""
    found: dict[str, Planned] = {}
    for key in (SETUP, BUILD, TEST):
        for each in suites:
            suite, command, origin = each.resolved, _commands(each.resolved)[key], each.provenance.get(key)
            if command is None:
                continue
            about = command if isinstance(command, str) else shlex.join(command)
            check = made(redact, key, "passed", about).replace(origin=str(origin) if origin else None)
            # Tests depend on the build before them.
            name = json.dumps([key, command, suite.build_command if key == TEST else None])
            planned = found.setdefault(name, Planned(command, suite, check))
            planned.check = planned.check.replace(suites=(*planned.check.suites, suite.name))
    return found


def _commands(suite: ResolvedSuite) -> Mapping[str, Command | None]:
    judged = suite.metrics.is_on(Metric.FUNCTIONAL_CORRECTNESS)
    return {
        SETUP: suite.setup_command,
        BUILD: suite.build_command if judged else None,
        TEST: suite.test_command if judged else None,
    }
