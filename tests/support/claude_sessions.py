"""Sessions of the real Claude Code CLI in a small git repository, for tests of everything that leads or reads them."""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import anyio

from tests.support.patience import PATIENCE
from zelda_ci.domain.session import SessionRecord
from zelda_ci.domain.suite import ExecutionSettings, IsolationLevel, IsolationSettings
from zelda_ci.domain.workspace import Confinement, Workspace, WorkspaceSource
from zelda_ci.execution.claude_code import Listen, run_session
from zelda_ci.execution.launch import Pins, SessionRequest, find_cli
from zelda_ci.execution.outcome import SessionOutcome
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.wire import CassetteState
from zelda_ci.redact import Redactor, Secret
from zelda_ci.sandbox import levels
from zelda_ci.sandbox.confine import Needs, confine
from zelda_ci.sandbox.readable_paths import PrivateFolders
from zelda_ci.sandbox.run_folder import WorkspaceFolder

R = TypeVar("R")

TOKEN = "sk-ant-fake-token-of-this-run"
MARKER = "TEST_WORKSPACE"
IDENTITY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Zelda Test"), ("EMAIL", "zelda@example.com"))
}


def make_workspace(
    folder: Path,
    files: Mapping[str, str | Path] | None = None,
    *,
    level: IsolationLevel | None = None,
    readable: Sequence[Path] = (),
) -> Workspace:
    """A workspace whose worktree is a repository of one commit that holds `files`: texts, and links."""
    base = folder / "run with space"
    root = base / "ws"
    for part in (root, base / "home", base / "tmp"):
        part.mkdir(parents=True)
    for name, content in {"README.md": "# Sample\n", **(files or {})}.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            target.symlink_to(content)
        else:
            target.write_text(content)
    environment = _environment(base / "home")
    _git(root, environment, "init", "--quiet", "--initial-branch=main")
    _git(root, environment, "add", "--all")
    _git(root, environment, "commit", "--quiet", "--message=start")
    return Workspace(
        run_id="sample-2026-01-01T00-00-00",
        base=base,
        root=root,
        path=root,
        home=base / "home",
        tmp=base / "tmp",
        git_dir=root / ".git",
        start=_git(root, environment, "rev-parse", "HEAD"),
        source=WorkspaceSource(kind="worktree", commit=None, branch="main", dirty=False),
        confinement=_confinement(base, environment, level, readable),
    )


def _confinement(
    base: Path, environment: Mapping[str, str], level: IsolationLevel | None, readable: Sequence[Path]
) -> Confinement:
    """As strict as this machine can, unless told otherwise."""
    cli = find_cli()
    needs = Needs(
        level=level or levels.probe(os.environ, cli).level,
        settings=IsolationSettings(read_paths=tuple(map(str, readable))),
        private=PrivateFolders.of(base.parent / "project", base.parent / "base", os.environ),
        programs=[cli],
    )
    return confine(WorkspaceFolder(base, -1), environment, needs)


def git(workspace: Workspace, *arguments: str) -> str:
    """Run git in the worktree."""
    return _git(workspace.root, workspace.confinement.environment, *arguments)


@dataclass
class Session:
    """One session with everything that came of it."""

    workspace: Workspace
    model: str | Meter
    """The address of the API, or a model proxy before it."""
    prompt: str = "Please do the work."
    cli: Path | None = None
    socket: Path | None = None
    pins: Pins = field(default_factory=Pins)
    settings: dict[str, Any] = field(default_factory=dict)
    session_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    records: list[SessionRecord] = field(default_factory=list)

    @cached_property
    def meter(self) -> Meter:
        """The proxy's meter, or one that sees nothing of the session's requests."""
        return self.model if isinstance(self.model, Meter) else Meter(self.model, TOKEN, None, CassetteState())

    def request(self) -> SessionRequest:
        """What the agent is asked."""
        return SessionRequest(
            session_id=self.session_id,
            prompt=self.prompt,
            workspace=self.workspace,
            execution=ExecutionSettings(**{"timeout_seconds": PATIENCE, **self.settings}),
            meter=self.meter,
            pins=self.pins,
            socket=self.socket,
        )

    async def lead(self, listen: Listen | None = None) -> SessionOutcome:
        """Lead it to its end, listening before or instead of just collecting."""

        def hear(record: SessionRecord) -> None:
            self.records.append(record)
            if listen:
                listen(record)

        return await run_session(self.request(), hear, Redactor([Secret(TOKEN)]), self.cli)

    def of(self, kind: type[R]) -> list[R]:
        """The records of one kind, in order."""
        return [record for record in self.records if isinstance(record, kind)]

    def survivors(self) -> list[str]:
        """Living processes that the session started: all of them inherit its marker."""
        processes = (process for process in Path("/proc").iterdir() if process.name.isdigit())
        return [process.name for process in processes if _is_of(process, self)]


def lead(session: Session) -> SessionOutcome:
    """Lead it to its end, after which nothing of it is left."""
    outcome = anyio.run(session.lead)
    assert session.survivors() == []
    return outcome


def with_more_time(attempt: Callable[[Path, int], bool], place: Path, *seconds: int) -> None:
    """Try with a short limit, and with longer ones only where the machine is too busy to come that far."""
    assert any(attempt(place / str(limit), limit) for limit in seconds)


def _is_of(process: Path, session: Session) -> bool:
    try:
        # Claude Code itself closes its environment to all but root.
        is_cli = f"--session-id={session.session_id}".encode() in (process / "cmdline").read_bytes().split(b"\0")
        mark = os.fsencode(f"{MARKER}={session.workspace.base}")
        return is_cli or mark in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _environment(home: Path) -> dict[str, str]:
    return {
        MARKER: str(home.parent),
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **IDENTITY,
    }


def _git(root: Path, environment: Mapping[str, str], *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def shebang() -> str:
    """First lines of a script for this Python: the kernel would take a space in its path for the end of the path."""
    return f"""#!/bin/sh
'''exec' "{sys.executable}" "$0" "$@"
' '''"""
