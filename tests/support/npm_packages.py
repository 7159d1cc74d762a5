"""Packages of the npm registry that tests use, installed once per version of their lock file.

A recipe is a folder with package.json and package-lock.json, made with
`npm install --package-lock-only --omit-lockfile-registry-resolved`.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
INSTALL_SECONDS = 150


class UnavailableError(Exception):
    """The package cannot be had here; the message says why."""


def installed(name: str) -> Path:
    """A folder of the user's cache with a recipe's files and node_modules.

    Raises:
        UnavailableError: Node or npm is missing, or npm cannot install it.
    """
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise UnavailableError(f"{program} is not installed")
    recipe = sorted((DATA / name).iterdir())
    key = hashlib.sha256(b"".join(file.read_bytes() for file in recipe)).hexdigest()[:16]
    target = _cache() / f"{name}-{key}"
    if not target.exists():
        _install(recipe, target)
    return target


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
