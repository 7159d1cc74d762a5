"""Before anything is spent: what a run needs is tried once, without a session, and what it leaves out is said."""

import json
import os
import re
import secrets
import shlex
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
from pydantic import ValidationError

from zelda_ci import __version__, metrics, process
from zelda_ci.config.suites import LoadedSuite
from zelda_ci.domain.check import Check, CheckReport, Status
from zelda_ci.domain.details import CommandResult
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.numbers import format_count, some_of
from zelda_ci.domain.suite import Command, ResolvedSuite
from zelda_ci.domain.workspace import NamedContents, WorkspaceSource
from zelda_ci.errors import ConfigError, StorageError, WorkspaceError, ZeldaError
from zelda_ci.events import Checking, Emit, Warned, ignore
from zelda_ci.execution.outcome import of_api_error
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import make_below, write_whole
from zelda_ci.judge.base import models_of
from zelda_ci.judge.conversation import NO_CREDIT
from zelda_ci.metrics.base import Services
from zelda_ci.metrics.functional_correctness import FunctionalCorrectness, check_usable, ending, reasoning, weigh
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.pipeline.evaluation import WorkspaceCommandRunner
from zelda_ci.pipeline.fingerprints import IMAGE
from zelda_ci.pipeline.invocation import SETUP, Prepared
from zelda_ci.process import removal
from zelda_ci.redact import Redactor, SafeText
from zelda_ci.sandbox import levels
from zelda_ci.sandbox.confine import STRICT
from zelda_ci.sandbox.readable_paths import is_within_reach, unreachable
from zelda_ci.storage import codec
from zelda_ci.survey.folder import refused_settings
from zelda_ci.workspace.clean_checkout import CheckedOut
from zelda_ci.workspace.folder import program_folders, search_path
from zelda_ci.workspace.source import UNAVAILABLE

NOTHING_SPENT = "Nothing was run and nothing spent."
SKIP = f"{NOTHING_SPENT} `--no-check` (or ZELDA_NO_CHECK=1) runs without this check."
MODEL_SECONDS, COMMAND_SECONDS = 86_400.0, 7 * 86_400.0
MAX_REMEMBERED_BYTES = 100_000
MIN_FREE_BYTES, FEW_FREE_BYTES = 64 << 20, 1 << 30
MAX_NAMED, MAX_FILES = 5, 10
SUBMODULES = "Give actions/checkout `submodules: recursive`; elsewhere run `git submodule update --init --recursive`."
FETCH = "Fetch submodules with their history, and Git LFS files with `git lfs fetch` and the name of the other commit."
LFS = "Give actions/checkout `lfs: true`; elsewhere run `git lfs pull`."
# Of a command's last lines, beside the sentence about it.
MAX_PRINTED = 5
BUILD, TEST = "buildCommand", "testCommand"
# What the result of a command depends on beside the command; setup is one of them.
SURROUNDINGS: Mapping[str, Any] = {"execution": {"path", "env"}} | dict.fromkeys(
    ("setup_command", "shell", "isolation", "history_depth", "commands_see_suites", "command_timeout_seconds"), True
)
# A command among those with the same surroundings: its key, itself, and for tests the build before them.
Name = tuple[str, Command, Command | None]
# The first suite that has a command, and what is said of that where nothing speaks against it.
Planned = tuple[ResolvedSuite, Check]
# The way to the models, or why there is none: that is one finding among others.
Way = ModelProxy | ZeldaError


class Checker:
    """The checks of one invocation, whose sessions and judges have ways of their own to the models."""

    def __init__(self, prepared: Prepared, session: Way, judge: Way, emit: Emit) -> None:
        self._prepared, self._redact, self._emit = prepared, prepared.redact, emit
        self._fresh, self._only_commands, self._checks = False, False, list[Check]()
        self._ways, self._remembered = {"model": session, "judge": judge}, prepared.loaded.results_dir / "checks"

    async def alone(self, *, only_commands: bool) -> CheckReport:
        """Check without a run to follow: everything, whatever earlier checks found, and also where something fails.

        Commands only: no model is asked, and tests are tried even where the build does not succeed.
        """
        self._fresh, self._only_commands = True, only_commands
        async with AsyncExitStack() as stack:
            for way in self._ways.values():
                if isinstance(way, ModelProxy):
                    await stack.enter_async_context(way)
            return await self._report()

    async def check_first(self) -> dict[str, SafeText]:
        """Sentences on what fails already, by suite; raises `ConfigError` where no run could go well or as ordered."""
        report = await self._report()
        stop(report.failures, SKIP, code="CHECK_FAILED")
        if not self._prepared.order.despite_failing:
            failing = [check for check in report.warnings if check.failing]
            hint = f"Mend them first; or run all the same with --yes. {NOTHING_SPENT}"
            stop(failing, hint, code="FAILING_ALREADY")
        # Of the files that are not committed, and of the isolation, it is said in any case.
        for check in report.warnings:
            if check.subject not in {"git", "isolation"}:
                self._emit(Warned(sentence_of(check), output=_last_lines(check)))
        return report.failing

    async def _report(self) -> CheckReport:
        """Try everything, the cheapest first; before a run, only until something fails."""
        began = time.monotonic()
        try:
            source = await self._git()
            if source:
                self._disks()
                self._levels()
                for each in refused_settings(self._prepared.loaded.root, self._redact):
                    hint = "Correct it: in a session Claude Code says nothing of it."
                    self._add("settings", "warning", each.file, f"{each.file} is {each.effect}.", hint=hint)
            if not self._only_commands and self._goes_on:
                await self._models()
            if source and self._goes_on:
                await self._commands(source)
        finally:
            self._emit(Checking())
        checks = tuple(check.replace(seconds=round(check.seconds, 3)) for check in self._checks)
        return CheckReport(checks=checks, seconds=round(time.monotonic() - began, 3))

    @property
    def _goes_on(self) -> bool:
        return self._fresh or not any(check.status == "failed" for check in self._checks)

    def _add(self, subject: str, status: Status, about: str, message: str | None = None, **facts: object) -> None:
        self._checks.append(made(self._redact, subject, status, about, message, **facts))

    async def _git(self) -> WorkspaceSource | None:
        began = time.monotonic()
        try:
            source = await self._prepared.workspaces.inspect()
        except ZeldaError as problem:
            self._add("git", "failed", "the project", problem.message, hint=problem.hint)
            return None
        about, warning = "no repository", ""
        message = "There is no Git repository, so the folder is copied: ignored files and credentials stay behind."
        if source.commit:
            on = f" ({source.branch})" if source.branch else ""
            about = f"{'working tree on' if source.parent else 'commit'} {source.shown}{on}"
            message = warning = " ".join(about_the_tree(source))
        self._add("git", "warning" if warning else "passed", about, message, seconds=time.monotonic() - began)
        return source

    def _disks(self) -> None:
        """Check the room on the disk of the workspaces, and on that of the results where it is another."""
        places = (self._prepared.workspaces.location, self._prepared.loaded.root)
        for place in {place.stat().st_dev: place for place in reversed(places)}.values():
            free = shutil.disk_usage(place).free
            status: Status = "failed" if free < MIN_FREE_BYTES else "warning" if free < FEW_FREE_BYTES else "passed"
            hint = None if status == "passed" else "Make room, or set ZELDA_WORKSPACES to a folder on another disk."
            self._add("disk", status, f"{free / (1 << 30):,.1f} GiB free in {place}", hint=hint)

    def _levels(self) -> None:
        """Check how runs are confined, and whether they find the programs that they certainly need."""
        prepared, isolation, root = self._prepared, self._prepared.isolation, self._prepared.loaded.root
        for level in dict.fromkeys(map(isolation.of, prepared.suites)):
            suites = [suite for suite in prepared.chosen if isolation.of(suite.resolved) == level]
            message, names = levels.remark(level, isolation.offered), tuple(suite.resolved.name for suite in suites)
            self._add("isolation", "warning" if message else "passed", f"level {level}", message, suites=names)
            reaches = [partial(is_within_reach, base=prepared.workspaces.location)] if level == "uid" else []
            path = search_path(prepared.environ.get("PATH", ""), root, *reaches)
            for (_, command, _), (suite, check) in planned_commands(suites, self._redact).items():
                inside = os.pathsep.join([*map(str, program_folders(suite.execution, root)), path])
                # What runs before a command might install its program; and a trial shows by itself what is not there.
                is_certain = not self._fresh and command == next(iter(commands_of(suite).values()))
                if is_certain and (program := absent_program(command, suite, inside)):
                    self._checks.append(self._without(check, program, inside))

    def _without(self, check: Check, program: str, path: str, **facts: object) -> Check:
        """The check of a command whose program is missing: which one, where it was looked for, and how to get it."""
        why, hint = f"cannot be run: {program} is missing.", how_to_get(program, self._prepared.environ, path)
        message = self._redact(f"{check.subject} `{check.about}` {why} PATH in the run: {path}")
        failing = self._redact(f"{check.subject} {why}")
        return check.replace(status="failed", message=message, failing=failing, hint=hint, **facts)

    async def _models(self) -> None:
        """Ask each model once, however many suites need it at the same address."""
        asked: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for suite in self._prepared.suites:
            models = [("model", model) for model in (suite.execution.model, *suite.execution.extra_models)]
            judges = models_of(suite) if metrics.ask_judge(suite) else ()
            for subject, model in (*models, *(("judge", model) for model in judges)):
                way = self._ways[subject]
                address = way.address if isinstance(way, ModelProxy) else str(way)
                asked[address, model][subject].add(suite.name)
        found: dict[tuple[str, str], Check] = {}

        async def ask(key: tuple[str, str], subject: str) -> None:
            found[key] = await self._model(subject, key[1])

        async with anyio.create_task_group() as group:
            for key, subjects in asked.items():
                group.start_soon(ask, key, next(iter(subjects)))
        for key, subjects in asked.items():
            check = found[key].replace(suites=tuple(sorted(set().union(*subjects.values()))))
            self._checks.append(check)
            # One request for both, and yet only the session may be answered.
            if check.subject == "model" and subjects["judge"] and ONLY_CLAUDE_CODE in (check.message or ""):
                judged = tuple(sorted(subjects["judge"]))
                self._checks.append(check.replace(subject="judge", status="failed", hint=NO_JUDGE, suites=judged))

    async def _model(self, subject: str, model: str) -> Check:
        way = self._ways[subject]
        if isinstance(way, ZeldaError):
            return made(self._redact, subject, "failed", model, way.message, hint=way.hint)
        # The answers of models depend on the credentials.
        identity = "".join(secret.fingerprint() for secret in self._prepared.settings.secrets)
        file = self._file("model", way.address, model, identity)
        if known := self._recall(file, MODEL_SECONDS):
            return known
        check = await probed(subject, model, way, self._emit)
        # What was busy may answer in a moment.
        if check.status == "passed":
            self._remember(file, check)
        return check

    async def _commands(self, source: WorkspaceSource) -> None:
        """Try each command once, on the tested commit, in the sandbox, checkout and environment of a session's end."""

        def surroundings(each: LoadedSuite) -> str:
            suite, environ = each.resolved, self._prepared.environ
            variables = {name: environ.get(name) for name in ("PATH", *suite.execution.passed_on)}
            own = suite.model_dump(mode="json", include=SURROUNDINGS)
            return json.dumps([own, self._prepared.isolation.of(suite), variables])

        by_key = defaultdict[str, list[LoadedSuite]](list)
        for each in self._prepared.chosen:
            by_key[surroundings(each)].append(each)
        for key, suites in by_key.items():
            planned, found = planned_commands(suites, self._redact), dict[Name, Check]()
            # Without a commit nobody knows whether the files are the same.
            known_of = [name for name in planned if source.commit]
            files = {name: self._file(source.commit, source.contents.key, key, name) for name in known_of}
            for name, file in files.items():
                if known := self._recall(file, COMMAND_SECONDS):
                    _, check = planned[name]
                    found[name] = known.replace(suites=check.suites, origin=check.origin)
            unknown = planned.keys() - found.keys()
            # What others rest on is done again.
            tried = {name: each for name, each in planned.items() if unknown and (name in unknown or name[0] != TEST)}
            found |= await self._try(tried, suites) if tried else {}
            self._checks += (found[name] for name in planned if name in found)
            for name in tried.keys() & files.keys() & found.keys():
                self._remember(files[name], found[name])

    async def _try(self, planned: Mapping[Name, Planned], suites: Sequence[LoadedSuite]) -> dict[Name, Check]:
        """Try commands of suites with the same surroundings, setup first, in a workspace of their own."""
        workspaces, found = self._prepared.workspaces, dict[Name, Check]()
        try:
            await workspaces.sweep()  # of checks and runs that were killed
            async with workspaces.open(f"check-{secrets.token_hex(6)}", suites[0].resolved) as workspace:
                checked = await workspaces.check_out_again(workspace)
                for name, (suite, check) in planned.items():
                    needed = (SETUP, BUILD) if check.subject == TEST and not self._only_commands else (SETUP,)
                    before = ((key, commands_of(suite).get(key), None) for key in needed)
                    broken = next((it[0] for it in before if it in found and found[it].status != "passed"), None)
                    if broken:
                        why = self._redact(f"not tried, since {broken} did not succeed")
                        found[name] = check.replace(status="skipped", message=why)
                    else:
                        found[name] = await self._tried(name[1], suite, check, checked)
        except ZeldaError as problem:
            # No command could be tried at all; of a setting that is to blame, the message names the key first.
            origin = suites[0].provenance.get(problem.message.partition(":")[0])
            facts = {"hint": problem.hint, "origin": str(origin) if origin else None}
            names = tuple(suite.resolved.name for suite in suites)
            self._add("workspace", "failed", "a copy of the project", problem.message, suites=names, **facts)
        return found

    async def _tried(self, command: Command, suite: ResolvedSuite, check: Check, checked: CheckedOut) -> Check:
        key, redact, workspace = check.subject, self._redact, checked.workspace
        details, path = None, workspace.confinement.environment.get("PATH", "")
        self._emit(Checking(f"{key} {check.about}"))
        commands = WorkspaceCommandRunner(self._prepared.workspaces, None, ignore)
        metric = FunctionalCorrectness(Services(commands, redact))
        try:
            if key == SETUP:
                done: CommandResult | None = (await commands.set_up_again(checked, suite)).in_brief(redact)
            elif key == BUILD:
                done = await metric.build(suite, workspace)
            else:
                suite = suite.replace(build_command=None)
                evidence = await metric.test(suite, workspace, None)
                done, (_, details) = evidence.test, weigh(suite, evidence)
            if done is None:
                return check
            missing = missing_program(done.output)
            if missing and done.exit_code != 0:
                return self._without(check, missing, path, output=done.output, seconds=done.seconds)
            if key == SETUP:
                check_usable(key, done, workspace.confinement.environment)
        except (ConfigError, WorkspaceError) as problem:
            if program := absent_program(command, suite, path):
                return self._without(check, program, path)
            return check.replace(status="failed", message=redact(problem.message), hint=problem.hint)
        passed, why = done.exit_code == 0, f"{key} {ending(suite, done)}."
        if details:
            passed, why = bool(details.passed), reasoning(details)
        if passed and missing and key != SETUP:
            passed, why = False, f"{key} {ending(suite, done)}, but {missing} is missing."
        if passed:
            return check.replace(seconds=done.seconds, message=redact(why) if details else None)
        known = {"seconds": done.seconds, "failing": redact(why), "output": done.output}
        if key == SETUP:
            message = f"{key} `{check.about}` {ending(suite, done)}. PATH in the run: {path}"
            hint = "Correct setupCommand, or what it needs."
            return check.replace(status="failed", message=redact(message), hint=hint, **known)
        # That the project's own tests fail may be what the suite is about.
        why = f"{why} That is right only for a suite whose task is to mend it."
        message = redact(f"on the tested commit, before any session: {why}")
        return check.replace(status="warning", message=message, **known)

    def _recall(self, file: Path, max_seconds: float) -> Check | None:
        """Read what an earlier run found, so that nobody pays for the same again, unless that is too long ago."""
        with suppress(OSError, ValidationError):
            # One of the future was made before the clock was set back.
            if not self._fresh and 0 <= time.time() - file.lstat().st_mtime <= max_seconds:
                found = Check.model_validate_json(untrusted.read(file, MAX_REMEMBERED_BYTES))
                return found.replace(remembered=True, cost_usd=0.0)
        return None

    def _remember(self, file: Path, check: Check) -> None:
        """Keep a check that stops nothing; where that is not possible, the next run checks again."""
        if check.status in {"passed", "warning"}:
            with suppress(StorageError, OSError):
                make_below(self._remembered.parent, self._remembered)
                write_whole(file, [codec.encode(check)], durable=False)
                for old in removal.older_than(self._remembered, COMMAND_SECONDS):
                    old.unlink(missing_ok=True)

    def _file(self, *parts: object) -> Path:
        """The file of a check, named by a digest of all that the check depends on."""
        key = json.dumps([__version__, *parts]).encode("utf-8", "surrogateescape")
        return self._remembered / f"{sha256(key).hexdigest()[:32]}.json"


def made(
    redact: Redactor, subject: str, status: Status, about: str, message: str | None = None, **facts: object
) -> Check:
    """A check whose texts are masked."""
    check = Check(subject=subject, status=status, about=redact(about), message=redact(message) if message else None)
    return check.replace(**facts)


def planned_commands(suites: Sequence[LoadedSuite], redact: Redactor) -> dict[Name, Planned]:
    """Each distinct command, setup first and tests last, by its name among those with the same setup."""
    found: dict[Name, Planned] = {}
    for key in (SETUP, BUILD, TEST):
        for each in suites:
            suite, command, origin = each.resolved, commands_of(each.resolved).get(key), each.provenance.get(key)
            if command is None:
                continue
            about = command if isinstance(command, str) else shlex.join(command)
            check = made(redact, key, "passed", about, origin=str(origin) if origin else None)
            # Tests depend on the build before them.
            name = (key, command, suite.build_command if key == TEST else None)
            first, known = found.get(name, (suite, check))
            found[name] = first, known.replace(suites=(*known.suites, suite.name))
    return found


def commands_of(suite: ResolvedSuite) -> Mapping[str, Command]:
    """Commands that runs of a suite start, by key, in their order."""
    known = {SETUP: suite.setup_command}
    if suite.metrics.is_on(Metric.FUNCTIONAL_CORRECTNESS):
        known |= {BUILD: suite.build_command, TEST: suite.test_command}
    return {key: command for key, command in known.items() if command is not None}


# Of the API's answers: what a wait may mend.
BUSY = {408, 409, 429}
ONLY_CLAUDE_CODE = "only authorized for use with Claude Code"
NO_JUDGE = "A judge cannot use a subscription: set ANTHROPIC_API_KEY, or gatewayUrl with PORTKEY_API_KEY."
HINT = "Check the key, its address, and execution.model or judgeModel: clouds and gateways have names of their own."


async def probed(subject: str, model: str, proxy: ModelProxy, emit: Emit) -> Check:
    """The check of a model, by the smallest request to it."""
    about = f"{subject} {model}"
    emit(Checking(about))
    began = time.monotonic()
    probe = await proxy.probe(model, lambda why: emit(Checking(proxy.redact(f"{about}: {why}"))))
    said = f"HTTP {probe.status}: {probe.message.rstrip('.')}"
    status: Status = "failed"
    message, hint = f"{probe.message}.", None
    if probe.status == 200:
        status, message = "passed", ""
    elif probe.status is None:
        hint = "Check ANTHROPIC_BASE_URL (or gatewayUrl), the network and HTTPS_PROXY."
    elif probe.status in BUSY or probe.status >= 500:
        status, message = "warning", f"no answer now ({said}); a session would try again for a while."
    elif ONLY_CLAUDE_CODE in probe.message and subject == "model":
        why = "the token is for Claude Code alone, so it cannot be tried without a session"
        status, message = "warning", f"{why} ({said})."
    else:
        is_unpaid = probe.status == 402 or NO_CREDIT in probe.message
        _, sentence = of_api_error(probe.status, "billing_error" if is_unpaid else None) or ("", "")
        message, hint = f"{sentence} {said}.", NO_JUDGE if ONLY_CLAUDE_CODE in probe.message else HINT
    facts = {"hint": hint, "seconds": time.monotonic() - began, "cost_usd": probe.cost_usd}
    return made(proxy.redact, subject, status, model, message, **facts)


async def check_judges(suites: Sequence[ResolvedSuite], proxy: ModelProxy, emit: Emit) -> None:
    """Ask each judge of these suites for one token; raises `ConfigError` where one does not answer."""
    models = dict.fromkeys(model for suite in suites if metrics.ask_judge(suite) for model in models_of(suite))
    report = CheckReport(checks=tuple([await probed("judge", it, proxy, emit) for it in models]), seconds=0)
    emit(Checking())
    stop(report.failures, SKIP, code="CHECK_FAILED")
    for check in report.warnings:
        emit(Warned(sentence_of(check)))


def stop(checks: Sequence[Check], hint: str, *, code: str) -> None:
    """Raise `ConfigError` with what keeps runs from beginning, if anything does."""
    lines = [line for check in checks for line in (sentence_of(check), _last_lines(check)) if line]
    hints = dict.fromkeys(check.hint for check in checks if check.hint)
    if lines:
        raise ConfigError("\n".join(lines), hint="\n".join([*hints, hint]), code=code)


def sentence_of(check: Check) -> str:
    """Sentence on a check that did not go well: where, what and why."""
    # A command's message names it already.
    return f"{check.origin or f'{check.subject} {check.about}'}: {check.message or 'failed'}"


def _last_lines(check: Check) -> str:
    return "\n".join((check.output or "").splitlines()[-MAX_PRINTED:])


def about_the_tree(source: WorkspaceSource) -> Iterator[str]:
    """What is not tested, and how it would be."""
    if source.changed and not source.parent:
        count = format_count(len(source.changed), "uncommitted file")
        listing = some_of(source.changed, MAX_FILES)
        yield f"{count} will not be tested, since a commit is: {listing}. Commit what matters."
    if source.left_out:
        listing = some_of(source.left_out, MAX_FILES)
        yield f"Left out of the working tree, since credentials may be in them: {listing}. Commit what is none."
    yield from about_contents(source.contents)


def about_contents(contents: NamedContents) -> Iterator[str]:
    """What of them no session sees, and how it would."""
    if absent := contents.submodules.missing:
        yield f"{_lacking(absent, 'submodule', ', so sessions find empty folders')} {SUBMODULES}"
    if absent := contents.lfs.missing:
        yield f"{_lacking(absent, 'file', ' of Git LFS, so sessions find pointers')} {LFS}"
    if contents.changed:
        count, listing = format_count(len(contents.changed), "submodule"), some_of(sorted(contents.changed), MAX_NAMED)
        what = f"What is changed in {count} will not be tested, but the commit that the project names"
        yield f"{what}: {listing}. Commit what matters there and in the project."


def check_fair(base: NamedContents, head: NamedContents) -> None:
    """Raise `WorkspaceError` where a side would be tested without what the other has; what neither has is fair."""
    found = []
    for noun, old, new in (("submodule", base.submodules, head.submodules), ("Git LFS file", base.lfs, head.lfs)):
        if not new.missing or new.present or old.present:
            lost = {path: why for path, why in old.missing.items() if path not in new.missing}
            new_lost = {path: why for path, why in new.missing.items() if path in old.present}
            found += [_lacking(lost, noun, " of the base commit")] if lost else []
            found += [_lacking(new_lost, noun, " of the tested commit that the base has")] if new_lost else []
    if found:
        raise WorkspaceError(f"It would not be a fair comparison. {' '.join(found)}", hint=FETCH, code=UNAVAILABLE)


def _lacking(paths: Mapping[str, str], noun: str, more: str) -> str:
    """The first of what the checkout lacks, each with the reason where there is a special one, in a sentence."""
    listing = some_of([f"{path} ({why})" if why else path for path, why in sorted(paths.items())], MAX_NAMED)
    return f"The checkout lacks {format_count(len(paths), noun)}{more}: {listing}."


ANSWER_SECONDS = 10
# Of what a command printed: the lines that say why it ended.
LAST_LINES = 4
NAME = r"\W?(?P<name>[\w./+@-]+)\W?"
# How shells, `make` and Python say that a program is missing, where another ends with a code of its own.
MISSING = (
    re.compile(rf"^(?:\S+: )?(?:line )?(?:\d+: )?{NAME}: (?:command )?not found$"),
    re.compile(rf"command not found: {NAME}$"),
    re.compile(rf"^(?:make(?:\[\d+\])?|env): {NAME}: No such file or directory$"),
    # What make says of a bare name where PATH leads into a folder that is closed to the run.
    re.compile(r"^make(?:\[\d+\])?: (?P<name>[\w.+@-]+): Permission denied$"),
    re.compile(rf"^\S*python\S*: No module named {NAME}$"),
)
# Nothing but words, of which the first may be a program: no path, assignment, variable, quote or operator.
PLAIN = re.compile(r"\s*\w[\w.+-]*([ \t]+[\w./:,=@%+-]+)*\s*")
# What sets a program up in a workflow; the others are on GitHub's runners already, or have no action that is known.
ACTIONS: Mapping[str, str] = {
    **dict.fromkeys(("node", "npm", "npx", "corepack", "yarn", "pnpm"), "actions/setup-node"),
    **dict.fromkeys(("go", "gofmt"), "actions/setup-go"),
    **dict.fromkeys(("java", "javac", "mvn", "gradle"), "actions/setup-java"),
    **dict.fromkeys(("python", "python3", "pip", "pip3"), "actions/setup-python"),
    "dotnet": "actions/setup-dotnet",
    **dict.fromkeys(("ruby", "bundle", "gem", "rake"), "ruby/setup-ruby"),
    **dict.fromkeys(("uv", "uvx"), "astral-sh/setup-uv"),
}


def missing_program(output: str) -> str | None:
    """The program that the last lines of an output call missing."""
    lines = reversed(output.rstrip().splitlines()[-LAST_LINES:])
    found = (match for line in lines for pattern in MISSING if (match := pattern.search(line.strip())))
    return next((match["name"] for match in found), None)


def absent_program(command: Command, suite: ResolvedSuite, path: str) -> str | None:
    """The program that a command certainly needs and `path` has not; in doubt none, as the command is tried anyway."""
    words = command.split() if isinstance(command, str) else command
    program = words[0] if words else ""
    if not PLAIN.fullmatch(program if isinstance(command, tuple) else command) or shutil.which(program, path=path):
        return None
    if isinstance(command, str):
        # A shell of the suite's own may know any word; each knows some without a file.
        if suite.shell not in {None, *STRICT} or "BASH_ENV" in suite.execution.env:
            return None
        # That of the system: in PATH there may be programs of the tested tree, which are not to be started here.
        shell = shutil.which(str(suite.shell or "bash"), path=os.defpath) or "/bin/sh"
        ask = [shell, "-c", 'type "$0"', program]
        with suppress(OSError, TimeoutError):
            said = process.answer(ask, timeout_seconds=ANSWER_SECONDS, cwd=Path("/"), environment={"PATH": path})
            return None if said.exit_code == 0 else program
    return program


def how_to_get(program: str, environ: Mapping[str, str], inside: str) -> str:
    """What helps where a program is missing: `environ` tells where Zelda itself runs, `inside` is PATH of the run."""
    found = shutil.which(program, path=environ.get("PATH", ""))
    closed = unreachable(Path(found)) if found else None
    if found and closed and str(Path(found).parent) not in inside.split(os.pathsep):
        return closed
    action, ways = ACTIONS.get(program), "or let setupCommand install it"
    in_workflow = environ.get("GITHUB_ACTIONS") == "true"
    if environ.get(IMAGE) and in_workflow:
        after = f"after {action}" if action else "where the runner has it or an earlier step installs it"
        how = f"use zelda-ci/zelda-ci/runner in its place, {after}; make an image of your own from ours"
        return f"The container action has no {program}: {how} (docs/action.md#toolchains), {ways}."
    if environ.get(IMAGE):
        return f"The image has no {program}: make one of your own from it (examples/image/Dockerfile), {ways}."
    if in_workflow:
        return f"This runner has no {program}: put {action or 'a step that installs it'} before this step, {ways}."
    return f"Install {program} where PATH leads, {ways}."
