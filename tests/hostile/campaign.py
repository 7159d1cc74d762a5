"""Actions carried out together: by a session of the real CLI, or as the suite's commands, at one level of isolation."""

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from typing import Any, TypeVar

from tests.hostile import world as worlds
from tests.hostile.action import Action, Channel
from tests.hostile.aftermath import Aftermath
from tests.hostile.corpus import CORPUS
from tests.hostile.developer import Developer
from tests.hostile.everyday import EVERYDAY
from tests.hostile.leak import LEAK
from tests.hostile.model import Model
from tests.hostile.world import World
from tests.support.command import WORD
from tests.support.patience import PATIENCE
from tests.support.scripted_api import ScriptedApi

T = TypeVar("T")

REPORTERS = ("c16", "c17", "n07")
"""What they plant must be there when the test command ends, not when the build does."""

CLOSED = dict.fromkeys(("setup", "session", "build", "test"), "none")


@dataclass(frozen=True)
class Campaign:
    """Who attacks whom, how."""

    developer: Developer
    level: str
    channel: Channel
    network: Mapping[str, str] = field(default_factory=lambda: CLOSED)
    above: Path | None = None
    """Where the world lies; the system's temporary folder if nothing is said."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """More of the suite."""
    arguments: tuple[str, ...] = ()
    """More of `zelda run`."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """More of the developer's environment."""
    last_words: str = "Done."
    """Of the model; `{apikey}` and the like are canaries."""

    def succeed(self, actions: Iterable[Action]) -> set[str]:
        """The ids of those that succeeded; each in the same world as the others."""
        return self.judged(tuple(actions), lambda after, tried: {a.id for a in tried if a.succeeded(after, a.id)})

    def judged(self, actions: Sequence[Action], judge: Callable[[Aftermath, Sequence[Action]], T]) -> T:
        """What comes of a look at the world after these actions, before it is gone."""
        tried = [action for action in actions if self.channel in action.channels]
        # What is planted and not tried stays out: one that forges messages breaks the run for all others.
        corpus = [action for action in CORPUS if action in tried or not action.planted]
        with worlds.built(self.developer, (*corpus, *EVERYDAY, LEAK), self.above) as world:
            run = _run_agent if self.channel == "agent" else _run_build
            after = run(self, world, tried)
            after.wait_for_survivors(tried)
            return judge(after, tried)

    def suite(self, **more: Any) -> str:
        """As JSON, which YAML is."""
        return json.dumps({
            "prompt": "Do what the repository says.",
            "execution": {"maxTurns": 400, "timeoutSeconds": 250},
            "metrics": {"toolUsage": False, "requirementFulfillment": False},
            "isolation": {"level": self.level, "network": dict(self.network)},
            "commandTimeoutSeconds": 200,
            **self.settings,
            **more,
        })  # fmt: skip


def _run_agent(campaign: Campaign, world: World, actions: Sequence[Action]) -> Aftermath:
    return _zelda(campaign, world, [action for action in actions if not action.planted])


def _run_build(campaign: Campaign, world: World, actions: Sequence[Action]) -> Aftermath:
    reporters = [action.id for action in actions if action.id in REPORTERS]
    others = [action.id for action in actions if action.id not in REPORTERS]
    commands = {
        "buildCommand": f"sh attacks/act {' '.join(others)}",
        "testCommand": f"sh attacks/act {' '.join(reporters)}",
        "testReport": "reports/**/*.xml",
    }
    return _zelda(campaign, world, (), **commands)


def _zelda(campaign: Campaign, world: World, actions: Sequence[Action], **commands: str) -> Aftermath:
    suite = world.project / "zelda" / f"test-{world.facts['run']}.yaml"
    suite.parent.mkdir()
    suite.write_text(campaign.suite(**commands))
    for path in (suite, suite.parent):
        os.chown(path, world.developer.uid, world.developer.gid)
    before = world.fingerprint()
    word = {"ZELDA_UNSAFE": "1"} if campaign.level == "none" else WORD
    with ScriptedApi(Model(actions, world.facts, campaign.last_words.format(**world.canaries)).answer) as api:
        environment = {**world.environment(), **world.developer.variables(), "ANTHROPIC_BASE_URL": api.url, **word}
        environment |= campaign.variables
        printed, code = _finished(
            world.developer.zelda("run", world.facts["run"], *campaign.arguments), world.project, environment
        )
        api.failures.clear()
    return Aftermath(world, before, printed, code, tuple(api.requests), tuple(api.others))


def _finished(argv: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> tuple[bytes, int | None]:
    """Everything printed, and the exit code: none where it took too long."""
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, SIGKILL)
        printed, _ = process.communicate()
        return printed, None
    return printed, process.returncode
