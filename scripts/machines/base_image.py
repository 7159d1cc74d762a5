"""A stand-in for the base image where no registry can be reached: Debian's own packages, unpacked by debootstrap."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SUITE = "bookworm"
PACKAGES = ("ca-certificates", "python3", "python3-venv")


class CannotBuildError(Exception):
    """This machine cannot build images, whatever the Dockerfile says."""


def archive() -> Path:
    """The packed file system, made once and kept in the user's cache."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zelda-image-test"
    kept = home / f"{SUITE}-{'-'.join(PACKAGES)}.tar.gz"
    if not kept.is_file():
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="zelda-image-test-") as folder:
            _bootstrap(Path(folder, "root"))
            draft = kept.with_suffix(f".{os.getpid()}")
            pack = ["tar", "--directory", f"{folder}/root", "--use-compress-program", "gzip -1", "--create"]
            subprocess.run([*pack, "--file", str(draft), "."], check=True)
            draft.replace(kept)
    return kept


def _bootstrap(root: Path) -> None:
    words = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(root), _mirror()]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise CannotBuildError(f"debootstrap failed: {(done.stdout + done.stderr)[-1000:].strip()}")
    for package in (root / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()


def _mirror() -> str:
    """Where this machine's own apt gets Debian from."""
    wanted = ["apt-get", "indextargets", "--format", "$(CODENAME) $(ORIGIN) $(LABEL) $(REPO_URI)"]
    shown = subprocess.run(wanted, check=True, capture_output=True, text=True).stdout
    for line in shown.splitlines():
        codename, origin, label, site = (*line.split(), "", "", "", "")[:4]
        if (codename, origin, label) == (SUITE, "Debian", "Debian"):
            return site
    return "http://deb.debian.org/debian"


def missing() -> list[str]:
    """Programs that are needed and not installed."""
    return [name for name in ("buildah", "debootstrap") if not shutil.which(name)]
