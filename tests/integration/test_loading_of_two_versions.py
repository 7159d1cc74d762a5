"""`scripts/loading` tells what one Claude Code lists and tells its model, and another does not."""

import subprocess
import sys
from pathlib import Path

from zelda_ci.execution.launch import find_cli

SCRIPT = Path(__file__).parents[2] / "scripts" / "loading"
# A Claude Code without its own skills, that takes one more of the project's away and tells one thing more.
OTHER = """#!/bin/sh
export CLAUDE_CODE_DISABLE_BUNDLED_SKILLS=1
exec "{cli}" --append-system-prompt "MARK:new-words;" --disallowedTools "Agent(plain)" "$@"
"""


def loading(*cli: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, SCRIPT, *cli], capture_output=True, text=True, timeout=300, check=False)


def test_what_differs_between_two_of_them_is_printed_and_nothing_else(tmp_path: Path) -> None:
    cli, other = find_cli(), tmp_path / "claude"
    other.write_text(OTHER.format(cli=cli))
    other.chmod(0o755)
    changed = loading(cli, other)
    assert (changed.returncode, changed.stderr) == (1, "")
    lines = changed.stdout.splitlines()
    assert {"- skills: simplify", "- slash_commands: simplify", "- told: MARK:plain", "+ told: MARK:new-words"} <= {
        *lines
    }
    # What is Claude Code's own, and the one sub-agent: nothing else of the project's.
    assert [line for line in lines if "MARK:" in line] == ["+ told: MARK:new-words", "- told: MARK:plain"]
    assert all(line.startswith(("- skills: ", "- slash_commands: ", "- told: ", "+ told: ")) for line in lines)
