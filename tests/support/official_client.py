"""GitHub's own client for artifacts, the npm package @actions/artifact, installed once per version of its lock file.

`overrides` in its package.json leave out what it depends on but does not use when it runs: a generator of code with a
whole compiler, and stand-ins for functions that every node has.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import npm_packages

RUN_SECONDS = 60


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
    return OfficialClient(npm_packages.installed("actions-artifact"))
