"""What builds and runs images: Docker where its daemon answers, else buildah in a chroot."""

import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from base_image import CannotBuildError, archive, cache, missing

WORKSPACE = "/github/workspace"
AUTHORITIES = "/etc/ssl/certs"
FIRST_INSTRUCTION = "LABEL org.opencontainers.image.title="
"""Of the Dockerfile's last stage."""
PACKAGES = ("ca-certificates", "python3", "python3-venv")
"""What is there in the stand-in for the base image."""
PASSED_ON = ("PIP_CERT", "PIP_INDEX_URL", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")


class BuildError(Exception):
    """The Dockerfile does not make an image."""


@dataclass(frozen=True)
class Order:
    """One run of the image, as `docker run` would be told."""

    arguments: tuple[str, ...]
    workspace: Path | None = None
    user: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[Path, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] | None = None
    image: str | None = None
    """Another than the one that was built."""

    def options(self) -> list[str]:
        """User, folders and variables, as both engines are told of them."""
        folders = {**({self.workspace: WORKSPACE} if self.workspace else {}), **self.mounts}
        words = [f"--user={self.user}"] if self.user else []
        words += [f"--volume={host}:{inside}" for host, inside in folders.items()]
        return words + [f"--env={name}={value}" for name, value in self.environment.items()]


class Docker:
    """A Docker engine, local or rootless."""

    def __init__(self) -> None:
        self._tag = f"zelda-image-test:{secrets.token_hex(4)}"
        self._name = ""

    @staticmethod
    def answers() -> bool:
        """Whether there is a daemon behind the client."""
        asked = ["docker", "version", "--format", "{{.Server.Version}}"]
        return bool(shutil.which("docker")) and subprocess.run(asked, capture_output=True, check=False).returncode == 0

    def base(self) -> str | None:
        """None: that of the Dockerfile."""
        return None

    def build(self, context: Path, base: str | None) -> None:
        """Build the Dockerfile of a folder, on another base where one is named."""
        chosen = ["--build-arg", f"BASE={base}"] if base else []
        _built(["docker", "build", "--tag", self._tag, *chosen, str(context)])

    def sizes(self) -> list[int]:
        """Bytes, unpacked, of each layer that the Dockerfile puts on its base, lowest first; without empty ones."""
        table = ["--no-trunc", "--human=false", "--format", "{{.Size}} {{.CreatedBy}}"]
        rows = _said("docker", "history", *table, self._tag)
        added: list[int] = []
        for row in rows.splitlines():
            size, _, instruction = row.partition(" ")
            added.insert(0, int(size))
            if FIRST_INSTRUCTION in instruction:
                return [each for each in added if each]
        raise BuildError(f"no layer of the image was made by {FIRST_INSTRUCTION}:\n{rows}")

    def command(self, order: Order) -> list[str]:
        """What to start for a run."""
        self._name = f"zelda-image-test-{secrets.token_hex(4)}"
        words = ["docker", "run", "--rm", "--name", self._name, *order.options()]
        image = order.image or self._tag
        if order.entrypoint is None:
            return [*words, image, *order.arguments]
        return [*words, f"--entrypoint={order.entrypoint[0]}", image, *order.entrypoint[1:], *order.arguments]

    def terminate(self, started: "subprocess.Popen[str]") -> None:
        """Send SIGTERM to the first process of the run that `command` gave last, as a runner does on cancelling."""
        subprocess.run(["docker", "kill", "--signal=TERM", self._name], check=True, capture_output=True)

    def close(self) -> None:
        """Remove image and containers."""
        subprocess.run(["docker", "image", "rm", "--force", self._tag], check=False, capture_output=True)


class Buildah:
    """buildah as root, in a chroot: users, mounts and environment are real, PID 1 and namespaces are not Docker's.

    Its images lie in a store of their own, so that nothing of a build is left, the layers that it keeps included.
    """

    def __init__(self) -> None:
        self._store = Path(tempfile.mkdtemp(prefix="store-", dir=cache()))
        self._buildah = ("buildah", "--root", f"{self._store}/root", "--runroot", f"{self._store}/run")
        self._tag = "localhost/zelda-image-test"
        self._base = ""

    def base(self) -> str:
        """Make an image of Debian's packages, which needs no registry; its name."""
        if os.geteuid() != 0:
            raise CannotBuildError("no Docker daemon answers, and buildah in a chroot needs root")
        if lacking := missing("buildah", "debootstrap"):
            install = f"apt-get install {' '.join(lacking)}"
            raise CannotBuildError(f"no Docker daemon answers, and there is no {' and no '.join(lacking)} ({install})")
        name = f"{self._tag}-base"
        try:
            container = self._said("from", "scratch")
            self._said("add", "--quiet", container, str(archive(PACKAGES, slim=True)), "/")
            self._said("run", "--isolation", "chroot", container, "--", "/bin/true")
            self._said("commit", "--quiet", "--rm", container, name)
        except subprocess.CalledProcessError as failed:
            raise CannotBuildError(f"buildah cannot work here: {failed.stderr.strip()}") from failed
        return name

    def build(self, context: Path, base: str | None) -> None:
        self._base = base or ""
        words = [*self._buildah, "bud", "--layers", "--isolation", "chroot", "--network", "host", "--tag", self._tag]
        words += ["--build-arg", f"BASE={base}"] if base else []
        # A certificate authority of this machine's own is trusted while building, and forgotten in the image.
        words += ["--volume", f"{AUTHORITIES}:{AUTHORITIES}:ro"] if Path(AUTHORITIES).is_dir() else []
        for name in filter(os.environ.get, PASSED_ON):
            words += ["--env", name, "--unsetenv", name]
        _built([*words, str(context)])

    def sizes(self) -> list[int]:
        below = len(self._layers(self._base))
        return [layer["size"] for layer in self._layers(self._tag)[below:]]

    def command(self, order: Order) -> list[str]:
        image = order.image or self._tag
        container = self._said("from", image)
        told = json.loads(self._said("inspect", "--type", "image", image))["OCIv1"]["config"]
        words = [*self._buildah, "run", "--isolation", "chroot", "--workingdir", told.get("WorkingDir", "/")]
        words += order.options()
        if order.entrypoint is None:
            return [*words, container, "--", *told["Entrypoint"], *(order.arguments or told["Cmd"])]
        return [*words, container, "--", *order.entrypoint, *order.arguments]

    def terminate(self, started: "subprocess.Popen[str]") -> None:
        (init,) = [pid for pid in _descendants(started.pid) if _name(pid) == "tini"]
        os.kill(init, 15)

    def close(self) -> None:
        for words in (("rm", "--all"), ("rmi", "--all", "--force")):
            subprocess.run([*self._buildah, *words], check=False, capture_output=True)
        # The store's driver mounts its folder upon itself.
        subprocess.run(["umount", f"{self._store}/root/overlay"], check=False, capture_output=True)
        shutil.rmtree(self._store)

    def _layers(self, image: str) -> list[dict[str, Any]]:
        shown = self._said("inspect", "--type", "image", "--format", "{{.Manifest}}", image)
        layers: list[dict[str, Any]] = json.loads(shown)["layers"]
        return layers

    def _said(self, *words: str) -> str:
        return _said(*self._buildah, *words)


Engine = Docker | Buildah
"""Builds one image and runs it; everything it made is gone after `close`."""


def _built(words: list[str]) -> None:
    """What a build prints is of interest only where it fails."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{done.stdout}\nthe image could not be built: exit code {done.returncode}")


def _said(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def _descendants(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for thread in threads for child in _read(thread).split()]
    return [each for child in children for each in (child, *_descendants(child))]


def _name(pid: int) -> str:
    return _read(Path(f"/proc/{pid}/comm")).strip()


def _read(path: Path) -> str:
    """A file below /proc; empty where the process has ended meanwhile."""
    try:
        return path.read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""
