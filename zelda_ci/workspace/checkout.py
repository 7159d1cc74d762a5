"""What a checkout step left in a folder, asked of git whoever owns it."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from zelda_ci import process

SECONDS = 30.0


async def head_commit(folder: Path, environ: Mapping[str, str]) -> tuple[str, bytes] | None:
    """The commit at HEAD, its name and its object; nothing where there is no repository, no commit or no git.

    In a clone of depth 1 only the object knows the commit's parents.
    """
    path = environ.get("PATH", os.defpath)
    program = shutil.which("git", path=path)
    if program is None:
        return None
    environment = {
        "PATH": path,
        "LC_ALL": "C",
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_CONFIG_KEY_1": "core.fsmonitor",
        "GIT_CONFIG_VALUE_1": "false",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
    }
    answers = []
    for question in (("rev-parse", "--verify", "-q", "HEAD^{commit}"), ("cat-file", "commit", "HEAD")):
        try:
            done = await process.capture(
                [program, *question], cwd=folder, environment=environment, timeout_seconds=SECONDS
            )
        except (OSError, TimeoutError):
            return None
        if done.exit_code != 0:
            return None
        answers.append(done.stdout)
    return answers[0].decode().strip(), answers[1]
