"""How the level `full` is reached is told by what the kernel says, not by what a container looks like."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import needs
from tests.support.patience import PATIENCE
from zelda_ci.sandbox import programs

ROOT = Path(__file__).parents[2]
ASK = "import os; from zelda_ci.sandbox import levels; found = levels.probe(os.environ); print(*found.reasons)"


def reasons(*before: str) -> str:
    """Why a Zelda with other rights offers no better level."""
    done = subprocess.run(
        [*before, sys.executable, "-c", ASK], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def can_make_namespaces() -> bool:
    trial = [*programs.inside({}, world=programs.TRIAL), "true"]
    return subprocess.run(trial, capture_output=True, check=False, timeout=PATIENCE).returncode == 0


def test_where_namespaces_can_be_made_nothing_is_said_of_containers_and_settings() -> None:
    if not can_make_namespaces():
        pytest.skip("needs user namespaces")
    found = reasons()
    assert "--security-opt" not in found
    assert "sysctl" not in found


@needs.ROOT
def test_a_filter_of_a_container_is_named_with_the_option_that_lifts_it() -> None:
    found = reasons(sys.executable, "-m", "tests.support.like_docker")
    assert "start the container with --security-opt seccomp=unconfined" in found
    assert "sysctl" not in found


def test_a_setting_of_the_kernel_is_named_with_the_value_that_allows_it() -> None:
    if not can_make_namespaces():
        pytest.skip("needs user namespaces")
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    found = reasons("unshare", "-Ur", "sh", "-c", forbid, "sh")
    assert "sysctl -w user.max_user_namespaces=15000" in found
    assert "--security-opt" not in found
    assert os.geteuid() != 0 or "sudo" not in found
