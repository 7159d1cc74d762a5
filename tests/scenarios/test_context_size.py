"""What a pull request changes of the context of every session: told before any session, and where none can run."""

import os
import re
import shutil
from pathlib import Path

from tests.scenarios.stage import FILES, GOOD, NO_KEY, Stage

STEERING = {".claude/rules/money.md": "Every amount of money is a Decimal.\n" * 40}
RULES = {"CLAUDE.md": "Be brief.\n"}
NO_SUITES = {"README.md": "# Shop\n", **RULES}
COMMENTED = "Always in context: "


def test_a_fork_without_a_key_is_told_what_its_change_takes_of_the_context(tmp_path: Path) -> None:
    with Stage(tmp_path, {**FILES, **RULES}) as stage:
        pull = stage.open_pull(STEERING, fork=True)
        done = stage.pull_request(pull, (), variables=NO_KEY)

        assert (done.code, done.outputs["verdict"]) == (0, "skipped"), done.printed
        assert COMMENTED in done.summary, done.printed
        assert "estimated" in done.summary
        assert "money.md" in done.summary
        assert "mode: comment" in done.summary
        # Its token may not comment: a second workflow does.
        commented = stage.finished(pull, stage.stored[-1])
        assert commented.code == 0, commented.printed
        (body,) = stage.bodies()
        assert "Zelda: no session ran" in body
        assert COMMENTED in body


def test_a_repository_without_suites_and_key_gets_its_first_comment(tmp_path: Path) -> None:
    git, log = tmp_path / "bin/git", tmp_path / "git.log"
    git.parent.mkdir()
    git.write_text(f'#!/bin/sh\necho "$*" >> "{log}"\nexec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    with Stage(tmp_path, NO_SUITES) as stage:
        pull = stage.open_pull(STEERING)
        path = f"{git.parent}{os.pathsep}{os.environ['PATH']}"
        done = stage.pull_request(pull, (), variables={**NO_KEY, "PATH": path})

        assert (done.code, done.outputs) == (0, {"verdict": "skipped"}), done.printed
        # Who looks for its suites and for what changes reads the same base.
        fetched = [line for line in log.read_text().splitlines() if line.endswith(f"--depth=1 origin {stage.tip}")]
        assert len(fetched) == 1, fetched
        (body,) = stage.bodies()
        assert COMMENTED in body
        assert "no suites yet" in body
        assert "<details>" in body


def test_a_folder_that_the_base_does_not_have_is_listed_alone(tmp_path: Path) -> None:
    with Stage(tmp_path, NO_SUITES) as stage:
        pull = stage.open_pull({"shop/CLAUDE.md": "Be careful with money.\n", "shop/app.py": ""})
        done = stage.pull_request(pull, (), variables=NO_KEY, working_directory="shop")

        assert (done.code, done.outputs) == (0, {"verdict": "skipped"}), done.printed
        (body,) = stage.bodies()
        assert re.search(rf"(?m)^{COMMENTED}\d+ tokens \(estimated\)", body)
        assert "shop/CLAUDE.md" in body
        assert f"The folder shop/ is not in {stage.tip[:7]}" in done.printed


def test_more_than_the_base_allows_is_red(tmp_path: Path) -> None:
    # The scripted API counts one token for each text.
    limit = {"zelda.config.yaml": "gate: { maxAlwaysOnTokens: 1 }\n"}
    with Stage(tmp_path, {**FILES, **RULES, **limit}) as stage:
        # What the pull request says of the limit counts once it is merged.
        pull = stage.open_pull({**STEERING, "zelda.config.yaml": "gate: { maxAlwaysOnTokens: 9000 }\n"})
        done = stage.pull_request(pull, GOOD)

        assert done.code == 1, done.printed
        (body,) = stage.bodies()
        assert ", too much is always in context, gate loosened\n" in body
        assert "The check is red because 2 tokens are always in context, and at most 1 are allowed" in body
        # Beside what was counted before any session stands what the first request of one had.
        assert "- **First requests**: " in body
        assert any("gate.maxAlwaysOnTokens" in error.data for error in done.told("error"))
