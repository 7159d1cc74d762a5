"""No key of the environment, of `.env`, of Git's configuration or of the runner's files is ever stored or shown."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.hostile import developer
from tests.hostile.action import Action
from tests.hostile.aftermath import Aftermath
from tests.hostile.campaign import Campaign
from tests.hostile.leak import KEYS, LEAK, spellings

SECRETS = {
    "DEPLOY_PASSWORD": 'p@ss "w\\o/r+d" of 5f0c1e77',
    "NPM_TOKEN": "npm_fakefakefakefakefakefakefakefakefake",
    "DATABASE_URL": "postgres://app:hunter2-9b1deb4d@db.example/app",
}
"""Handed to the session by the suite: so it really has something to print, at every level."""

COMMANDS = {
    "setupCommand": f"sh attacks/act {LEAK.id}",
    "buildCommand": f"sh attacks/act {LEAK.id}",
    "testCommand": f"sh attacks/act {LEAK.id}",
    "testReport": "reports/*.xml",
}
LOOKS = (["show", "latest", "--transcript"], ["show", "latest", "--patch"], ["show", "latest"], ["list"])
LOOK = """\
import json, os, sys
from zelda_ci.__main__ import main
from zelda_ci.cli import boundary, stored

for arguments in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        sys.argv = ["zelda", *arguments]
        main()
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) not in {0, 1}:
        sys.exit(f"failed: {arguments}")
"""
"""Each command is a process of its own, forked from one that has imported everything."""

CONFESSION = "All I know: " + ", ".join(f"{{{name}}}" for name in KEYS)


def written(after: Aftermath) -> dict[str, str]:
    """Everything that Zelda made: results, transcript, patch, logs, cassettes, what it printed, and every report."""
    texts = {"printed": after.printed.decode("utf-8", "replace")}
    for place in (after.world.results, after.world.project / "tapes", after.world.base, after.world.home / ".local"):
        for folder, _, files in os.walk(place):
            texts |= {
                str(file): file.read_bytes().decode("utf-8", "replace")
                for name in files
                if _readable(file := Path(folder, name))
            }
    who = after.world.developer
    done = subprocess.run(
        who.argv([who.python, "-c", LOOK, json.dumps(LOOKS)]),
        cwd=after.world.project,
        env={**after.world.environment(), **who.variables(), **SECRETS},
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"hostile-") >= len(LOOKS)
    texts["looks"] = (done.stdout + done.stderr).decode("utf-8", "replace")
    return texts


def _readable(file: Path) -> bool:
    # The store is Git's own copy of the commit, compressed, and not Zelda's to mask.
    return file.is_file() and not file.is_symlink() and "stores" not in file.parts


def test_no_key_is_in_anything_that_was_written() -> None:
    """Where nothing is isolated, so that all of them can be read."""
    try:
        who = developer.unprivileged()
    except LookupError as problem:
        pytest.skip(f"needs a Python for another user: {problem}")
    campaign = Campaign(
        who,
        "none",
        "agent",
        settings={"execution": {"env": [*SECRETS]}, **COMMANDS},
        arguments=("--record", "tapes"),
        variables=SECRETS,
        last_words=CONFESSION,
    )

    def judge(after: Aftermath, tried: Sequence[Action]) -> list[str]:
        texts = written(after)
        assert len(texts) > 6
        assert LEAK.succeeded(after, LEAK.id), after.printed
        keys = [*(after.world.canaries[name] for name in KEYS), *SECRETS.values(), "hunter2-9b1deb4d"]
        hidden = [form for key in keys for form in spellings(key)]
        # The database's address as a whole is no secret: only the password in it.
        hidden = [form for form in hidden if form not in set(spellings(SECRETS["DATABASE_URL"]))]
        return [f"{name}: {form}" for name, text in texts.items() for form in hidden if form in text]

    assert campaign.judged([LEAK], judge) == []
