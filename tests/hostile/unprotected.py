"""The same actions where nothing stands in their way: a worktree of the repository, the developer's own environment.

Who collects changes and reports does it as one would who has not read this folder. That every action is seen to succeed
here, or at level `none`, is what proves that those who judge it can see.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL

from tests.hostile import world as worlds
from tests.hostile.action import Action, Channel
from tests.hostile.aftermath import Aftermath
from tests.hostile.corpus import CORPUS
from tests.hostile.developer import Developer
from tests.hostile.model import MODEL, Model
from tests.hostile.world import World
from tests.support.real_cli import CLI
from tests.support.scripted_api import ScriptedApi

PATIENCE_SECONDS = 8
REDIRECTING = frozenset({"c13"})
"""A setting of the repository after which the CLI never reaches the scripted API: tried in a world of its own."""

STAND_IN = ["sh", "-c", 'shift 3; "$@"; exit 0', "supervisor"]
"""Takes Zelda's place as the ancestor of all; its arguments look like Zelda's."""


def succeed(developer: Developer, channel: Channel, actions: Sequence[Action]) -> set[str]:
    """The ids of those that succeeded, all in one world."""
    tried = [action for action in actions if channel in action.channels]
    with worlds.built(developer, CORPUS) as world:
        tree = world.root / "runner" / "zelda" / "plain" / "runs" / "worktree"
        tree.parent.mkdir(parents=True)
        world.git("worktree", "add", "-q", "--detach", str(tree))
        world.pass_on()
        before = world.fingerprint()
        after = (_by_agent if channel == "agent" else _by_shell)(world, tree, tried, before)
        after.wait_for_survivors(tried)
        return {action.id for action in tried if action.succeeded(after, action.id)}


def _by_shell(
    world: World, tree: Path, actions: Sequence[Action], before: Mapping[str, tuple[object, ...]]
) -> Aftermath:
    argv = ["sh", "attacks/act", *(action.id for action in actions)]
    code, printed = _ran(world, tree, argv, world.environment(), 120)
    hung, extra = _collected(world, tree)
    return Aftermath(world, dict(before), printed, None if hung else code, extra=extra)


def _by_agent(
    world: World, tree: Path, actions: Sequence[Action], before: Mapping[str, tuple[object, ...]]
) -> Aftermath:
    if not REDIRECTING & {action.id for action in actions}:
        settings = tree / ".claude" / "settings.json"
        settings.write_text(settings.read_text().replace('"ANTHROPIC_BASE_URL"', '"UNUSED"'))
    argv = [str(CLI), "-p", "do it", "--model", MODEL, "--permission-mode", "bypassPermissions"]
    argv += ["--output-format", "stream-json", "--verbose", "--setting-sources", "project"]
    with ScriptedApi(Model([a for a in actions if not a.planted], world.facts).answer) as api:
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "0", "IS_SANDBOX": "1"}
        environment = {**world.environment(), **quiet, "ANTHROPIC_BASE_URL": api.url}
        code, printed = _ran(world, tree, argv, environment, 120)
        api.failures.clear()
    hung, extra = _collected(world, tree)
    said = "\n" + printed.decode("utf-8", "replace")
    return Aftermath(world, dict(before), b"", None if hung else code, api.requests, api.others, said + extra)


def _ran(
    world: World, tree: Path, argv: Sequence[str], environment: Mapping[str, str], seconds: float
) -> tuple[int | None, bytes]:
    stand_in = [*STAND_IN, "zelda_ci", "run", world.facts["run"]]
    started = subprocess.Popen(
        world.developer.argv([*stand_in, *argv]),
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert started.stdout
    # A pipe of the developer's own, as it would be: whoever made it decides who may open it again.
    os.fchown(started.stdout.fileno(), world.developer.uid, world.developer.gid)
    try:
        printed, _ = started.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, SIGKILL)
        return None, b""
    return started.returncode, printed


def _collected(world: World, tree: Path) -> tuple[bool, str]:
    """As without any thought: status, diff, reports, removal."""
    patch = world.results / "runs" / "plain" / "changes.patch"
    patch.parent.mkdir(parents=True)
    script = f"cat reports/*.xml reports/*/*.xml; git status; git add -AN .; git diff HEAD >{patch}; cat README.fifo 2>/dev/null; exit 0"
    argv = world.developer.argv(["timeout", "-k", "1", str(PATIENCE_SECONDS), "sh", "-c", script])
    shown = world.environment()
    os.chown(patch.parent, world.developer.uid, world.developer.gid)
    done = subprocess.run(argv, cwd=tree, env=shown, stdin=subprocess.DEVNULL, check=False, capture_output=True)
    if done.returncode != 0:
        patch.unlink(missing_ok=True)
    with suppress(OSError, RecursionError):
        shutil.rmtree(tree)
    return done.returncode != 0, done.stdout.decode("utf-8", "replace")
