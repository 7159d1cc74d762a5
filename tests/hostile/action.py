"""One hostile action: what it does, through which channel, and how to see from outside that it succeeded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tests.hostile.aftermath import Aftermath

Channel = Literal["agent", "build"]
Check = Callable[["Aftermath", str], bool]
"""Whether the action of that id succeeded."""

BOTH: tuple[Channel, ...] = ("agent", "build")


@dataclass(frozen=True)
class Tool:
    """A call of one of Claude Code's own tools; `{project}` and the like in its input are places of the world."""

    name: str
    input: Mapping[str, str]


@dataclass(frozen=True)
class Action:
    """A shell or Python script committed to the tested repository, calls of tools, or both (then in that order)."""

    id: str
    what: str
    succeeded: Check
    shell: str | None = None
    python: str | None = None
    tools: tuple[Tool, ...] = ()
    channels: tuple[Channel, ...] = BOTH
    alone: bool = False
    """Where it succeeds, others in the same session could not be measured."""
    heavy: bool = False
    """Takes much memory, disk or time: measured for the matrix, not in every test run."""
    planted: bool = False
    """Works through files of the repository alone: nothing is run for it."""

    @property
    def script(self) -> str | None:
        """Name of its file below `attacks/`."""
        if self.shell is not None:
            return f"{self.id}.sh"
        return f"{self.id}.py" if self.python is not None else None


def any_of(*checks: Check) -> Check:
    return lambda after, action: any(check(after, action) for check in checks)


def claimed(after: "Aftermath", action: str) -> bool:
    """The script looked at the effect itself, and printed so: where nothing of it can be seen from outside."""
    return "done" in after.proofs(action)


def learned(canary: str) -> Check:
    """What it printed shows that it knows the canary."""
    return lambda after, action: after.knows(action, canary)


def exists(place: str) -> Check:
    return lambda after, _: after.world.place(place).exists()


def gone(place: str) -> Check:
    return lambda after, _: not after.world.place(place).exists()


def holds(place: str, words: str) -> Check:
    return lambda after, _: words.encode() in after.world.read(place)


def knocked(service: str) -> Check:
    """A service of the developer, or of the attacker, was sent the action's id."""
    return lambda after, action: f"knock {action}".encode() in after.world.services.received(service)
