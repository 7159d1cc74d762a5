"""GitHub's own client for artifacts, the npm package @actions/artifact, installed once per version of its lock file.

`overrides` in its package.json leave out what it depends on but does not use when it runs: a generator of code with a
whole compiler, and stand-ins for functions that every node has. The lock file is made with
`npm install --package-lock-only --omit-lockfile-registry-resolved`.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECIPE = Path(__file__).parents[1] / "data" / "actions-artifact"
INSTALL_SECONDS = 150
RUN_SECONDS = 60


class UnavailableError(Exception):
    """The client cannot be had here; the message says why."""


@dataclass(frozen=True)
class OfficialClient:
    """A folder with the client and its dependencies."""

    folder: Path

    def upload(self, name: str, root: Path, files: Sequence[Path], environ: Mapping[str, str]) -> dict[str, Any]:
        return self._run(environ, "upload", name, str(root), *map(str, files))

    def download(self, name: str, target: Path, environ: Mapping[str, str]) -> dict[str, Any]:
        return self._run(environ, "download", name, str(target))

    def _run(self, environ: Mapping[str, str], *arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            ["node", "client.mjs", *arguments],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **environ},
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        told: dict[str, Any] = json.loads(done.stdout.rpartition("RESULT ")[2])
        return told


def installed() -> OfficialClient:
    """The client, in a folder of the user's cache.

    Raises:
        UnavailableError: Node or npm is missing, or npm cannot install it.
    """
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise UnavailableError(f"{program} is not installed")
    recipe = sorted(RECIPE.iterdir())
    key = hashlib.sha256(b"".join(file.read_bytes() for file in recipe)).hexdigest()[:16]
    target = _cache() / f"actions-artifact-{key}"
    if not target.exists():
        _install(recipe, target)
    return OfficialClient(target)


def _cache() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zelda-ci-tests"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise UnavailableError(f"there is no cache folder: {exc}") from exc
    return folder


def _install(recipe: Sequence[Path], target: Path) -> None:
    """Install beside the target and rename: tests in other processes see all of it or nothing."""
    with tempfile.TemporaryDirectory(dir=target.parent) as attempt:
        for file in recipe:
            shutil.copy(file, attempt)
        _npm_ci(attempt)
        made = Path(attempt, "made")
        made.mkdir()
        for name in ("node_modules", *(file.name for file in recipe)):
            Path(attempt, name).rename(made / name)
        try:
            made.rename(target)
        except OSError:
            # Another process was faster, and made the same.
            if not target.exists():
                raise


def _npm_ci(folder: str) -> None:
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"npm did not finish within {INSTALL_SECONDS} seconds") from None
    if done.returncode:
        reason = next((line for line in done.stderr.splitlines() if "npm error" in line), "it did not say why")
        raise UnavailableError(f"npm could not install it: {reason}")
