"""Debian's own packages, unpacked by debootstrap: a machine to test on, or a base image where no registry answers."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

SUITE = "bookworm"


class CannotBuildError(Exception):
    """This machine cannot make others, whatever is tested on them."""


def archive(packages: Sequence[str]) -> Path:
    """The packed file system of a minimal Debian with some packages, made once and kept in the user's cache."""
    kept = cache() / f"{SUITE}-{'-'.join(packages)}.tar.gz"
    if not kept.is_file():
        with tempfile.TemporaryDirectory(prefix="zelda-base-") as folder:
            _bootstrap(Path(folder, "root"), packages)
            draft = kept.with_suffix(f".{os.getpid()}")
            pack = ["tar", "--directory", f"{folder}/root", "--use-compress-program", "gzip -1", "--create"]
            subprocess.run([*pack, "--file", str(draft), "."], check=True)
            draft.replace(kept)
    return kept


def cache() -> Path:
    """Where archives and downloads are kept."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zelda-image-test"
    home.mkdir(parents=True, exist_ok=True)
    return home


def _bootstrap(root: Path, packages: Sequence[str]) -> None:
    words = ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", SUITE, str(root), _mirror()]
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


def missing(*programs: str) -> list[str]:
    """Programs that are needed and not installed."""
    return [name for name in programs if not shutil.which(name)]
