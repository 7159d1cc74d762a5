"""What builds and runs images: Docker where its daemon answers, else buildah in a chroot."""

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from base_image import CannotBuildError

WORKSPACE = "/github/workspace"
AUTHORITIES = "/etc/ssl/certs"
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

    def folders(self) -> dict[Path, str]:
        """Host folder → where it appears."""
        return {**({self.workspace: WORKSPACE} if self.workspace else {}), **self.mounts}


class Engine(Protocol):
    """Builds one image and runs it; everything it made is gone after `close`."""

    def build(self, context: Path, base: str | None) -> None:
        """Build the Dockerfile of a folder, on another base where one is named."""

    def size(self) -> int:
        """Bytes of the image, unpacked."""

    def command(self, order: Order) -> list[str]:
        """What to start for a run."""

    def terminate(self, started: "subprocess.Popen[str]") -> None:
        """Send SIGTERM to the first process of the run that `command` gave last, as a runner does on cancelling."""

    def close(self) -> None:
        """Remove image and containers."""


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

    def build(self, context: Path, base: str | None) -> None:
        chosen = ["--build-arg", f"BASE={base}"] if base else []
        _built(["docker", "build", "--tag", self._tag, *chosen, str(context)])

    def size(self) -> int:
        shown = ["docker", "image", "inspect", "--format", "{{.Size}}", self._tag]
        return int(subprocess.run(shown, check=True, capture_output=True, text=True).stdout)

    def command(self, order: Order) -> list[str]:
        self._name = f"zelda-image-test-{secrets.token_hex(4)}"
        words = ["docker", "run", "--rm", "--name", self._name]
        words += [f"--user={order.user}"] if order.user else []
        words += [f"--volume={host}:{inside}" for host, inside in order.folders().items()]
        words += [f"--env={name}={value}" for name, value in order.environment.items()]
        if order.entrypoint is None:
            return [*words, self._tag, *order.arguments]
        return [*words, f"--entrypoint={order.entrypoint[0]}", self._tag, *order.entrypoint[1:], *order.arguments]

    def terminate(self, started: "subprocess.Popen[str]") -> None:
        subprocess.run(["docker", "kill", "--signal=TERM", self._name], check=True, capture_output=True)

    def close(self) -> None:
        subprocess.run(["docker", "image", "rm", "--force", self._tag], check=False, capture_output=True)


class Buildah:
    """buildah as root, in a chroot: users, mounts and environment are real, PID 1 and namespaces are not Docker's."""

    def __init__(self) -> None:
        self._tag = f"localhost/zelda-image-test:{secrets.token_hex(4)}"
        self._containers: list[str] = []
        self._images: list[str] = []

    def import_base(self, archive: Path) -> str:
        """Make an image of a packed file system; its name."""
        name = f"{self._tag}-base"
        try:
            container = _said("buildah", "from", "scratch")
            self._containers.append(container)
            _said("buildah", "add", "--quiet", container, str(archive), "/")
            _said("buildah", "run", "--isolation", "chroot", container, "--", "/bin/true")
            _said("buildah", "commit", "--quiet", container, name)
            self._images.insert(0, name)
        except subprocess.CalledProcessError as failed:
            raise CannotBuildError(f"buildah cannot work here: {failed.stderr.strip()}") from failed
        return name

    def build(self, context: Path, base: str | None) -> None:
        words = ["buildah", "bud", "--isolation", "chroot", "--network", "host", "--tag", self._tag]
        words += ["--build-arg", f"BASE={base}"] if base else []
        # A certificate authority of this machine's own is trusted while building, and forgotten in the image.
        words += ["--volume", f"{AUTHORITIES}:{AUTHORITIES}:ro"] if Path(AUTHORITIES).is_dir() else []
        for name in filter(os.environ.get, PASSED_ON):
            words += ["--env", name, "--unsetenv", name]
        _built([*words, str(context)])
        self._images.insert(0, self._tag)

    def size(self) -> int:
        manifest = json.loads(_said("buildah", "inspect", "--type", "image", "--format", "{{.Manifest}}", self._tag))
        return sum(layer["size"] for layer in manifest["layers"])

    def command(self, order: Order) -> list[str]:
        container = _said("buildah", "from", self._tag)
        self._containers.append(container)
        told = json.loads(_said("buildah", "inspect", "--type", "image", self._tag))["OCIv1"]["config"]
        words = ["buildah", "run", "--isolation", "chroot", "--workingdir", told["WorkingDir"]]
        words += [f"--user={order.user}"] if order.user else []
        words += [f"--volume={host}:{inside}" for host, inside in order.folders().items()]
        words += [f"--env={name}={value}" for name, value in order.environment.items()]
        entrypoint = told["Entrypoint"] if order.entrypoint is None else order.entrypoint
        return [*words, container, "--", *entrypoint, *(order.arguments or told["Cmd"])]

    def terminate(self, started: "subprocess.Popen[str]") -> None:
        (init,) = [pid for pid in _descendants(started.pid) if _name(pid) == "tini"]
        os.kill(init, 15)

    def close(self) -> None:
        for container in self._containers:
            subprocess.run(["buildah", "rm", container], check=False, capture_output=True)
        for image in self._images:
            subprocess.run(["buildah", "rmi", "--force", image], check=False, capture_output=True)


def _built(words: list[str]) -> None:
    """What a build prints is of interest only where it fails."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{done.stdout}\nthe image could not be built: exit code {done.returncode}")


def _said(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def _descendants(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for thread in threads for child in thread.read_text("ascii").split()]
    return [each for child in children for each in (child, *_descendants(child))]


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text("utf-8").strip()
