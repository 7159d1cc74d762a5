"""A machine with nothing but a minimal Debian, Python, git and make: a folder, and namespaces for what runs in it."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import base_image
from base_image import CannotBuildError

PACKAGES = ("ca-certificates", "python3", "python3-venv", "git", "make")
PROGRAMS = ("debootstrap", "unshare", "setpriv", "mount", "git", "tar")
FIRST_PROCESS = Path(__file__).with_name("first_process.sh")
NAMESPACES = ("--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--propagation", "private")
USER, UID = "dev", 1000
SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NETWORK = ("/etc/resolv.conf", "/etc/hosts")
PASSED_ON = (
    "PIP_CERT", "PIP_DEFAULT_TIMEOUT", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_TRUSTED_HOST", "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "WORKERS",
)  # fmt: skip
"""How this machine reaches the package index."""


@dataclass(frozen=True)
class FreshMachine:
    """Its files lie in a folder; what is mounted at /mnt/NAME inside lies in a folder of that name beside it."""

    root: Path

    def command(self, user: str, script: str, variables: Mapping[str, str]) -> list[str]:
        """What runs a shell script there, and ends with all that it started when its parent ends."""
        home = "/root" if user == "root" else f"/home/{user}"
        environment = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
        environment |= {"HOME": home, "USER": user, "PATH": SEARCHED, **variables}
        inside = ["env", "-i", *(f"{name}={value}" for name, value in environment.items()), "sh", "-euc", script]
        first = ["sh", str(FIRST_PROCESS), str(self.root), user, *inside]
        return ["setpriv", "--pdeathsig", "KILL", "unshare", *NAMESPACES, *first]

    def run(self, user: str, script: str) -> None:
        """Run what only prepares the machine.

        Raises:
            CannotBuildError: It failed, and this is what it said.
        """
        done = subprocess.run(self.command(user, script, {}), capture_output=True, text=True, check=False)
        if done.returncode:
            raise CannotBuildError(f"{script}: {(done.stdout + done.stderr)[-1000:].strip()}")

    def install(self, package: str) -> None:
        """Add a package of Debian's."""
        quiet = "export DEBIAN_FRONTEND=noninteractive; apt-get -qq update"
        self.run("root", f"{quiet} && apt-get -qq install --no-install-recommends {package}")

    def clone(self, checkout: Path, place: str, user: str) -> None:
        """A clean clone of what is committed, owned by a user."""
        target = self.root / place.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", suffix=".gitconfig") as trusting:
            # Somebody else's checkout, where CI is root and the runner is not.
            trusting.write("[safe]\n\tdirectory = *\n")
            trusting.flush()
            environment = {**os.environ, "GIT_CONFIG_GLOBAL": trusting.name}
            words = ["git", "clone", "--quiet", "--no-hardlinks", str(checkout), str(target)]
            subprocess.run(words, env=environment, check=True)
        self.run("root", f'chown -R {user}: "{Path(place).parent}"')


@contextmanager
def made(mounts: Mapping[str, Path]) -> Iterator[FreshMachine]:
    """A new machine, gone in the end with everything that it did.

    Args:
        mounts: What it sees of this machine, by name below /mnt.

    Raises:
        CannotBuildError: It cannot be made here.
    """
    check()
    # Not where the machine's own temporary files would count as ours.
    with _folder() as folder:
        root = folder / "root"
        root.mkdir(mode=0o755)
        unpack = ["tar", "--extract", "--numeric-owner", "--directory", str(root), "--file"]
        subprocess.run([*unpack, str(base_image.archive(PACKAGES))], check=True)
        for file in (*NETWORK, *(value for name in PASSED_ON if Path(value := os.environ.get(name, "")).is_file())):
            _copy(Path(file), root)
        for name, place in mounts.items():
            (folder / "root.mounts").mkdir(exist_ok=True)
            (folder / "root.mounts" / name).symlink_to(place)
            (root / "mnt" / name).mkdir()
        machine = FreshMachine(root)
        machine.run("root", f"useradd --create-home --uid {UID} --shell /bin/bash {USER}")
        yield machine


@contextmanager
def _folder() -> Iterator[Path]:
    """Where the machine lies; whoever was killed there may need a moment to be gone."""
    made = Path(tempfile.mkdtemp(prefix="zelda-fresh-", dir="/var/tmp"))
    made.chmod(0o755)
    try:
        yield made
    finally:
        deadline = time.monotonic() + 10
        while made.exists() and time.monotonic() < deadline:
            shutil.rmtree(made, ignore_errors=True)


def check() -> None:
    """Whether a machine can be made here.

    Raises:
        CannotBuildError: Why not.
    """
    if os.geteuid() != 0:
        raise CannotBuildError("only root can make a machine: run it as root")
    if missing := base_image.missing(*PROGRAMS):
        raise CannotBuildError(f"there is no {' and no '.join(missing)} here")
    trial = ["unshare", *NAMESPACES, "mount", "-t", "tmpfs", "trial", "/mnt"]
    tried = subprocess.run(trial, check=False, capture_output=True, text=True)
    if tried.returncode:
        raise CannotBuildError(f"nothing can be mounted here: {tried.stderr.strip()}")


def _copy(file: Path, root: Path) -> None:
    if file.is_file():
        target = root / str(file).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(file, target)
