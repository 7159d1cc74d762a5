"""Debian's own packages, unpacked by debootstrap: a machine to test on, or a base image where no registry answers."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

SUITE = "bookworm"
SLIM = tuple(f"/usr/share/{name}/*" for name in ("doc", "groff", "info", "linda", "lintian/overrides", "locale", "man"))
"""What the slim images of Debian leave out of every package, and of those that are installed on top of them."""


class CannotBuildError(Exception):
    """This machine cannot make others, whatever is tested on them."""


def archive(packages: Sequence[str], *, slim: bool = False) -> Path:
    """The packed file system of a minimal Debian with some packages, made once and kept in the user's cache.

    Args:
        packages: What it has besides the minimum.
        slim: Whether it is without documentation and translations, as the images of Debian that are called slim.
    """
    kept = cache() / f"{SUITE}-{'slim-' if slim else ''}{'-'.join(packages)}.tar.gz"
    if not kept.is_file():
        with tempfile.TemporaryDirectory(prefix="zelda-base-") as folder:
            root, included = Path(folder, "root"), f"--include={','.join(packages)}"
            words = ["debootstrap", "--variant=minbase", included, SUITE, str(root), _mirror()]
            done = subprocess.run(words, check=False, capture_output=True, text=True)
            if done.returncode:
                raise CannotBuildError(f"debootstrap failed: {(done.stdout + done.stderr)[-1000:].strip()}")
            for package in (root / "var/cache/apt/archives").glob("*.deb"):
                package.unlink()
            if slim:
                _slim(root)
            draft = kept.with_suffix(f".{os.getpid()}")
            pack = ["tar", "--directory", str(root), "--use-compress-program", "gzip -1", "--create"]
            subprocess.run([*pack, "--file", str(draft), "."], check=True)
            draft.replace(kept)
    return kept


def cache() -> Path:
    """Where archives and downloads are kept."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zelda-image-test"
    home.mkdir(parents=True, exist_ok=True)
    return home


def _slim(root: Path) -> None:
    """Leave out, now and for all packages to come; licences stay."""
    rules = [f"path-exclude {pattern}" for pattern in SLIM] + ["path-include /usr/share/doc/*/copyright"]
    (root / "etc/dpkg/dpkg.cfg.d/slim").write_text("\n".join(rules) + "\n", "ascii")
    for pattern in SLIM:
        for path in root.glob(f"{pattern[1:-1]}**/*"):
            if path.name != "copyright" and not (path.is_dir() and not path.is_symlink()):
                path.unlink()


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
