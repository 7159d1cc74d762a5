"""What a test needs of the machine, said in its skip; CI looks that every skipped test ran in another arrangement."""

import os
import shutil
import subprocess

import pytest

from zelda_ci.execution.launch import find_cli
from zelda_ci.sandbox import levels

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
NPM = pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
SUDO = pytest.mark.skipif(
    os.geteuid() == 0
    or shutil.which("sudo") is None
    or subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode != 0,
    reason="needs an ordinary user with sudo and no password, as on GitHub's runners",
)
BWRAP = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
CHROMIUM = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")


def level(name: str) -> None:
    """Skip where a level of isolation cannot be had."""
    offered = levels.probe(os.environ, find_cli())
    if not any(name == each for each in offered.levels):
        why = " ".join(offered.reasons) or "Only root can let runs be another user's."
        pytest.skip(f"needs isolation level {name}: {why}")
