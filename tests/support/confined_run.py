"""A Zelda process of its own that runs one command in a workspace: for other users, and machines that offer less.

Arguments: project, level, command. Prints what was offered and what the command said, as JSON.
"""

import json
import os
import sys
from pathlib import Path

import anyio

from tests.builders import suite
from tests.support.patience import PATIENCE
from zelda_ci.errors import ZeldaError
from zelda_ci.redact import Redactor
from zelda_ci.sandbox import levels
from zelda_ci.sandbox.confine import Isolation
from zelda_ci.workspace.workspaces import Workspaces


async def main() -> None:
    project, level, line = sys.argv[1:]
    offered = levels.probe(os.environ)
    told: dict[str, object] = {"best": offered.level, "reasons": offered.reasons}
    workspaces = Workspaces(Path(project), Path(".zelda"), os.environ, Redactor(), Isolation(offered))
    try:
        async with workspaces.open("run-1", suite(isolation={"level": level}, shell="sh -c")) as workspace:
            done = await workspaces.run_command(workspace, line, PATIENCE)
            told |= {"level": workspace.confinement.level, "exit_code": done.exit_code, "output": done.output}
    except ZeldaError as error:
        told |= {"error": error.user_message}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    anyio.run(main)
