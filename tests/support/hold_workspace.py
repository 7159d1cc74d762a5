"""A Zelda process to be killed: opens a workspace, starts a command in it, and stays.

Arguments: project, run id, what to do ("hold" it, or "make" one after the other), a shell line to run meanwhile.
"""

import os
import sys
from pathlib import Path

import anyio

from tests.builders import suite
from zelda_ci.redact import Redactor
from zelda_ci.sandbox import levels
from zelda_ci.sandbox.confine import Isolation
from zelda_ci.workspace.workspaces import Workspaces


def say_ready() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()


async def main() -> None:
    project, run_id, deed, line = sys.argv[1:]
    isolation = Isolation(levels.probe(os.environ), unsafe=True)
    workspaces = Workspaces(Path(project), Path(".zelda"), os.environ, Redactor(), isolation)
    held = suite(isolation={"level": os.environ.get("LEVEL", "none")})
    if deed == "make":
        say_ready()
        for number in range(10_000):
            async with workspaces.open(f"{run_id}-{number}", held):
                pass
    async with workspaces.open(run_id, held) as workspace:
        say_ready()
        await workspaces.run_command(workspace, line, 600)


if __name__ == "__main__":
    anyio.run(main)
