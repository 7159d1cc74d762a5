"""Isolated copies of a project: made, measured, removed. Nothing outside them changes, whatever a session does."""

import os
import shlex
import shutil
import time
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import anyio
import anyio.to_thread

from zelda_ci import process
from zelda_ci.domain.details import CommandResult
from zelda_ci.domain.numbers import some_of
from zelda_ci.domain.suite import Command, ResolvedSuite
from zelda_ci.domain.workspace import Changes, CommandPhase, Confinement, SuiteFinder, Workspace, WorkspaceSource
from zelda_ci.errors import WorkspaceError, ZeldaError
from zelda_ci.files import temporary
from zelda_ci.process import Launch, OutputBuffer, followed
from zelda_ci.redact import Redactor, SafeText
from zelda_ci.sandbox import confine, levels, readable_paths, run_folder, users
from zelda_ci.sandbox.confine import Isolation, Needs
from zelda_ci.sandbox.readable_paths import PrivateFolders
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace import clean_checkout, folder, git, snapshot, source, store, units
from zelda_ci.workspace.changes import OpenRun, StagedTree, find_changes, read_stamps, stage_tree, write_patch
from zelda_ci.workspace.clean_checkout import CheckedOut, spec
from zelda_ci.workspace.contents import ContentsFinder
from zelda_ci.workspace.folder import build_environment, choose_location, project_folder, project_folders
from zelda_ci.workspace.git import Git, TreeFile, explained
from zelda_ci.workspace.source import BaseOrder, Project
from zelda_ci.workspace.units import Variant

# Of a command's output, what its result and its log keep: half from its head, half from its tail.
KEPT_BYTES = 400_000
MAX_NAMED = 20
MAX_REASON_LENGTH = 500
RESTORED = "Protected files that an earlier command had changed were restored before this one"
NOWHERE = "The working folder is gone, or something else stands in its place."


class Workspaces:
    """The workspaces of one project, as the first look found it.

    They hold the last commit; another one, where it is given as `base`; or the files as they are. Methods raise
    `WorkspaceError` where it cannot be tested, or where something could not be made.
    """

    def __init__(
        self,
        project: Path,
        results_dir: Path,
        environ: Mapping[str, str],
        redact: Redactor,
        isolation: Isolation | None = None,
        finder: SuiteFinder | None = None,
        *,
        working_tree: bool = False,
        base: BaseOrder | None = None,
    ) -> None:
        self._working_tree, self._base, self._environ, self._redact = working_tree, base, environ, redact
        self._of: tuple[Workspaces, Variant] | None = None
        self.project = Path(os.path.realpath(project))
        results = self.project / results_dir
        self._results = Path(os.path.realpath(results.parent)) / results.name
        self._finder, self._own = finder, finder.from_disk if finder else ()
        self._isolation = isolation or Isolation(levels.probe(environ))
        self._lock = anyio.Lock()
        self._inspected: Project | None = None
        self._open: dict[Path, OpenRun] = {}

    @cached_property
    def location(self) -> Path:
        """The folder below which workspaces are made."""
        return choose_location(self.project, self._environ, passable=self._isolation.offered.level == "uid")

    @cached_property
    def _git(self) -> Git:
        return git.prepare(self.location, self._environ, self._redact)

    def varied(self, variant: Variant) -> "Workspaces":
        """Those of the same files with something changed."""
        other = copy(self)
        other._of, other._inspected, other._lock, other._open = (self, variant), None, anyio.Lock(), {}  # noqa: SLF001
        return other

    async def inspect(self) -> WorkspaceSource:
        """What is tested: settled by the first call."""
        return (await self._inspect()).source

    async def _inspect(self) -> Project:
        async with self._lock:
            if self._inspected is None:
                with explained(self.location):
                    self._inspected = await self._found()
        return self._inspected

    async def _found(self) -> Project:
        whole, variant = self._of or (None, None)
        if whole:
            project = await whole._inspect()  # noqa: SLF001
        else:
            project = await source.inspect(self.project, self._results, self._git, self._environ, own=self._own)
        place, number = folder.claim(self._home(project), folder.TREES)
        weakref.finalize(self, _release, place, number)
        if variant:
            project = await units.vary(project, variant, place / "variant", self._git)
        elif self._base:
            project = await source.at_commit(project, self._base, place / "base", self._git)
        elif self._working_tree or project.source.commit is None:
            places = self._results, place / "tree"
            project = await snapshot.of_files(project, *places, self._git, self._environ, self._own)
        is_base = self._base is not None
        finder = ContentsFinder(place, self._git, self._environ, self._finder, self._working_tree, is_base)
        project = await finder.find(project)
        source.check_folder(project, is_base=is_base)
        return project

    async def tested(self) -> tuple[Project, Git]:
        """What is tested, and git that reads it."""
        project = await self._inspect()
        return project, git.borrowing(self._git, project.objects)

    async def session_files(self) -> frozenset[TreeFile]:
        """The files that sessions find: two states of one repository with equal ones are the same to them."""
        project, finder = await self._inspect(), self._finder
        files = store.tested_files(project, {(project.prefix / name).as_posix() for name in self._own})
        return frozenset(file for file in files if not (finder and finder.reads(file.path.rpartition("/")[2])))

    @asynccontextmanager
    async def open(self, run_id: str, suite: ResolvedSuite, socket: Path | None = None) -> AsyncIterator[Workspace]:
        """A workspace of the tested state; on leaving it is gone, with every process that was started in it."""
        # The socket is the model proxy's, for sandboxes without a network.
        self._isolation.of(suite)
        project = await self._inspect()
        home, whole = self._home(project), None
        async with AsyncExitStack() as stack:
            with explained(self.location):
                run = await stack.enter_async_context(folder.claimed(home, run_id))
                visible = store.borrowed(home, project, self._git, suite.history_depth, self._finder)
                start = await stack.enter_async_context(visible)
                if suite.commands_see_suites:
                    whole = await stack.enter_async_context(store.borrowed(home, project, self._git))
                await store.add_worktree(run, project, start, self._git)
                store.make_folder(run.root, project.prefix)
                index, written = run.session_index.read_bytes(), run.session_index.stat().st_mtime_ns
                needs = await anyio.to_thread.run_sync(self._needs, suite, start.objects, socket)
                if needs.level == "uid":
                    needs = replace(needs, uid=await stack.enter_async_context(users.borrowed(self.location)))
                opened = OpenRun(run, project, suite, needs, stack, start, whole, index, written)
                confinement = await self._confine(opened, run, needs)
                notes = [*project.notes, *start.notes, *confine.notes(suite, confinement.environment)]
            self._open[run.path] = opened
            places = run.path, run.root, run.root / project.prefix, run.home, run.tmp, run.git_dir
            safe = tuple(map(self._redact, notes))
            try:
                yield Workspace(run_id, *places, start.commit, project.source, confinement, notes=safe)
            finally:
                del self._open[run.path]
                self._open.pop(run.path / clean_checkout.NAME, None)

    def _needs(self, suite: ResolvedSuite, objects: Path, socket: Path | None) -> Needs:
        private = PrivateFolders.of(self.project, self.location, self._environ)
        readable_paths.check_readable(suite, private)
        return Needs(
            level=self._isolation.of(suite),
            settings=suite.isolation,
            private=private,
            programs=self._isolation.programs,
            objects=[objects],
            given=frozenset(suite.execution.variables),
            socket=socket,
        )

    async def _confine(self, run: OpenRun, place: WorkspaceFolder, needs: Needs) -> Confinement:
        """Say how programs are started in a folder of the run, and hand it to the run's user."""
        tested, execution = place.root / run.project.prefix, run.suite.execution
        about = self._environ, execution, tested, needs.reaches, run.folder.path
        variables = build_environment(place, self.project, *about)
        confinement = await anyio.to_thread.run_sync(confine.confine, place, variables, needs)
        if needs.uid is not None:
            await anyio.to_thread.run_sync(users.chown_to_run_user, place, self.location, needs.objects, needs.uid)
        return confinement

    def _home(self, project: Project) -> Path:
        """The project's folder among the workspaces."""
        return project_folder(self.location, project.repository.common_dir)

    def tested_files(self, workspace: Workspace) -> store.TestedFiles:
        """The tested tree as it was before anything ran."""
        run = self._open[workspace.base]
        git, prefix = self._git.within(run.store.folder, GIT_DIR=str(run.store.folder)), run.project.prefix
        files = [*store.tested_files(run.project, run.store.withheld.paths)]
        whole = [*store.tested_files(run.project, ())] if run.whole else []
        return store.TestedFiles(files, whole, git, "" if prefix == Path() else prefix.as_posix())

    async def remember(self, workspace: Workspace) -> None:
        """Note the files that setup has left: what is different later, the session did."""
        run = self._open[workspace.base]
        run.before = await anyio.to_thread.run_sync(read_stamps, workspace.root, abandon_on_cancel=True)

    async def _stage(self, run: OpenRun) -> StagedTree:
        # In a folder that no session has ever seen.
        scratch = await run.stack.enter_async_context(folder.claimed(self._home(run.project)))
        return await stage_tree(run, scratch.path, self._git)

    async def changes(self, workspace: Workspace, patch: Path) -> Changes:
        """Write to `patch` what the session changed, committed or not."""
        # The work tree counts: what lies only in a stash or on a branch that is not checked out does not.
        run = self._open[workspace.base]
        with explained(self.location):
            run.staged = await self._stage(run)
            summary = await write_patch(run.staged, patch, self._redact)
            keep = spec(run.suite.keep_ignored, run.project.prefix.as_posix())
            ignored = await anyio.to_thread.run_sync(find_changes, run, run.staged, keep, self._redact)
        return summary.replace(ignored=ignored)

    async def check_out_again(self, workspace: Workspace) -> CheckedOut:
        """A fresh checkout of what the session changed, but of protected files; it is gone with the workspace."""
        # It is of the state of which `changes` wrote the patch, where it did.
        run = self._open[workspace.base]
        if run.needs.uid is not None:
            # Elsewhere the system's temporary folders are the checkout's own, or closed.
            await anyio.to_thread.run_sync(users.remove_leftovers, run.needs.uid)
        with explained(self.location):
            checked = await clean_checkout.check_out(workspace, run, run.staged or await self._stage(run), self._git)
            place = WorkspaceFolder(checked.workspace.base, run.folder.number)
            confinement = await self._confine(run, place, replace(run.needs, socket=None))
        self._open[place.path] = replace(run, folder=place, restore=checked.protected.restore)
        return replace(checked, workspace=replace(checked.workspace, confinement=confinement))

    async def bring_ignored(self, workspace: Workspace, checked: CheckedOut) -> None:
        """Move ignored files that the suite wants build and tests to find from the session's tree to the fresh one."""
        kept = [path for path in self._open[workspace.base].kept if not checked.protection.match_file(path)]
        await anyio.to_thread.run_sync(checked.protected.bring, workspace.root, kept)

    async def run_command(
        self,
        workspace: Workspace,
        command: Command,
        timeout_seconds: float,
        *,
        phase: CommandPhase = "test",
        buffer: OutputBuffer | None = None,
        keep: Callable[[CommandResult], None] = lambda _: None,
    ) -> CommandResult:
        """Run a command of the suite in the workspace, without input, to its end or its deadline.

        The result has head and tail of what it printed; a larger `buffer` keeps more of it. It is given to `keep` in a
        thread, and on cancellation what is known of it. An error that is not of `keep` says nothing of the code: the
        command could not be started as it must be, or nobody saw its end.
        """
        run = self._open[workspace.base]
        label = self._redact(command if isinstance(command, str) else shlex.join(command))
        if not run_folder.is_there(workspace.path):
            notice = self._redact(NOWHERE)
            done = CommandResult(command=label, exit_code=1, seconds=0, output=notice, output_bytes=len(notice))
            keep(done)
            return done
        confinement, status_file = workspace.confinement, workspace.status_file(phase)
        argv = confine.arguments(command, run.suite, confinement.environment)
        with explained(self.location), followed(status_file) as read_status:
            restored = await anyio.to_thread.run_sync(run.restore) if run.restore else []
            printed, started = buffer or OutputBuffer(KEPT_BYTES), time.monotonic()

            def result(exit_code: int | None, *, timed_out: bool = False) -> CommandResult:
                output, truncated = printed.text(self._redact, KEPT_BYTES)
                return CommandResult(
                    command=label,
                    exit_code=exit_code,
                    timed_out=timed_out,
                    seconds=time.monotonic() - started,
                    output=output,
                    output_bytes=printed.total,
                    truncated=truncated,
                )

            words, variables = confinement.command(argv, phase=phase, status_file=status_file), confinement.environment
            try:
                exit_code = await process.run(words, workspace.path, variables, timeout_seconds, printed.feed)
            except anyio.get_cancelled_exc_class():
                with suppress(ZeldaError):
                    keep(result(None))
                raise
            launch = read_status()
        # Masking the output may take a while, and others stream meanwhile.
        done = await anyio.to_thread.run_sync(lambda: result(exit_code, timed_out=exit_code is None))
        limit = self.limit(workspace)
        _check_launch(launch, done, phase, limit)
        notes = [*([f"{RESTORED}: {some_of(restored, MAX_NAMED)}"] if restored else ()), *([limit] if limit else ())]
        if notes:
            done = done.replace(output=self._redact("\n".join([done.output.rstrip(), *notes, ""])))
        await anyio.to_thread.run_sync(keep, done)
        return done

    def limit(self, workspace: Workspace) -> SafeText | None:
        """Which bound the processes that ran last have reached, in a sentence; told once."""
        sentence = self._open[workspace.base].folder.limit()
        return self._redact(sentence) if sentence else None

    async def sweep(self) -> tuple[str, ...]:
        """Remove what dead Zelda processes left, of this project and of others; returns the ids of those runs."""
        with explained(self.location):
            swept = list[str]()
            for home in project_folders(self.location):
                swept += await folder.sweep(home)
                await store.prune(home)
            await anyio.to_thread.run_sync(users.sweep, self.location)
            await anyio.to_thread.run_sync(temporary.sweep)
        return tuple(swept)


def _check_launch(launch: Launch, result: CommandResult, phase: CommandPhase, limit: str | None) -> None:
    """Raise WorkspaceError where a command never began, or its supervisor did not live to see its end."""
    note = limit or " ".join(result.output.split())[:MAX_REASON_LENGTH]
    if not launch.begun:
        how = "in time" if result.timed_out else f"(exit code {result.exit_code})"
        why = f"because it could not be confined {how}: {note or 'no reason was given'}"
        hint = "This is no failure of the code. `zelda check` says which isolation there is, and what is missing."
        raise WorkspaceError(f"The {phase} command did not run, {why}", hint=hint, code="COMMAND_NOT_CONFINED")
    if not result.timed_out and launch.exit_code != result.exit_code:
        why = f"its supervisor was ended (code {result.exit_code}). {note}"
        hint = "See whether memory ran out, or whether the command kills processes that are not its own."
        message = f"How the {phase} command ended is not known: {why}"
        raise WorkspaceError(message, hint=hint, code="SUPERVISOR_LOST")


def _release(place: Path, number: int) -> None:
    """Remove a folder that nobody needs any more; without this end, the next sweep does it."""
    shutil.rmtree(place, ignore_errors=True)
    os.close(number)
