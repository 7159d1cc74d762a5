"""What setup of a workspace has installed: put back from an earlier run, or kept for later ones."""

import logging
import os
import secrets
import shlex
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import anyio.to_thread

from zelda_ci.domain.suite import Command
from zelda_ci.domain.test_run import CommandResult
from zelda_ci.errors import StorageError
from zelda_ci.redact import Redactor
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace import setup_cache
from zelda_ci.workspace.git import explained
from zelda_ci.workspace.setup_cache import SetupStamps

PACKING_SECONDS = 300.0

log = logging.getLogger(__name__)


class RunCommand(Protocol):
    """Runs a command confined as the run is, without a network."""

    def __call__(self, command: Command, timeout_seconds: float, /) -> Awaitable[CommandResult]: ...


@dataclass(frozen=True)
class KeptSetup:
    """One workspace and its key. Packing and unpacking happen inside the sandbox: nothing there leads out of it."""

    folder: WorkspaceFolder
    cache: Path
    key: str
    uid: int | None
    run: RunCommand
    redact: Redactor

    async def restore(self, command: Command, timeout_seconds: float) -> CommandResult | None:
        """Put back what setup has installed in an earlier run, as its result; nothing where that is not known.

        Raises:
            WorkspaceError: There is no room, or nothing can be run there.
        """
        began, archive = time.monotonic(), self._file("tar")
        with explained():
            brought = await anyio.to_thread.run_sync(setup_cache.bring, self.cache, self.key, archive)
        if not brought:
            return None
        if self.uid is not None:
            os.chown(archive, self.uid, self.uid, follow_symlinks=False)
        done = await self.run(setup_cache.unpacking(archive, self.folder.path), timeout_seconds)
        archive.unlink(missing_ok=True)
        if done.exit_code != 0:
            log.info("What setup had installed could not be put back: %s", done.output)
            return None
        label = self.redact(command if isinstance(command, str) else shlex.join(command))
        told = self.redact(f"Put back what `{label}` had installed: nothing that it depends on has changed.\n")
        seconds = time.monotonic() - began
        return CommandResult(command=label, exit_code=0, seconds=seconds, output=told, output_bytes=len(told))

    async def before(self) -> SetupStamps:
        """The state in which setup finds the workspace."""
        return await anyio.to_thread.run_sync(SetupStamps.of, self.folder, abandon_on_cancel=True)

    async def keep(self, before: SetupStamps) -> None:
        """Keep what setup has installed since. Only before any session has run in the workspace."""
        tops = await anyio.to_thread.run_sync(before.added, self.folder, abandon_on_cancel=True)
        if tops is None:
            log.info("What setup has installed is not kept: it changed files of the commit or the repository")
            return
        archive, listing = self._file("tar"), self._file("list")
        try:
            await anyio.to_thread.run_sync(setup_cache.list_entries, listing, tops, self.uid)
            done = await self.run(setup_cache.packing(archive, self.folder.path, listing), PACKING_SECONDS)
            if done.exit_code == 0:
                await anyio.to_thread.run_sync(setup_cache.keep, self.cache, self.key, archive)
            else:
                log.info("What setup has installed is not kept: %s", done.output)
        except (OSError, StorageError) as problem:  # the run does not depend on it
            log.info("What setup has installed is not kept: %s", problem)
        finally:
            for file in (archive, listing):
                file.unlink(missing_ok=True)

    def _file(self, kind: str) -> Path:
        return self.folder.tmp / f"setup-{secrets.token_hex(8)}.{kind}"
