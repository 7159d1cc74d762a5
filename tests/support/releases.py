"""A repository from which releases are made, its remote, and the step that `.github/workflows/release.yml` calls."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "scripts" / "release.py"
IMAGE = f"ghcr.io/zelda-ci/zelda-ci@sha256:{'a' * 64}"
OTHER_IMAGE = f"ghcr.io/zelda-ci/zelda-ci@sha256:{'b' * 64}"
WHO = ["-c", "user.name=Dev", "-c", "user.email=dev@example.com"]
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}
"""As on a runner: nobody's git configuration."""


def changelog(version: str, *, unreleased: str = "", day: str = " - 2026-01-31", entry: str = "- It works.") -> str:
    """A changelog whose newest section is that version's."""
    return (
        f"# Changelog\n\n## [Unreleased]\n\n{unreleased}\n## [{version}]{day}\n\n### Added\n\n{entry}\n\n"
        "## [0.0.1] - 2025-01-01\n\n- First.\n\n"
        f"[Unreleased]: https://github.com/zelda-ci/zelda-ci/compare/v{version}...HEAD\n"
        f"[{version}]: https://github.com/zelda-ci/zelda-ci/releases/tag/v{version}\n"
        "[0.0.1]: https://github.com/zelda-ci/zelda-ci/releases/tag/v0.0.1\n"
    )


@dataclass
class ReleaseRepository:
    """A bare remote and the clone of a maintainer."""

    folder: Path

    @property
    def remote(self) -> Path:
        return self.folder / "remote.git"

    @property
    def clone(self) -> Path:
        return self.folder / "clone"

    @classmethod
    def make(cls, folder: Path) -> "ReleaseRepository":
        """One with a first commit on main, of version 1.0.0."""
        made = cls(folder)
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", made.remote], check=True)
        subprocess.run(["git", "init", "--quiet", "--initial-branch=main", made.clone], check=True)
        made.git("remote", "add", "origin", str(made.remote))
        for name in ("action.yml", "Dockerfile", ".github/release/docker-compose.yml"):
            made.write(name, (REPOSITORY / name).read_text("utf-8"))
        made.commit("1.0.0")
        return made

    def git(self, *words: str, where: Path | None = None) -> str:
        """What git prints in the clone."""
        command = ["git", *WHO, *words]
        done = subprocess.run(
            command, cwd=where or self.clone, env=ENVIRONMENT, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def write(self, name: str, text: str) -> None:
        path = self.clone / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def commit(self, version: str, *, branch: str = "main", **section: str) -> str:
        """Commit a version to a branch and push it; the commit."""
        self.write("zelda_ci/__init__.py", f'"""Zelda CI."""\n\n__version__ = "{version}"\n')
        self.write("CHANGELOG.md", changelog(version, **section))
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", f"Prepare {version}")
        self.git("push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
        return self.git("rev-parse", "HEAD")

    def checkout(self, commit: str, *, whole: bool = False) -> Path:
        """What actions/checkout leaves: one commit, or with all branches and their history."""
        path = self.folder / f"checkout-{len(list(self.folder.iterdir()))}"
        self.git("init", "--quiet", str(path))
        self.git("remote", "add", "origin", self.remote.as_uri(), where=path)
        if whole:
            everything = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
            self.git("fetch", "--quiet", "--no-tags", "origin", *everything, where=path)
        else:
            self.git("fetch", "--quiet", "--no-tags", "--depth=1", "origin", commit, where=path)
        self.git("checkout", "--quiet", "--detach", commit, where=path)
        return path

    def tags(self) -> dict[str, str]:
        """Tag → commit, in the remote."""
        listed = self.git("for-each-ref", "--format=%(refname:lstrip=2) %(objectname) %(*objectname)", "refs/tags",
                          where=self.remote)  # fmt: skip
        rows = [line.split() for line in listed.splitlines()]
        return {name: objects[-1] for name, *objects in rows}


@dataclass(frozen=True)
class Step:
    """What a step of the release said."""

    code: int
    out: str
    err: str

    @property
    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.out.splitlines() if "=" in line)


def step(where: Path, name: str, version: str, *words: str) -> Step:
    """Run one step in a checkout, for `release/vVERSION`."""
    trigger = version if "v" in version else f"release/v{version}"
    command = [sys.executable, str(SCRIPT), name, trigger, *words]
    done = subprocess.run(command, cwd=where, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    return Step(done.returncode, done.stdout, done.stderr)
