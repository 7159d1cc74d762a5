"""A step with an action in JavaScript, started the way GitHub's runner starts one."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.patience import PATIENCE

# Of the machine, as the runner has them: the way to the package index.
OF_THE_MACHINE = re.compile(
    r"(?i)pip_(index_url|extra_index_url|trusted_host|cert|config_file|find_links)|(https?|no|all)_proxy"
    r"|ssl_cert_(file|dir)|requests_ca_bundle"
)


def node() -> str:
    """The runner brings its own."""
    found = shutil.which("node")
    if not found:
        pytest.skip("needs node, which GitHub's runner brings")
    return found


def with_inputs(action: Path, environ: Mapping[str, str], token: str) -> dict[str, str]:
    """The environment of the step: inputs that are not given have their defaults, or are empty."""
    inputs: dict[str, dict[str, Any]] = yaml.safe_load((action / "action.yml").read_text())["inputs"]
    known = {f"INPUT_{name.replace(' ', '_').upper()}": each.get("default", "") for name, each in inputs.items()}
    given = {name: value for name, value in environ.items() if name.startswith("INPUT_")}
    assert set(given) <= set(known), "Unexpected input(s)"
    defaults = {name: value.replace("${{ github.token }}", token) for name, value in known.items()}
    assert not any("${{" in value for value in defaults.values())
    return {**defaults, **environ}


def start(action: Path, cwd: Path, environ: Mapping[str, str]) -> subprocess.Popen[str]:
    """The step's process, whose streams the runner reads both."""
    runs = yaml.safe_load((action / "action.yml").read_text())["runs"]
    assert re.fullmatch(r"node2[0-9]", runs["using"])
    of_the_machine = {name: value for name, value in os.environ.items() if OF_THE_MACHINE.fullmatch(name)}
    return subprocess.Popen(
        [node(), str(action / runs["main"])],
        cwd=cwd,
        env={**of_the_machine, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run(action: Path, cwd: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """The step to its end."""
    with start(action, cwd, environ) as process:
        printed, _ = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess([str(action)], process.returncode, printed)
