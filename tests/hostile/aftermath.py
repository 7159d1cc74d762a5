"""What is left of the world, and what Zelda kept, once a campaign is over."""

import json
import re
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.hostile.action import Action
from tests.hostile.world import World
from tests.support.scripted_replies import ApiRequest

PROOF = re.compile(r"proof (\w+) (done|[0-9a-f]{64})")
DAEMONS = frozenset({"p05", "p20", "n36"})
SURVIVORS_SECONDS = 1.0
"""Daemons look every 50 ms whether their run is over."""


@dataclass
class Aftermath:
    """Everything by which an attack can be seen to have succeeded."""

    world: World
    before: dict[str, tuple[object, ...]]
    printed: bytes
    """Of the command, as on a terminal."""
    exit_code: int | None
    """None where it had to be ended."""
    requests: Sequence[ApiRequest] = ()
    others: Sequence[str] = ()
    """Requests to other addresses of the model API."""
    extra: str = ""
    """What else was kept, where it was not Zelda who kept it."""
    _stored: str | None = field(default=None, repr=False)

    @property
    def conversation(self) -> ApiRequest | None:
        """The last request of the session, which holds all that its tools returned."""
        return max(self.requests, key=lambda request: len(request.messages), default=None)

    @property
    def hung(self) -> bool:
        return self.exit_code is None

    @property
    def killed(self) -> bool:
        return self.exit_code == -9

    @property
    def channel_ran(self) -> bool:
        return self.exit_code in (0, 1)

    @property
    def stored(self) -> str:
        """All that Zelda wrote into its results, and all that it printed."""
        if self._stored is None:
            files = [file for file in sorted(self.world.results.rglob("*")) if file.is_file() and not file.is_symlink()]
            texts = [file.read_bytes()[: 64 << 20].decode("utf-8", "replace") for file in files]
            self._stored = "\n".join([*texts, self.printed.decode("utf-8", "replace"), self.extra])
        return self._stored

    @property
    def patches(self) -> list[bytes]:
        return [file.read_bytes() for file in self.world.results.glob("runs/*/changes.patch")]

    @property
    def results(self) -> list[dict[str, Any]]:
        return [json.loads(file.read_bytes()) for file in sorted(self.world.results.glob("runs/*/result.json"))]

    @property
    def leftovers(self) -> list[str]:
        """Of finished runs; the neighbour lives."""
        found = [entry for name in ("runs", "trash") for entry in self.world.base.glob(f"*/{name}/*")]
        return [str(entry) for entry in found if entry.parents[1].name != "0badcafe"]

    def said(self, action: str) -> str:
        """What the action's own tool calls returned to the model."""
        blocks = self.conversation.tool_results if self.conversation else []
        mine = [block for block in blocks if block.get("tool_use_id", "").startswith(f"toolu_{action}_")]
        return "\n".join(json.dumps(block.get("content")) for block in mine)

    def proofs(self, action: str) -> set[str]:
        heard = self.stored + (self.conversation.raw_body.decode("utf-8", "replace") if self.conversation else "")
        return {proof for name, proof in PROOF.findall(heard) if name == action}

    def knows(self, action: str, canary: str) -> bool:
        return self.world.digest(canary) in self.proofs(action) or self.world.canaries[canary] in self.said(action)

    def ask(self, program: str) -> str:
        """What a program of the developer's prints, which knows the places of this world."""
        code = self.world.place("home/project/attacks/prelude.py").read_text() + program.replace(
            "from prelude import *", ""
        )
        argv = self.world.developer.argv([self.world.developer.python, "-I", "-c", code])
        done = subprocess.run(argv, env={"ID": "ask"}, cwd="/", check=False, capture_output=True, text=True)
        return done.stdout.strip()

    def wait_for_survivors(self, tried: Iterable[Action]) -> None:
        """A daemon that outlived its run has its chance."""
        if any(action.id in DAEMONS for action in tried):
            time.sleep(SURVIVORS_SECONDS)
