"""Make the runner ready: Zelda in a folder of the job, and namespaces where the machine is thrown away.

main.js starts this with any Python 3. It prints the Python that has Zelda, and tells everything else on standard error.
Nothing is kept for later jobs, and nothing is put on the PATH of later steps.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements" / "runtime.txt"
PACKAGE = ROOT / "zelda_ci"
OLDEST = (3, 11)
SYSTEM = ("/usr/bin", "/usr/local/bin")
NAMES = ("python3", "python3.13", "python3.14", "python3.12", "python3.11")
PROBE = "import ensurepip, sys, venv; print(*sys.version_info[:3])"
RESTRICTION = "kernel.apparmor_restrict_unprivileged_userns"
CANCELLED = 130


class UnpreparedError(Exception):
    """What keeps Zelda from running here, and what would help."""


def main() -> int:
    """Prepare; returns the exit code of the step where that does not succeed."""
    try:
        python = install(os.environ)
        raise_level(os.environ)
    except UnpreparedError as problem:
        give_up(f"{problem}", "broken")
        return 2
    except KeyboardInterrupt:
        give_up("The run was cancelled before Zelda was installed.", "cancelled")
        return CANCELLED
    print(python)
    return 0


def install(environ: Mapping[str, str]) -> Path:
    """The Python of an environment with Zelda and its locked packages; made once in a job.

    Raises:
        UnpreparedError: There is no suitable Python, or the packages cannot be had.
    """
    temporary = environ.get("RUNNER_TEMP", "")
    if not Path(temporary).is_absolute():
        raise UnpreparedError("RUNNER_TEMP is not set: this is the step of a GitHub workflow.")
    base, version = find_python(environ)
    # The job's own folder, which the runner empties: no cache that another job could have filled.
    place = Path(temporary, "zelda-ci", digest(base, version))
    python, complete = place / "bin" / "python3", place / "complete"
    if complete.exists():
        return python
    say(f"Zelda is installed with Python {version} ({base}), its packages checked by hash.")
    shutil.rmtree(place, ignore_errors=True)
    demand([str(base), "-I", "-m", "venv", str(place)], "Zelda's Python environment could not be made")
    words = ["pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--require-hashes"]
    # Wheels only: nothing of a package is run to install it, and what pip has cached is checked by hash, too.
    words += ["--only-binary", ":all:", "--requirement", str(REQUIREMENTS)]
    demand([str(python), "-I", "-m", *words], "Zelda's packages could not be installed")
    shutil.copytree(PACKAGE, packages(python) / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    demand([str(python), "-I", "-m", "compileall", "-q", str(packages(python) / PACKAGE.name)], "Zelda is incomplete")
    complete.touch()
    return python


def find_python(environ: Mapping[str, str], system: Sequence[str] = SYSTEM) -> tuple[Path, str]:
    """A Python that Zelda runs on, and its version: the system's, else one of the tool cache, else one on PATH.

    Raises:
        UnpreparedError: There is none.
    """
    seen = []
    for candidate in candidates(environ, system):
        version = version_of(candidate)
        if version and tuple(map(int, version.split("."))) >= OLDEST:
            return candidate, version
        seen.append(f"{candidate} ({version or 'without venv'})")
    found = f" Found: {', '.join(seen)}." if seen else ""
    raise UnpreparedError(
        f"Zelda needs Python {'.'.join(map(str, OLDEST))} or newer with venv.{found} Put actions/setup-python with "
        "python-version: '3.13' before this step, or install the package python3-venv."
    )


def candidates(environ: Mapping[str, str], system: Sequence[str]) -> Iterator[Path]:
    """Where a Python may be, each once. PATH comes last: earlier steps, or what they built, may have changed it."""
    searched = [entry for entry in environ.get("SEARCHED", "").split(os.pathsep) if entry.startswith("/")]
    tools = Path(environ.get("RUNNER_TOOL_CACHE") or "/opt/hostedtoolcache")
    cached = sorted(tools.glob("Python/3.*/*"), key=newest)
    folders = [*map(Path, system), *(each / "bin" for each in cached), *map(Path, searched)]
    yield from dict.fromkeys(folder / name for folder in folders for name in NAMES if (folder / name).exists())


def newest(place: Path) -> list[int]:
    """Sorts folders `3.13.1/x64`, the newest version first."""
    return [-int(number) for number in re.findall(r"\d+", place.parent.name)]


def version_of(python: Path) -> str | None:
    """As in `3.13.1`; nothing where it cannot make environments."""
    try:
        done = subprocess.run([str(python), "-I", "-c", PROBE], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ".".join(done.stdout.split()) if done.returncode == 0 else None


def digest(base: Path, version: str) -> str:
    """What an environment depends on, in 16 characters."""
    found = hashlib.sha256(f"{base}\0{version}\0".encode() + REQUIREMENTS.read_bytes())
    for file in sorted(PACKAGE.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            found.update(f"{file.relative_to(PACKAGE)}\0".encode() + file.read_bytes())
    return found.hexdigest()[:16]


def packages(python: Path) -> Path:
    """The folder of an environment's packages."""
    (found,) = (python.parent.parent / "lib").glob("python3*/site-packages")
    return found


def raise_level(environ: Mapping[str, str], root: Path = Path("/")) -> None:
    """Let bubblewrap make namespaces, on a machine that is thrown away after the job.

    Nothing is changed on anybody's own machine, nor in a job's container, which could not be changed in this way.
    What does not succeed is told: Zelda itself says which level is left, and whether that is enough.

    Args:
        environ: RUNNER_ENVIRONMENT says whose machine it is, and PATH where its programs are.
        root: Of the file system.
    """
    if environ.get("RUNNER_ENVIRONMENT") != "github-hosted" or (root / ".dockerenv").exists():
        return
    commands = []
    if shutil.which("bwrap", path=environ.get("PATH")) is None:
        install = "apt-get install --quiet=2 --yes --no-install-recommends bubblewrap"
        # The machine's lists may be older than what the mirror still has.
        commands.append(f"{install} || {{ apt-get update --quiet=2 && {install}; }}")
    if restricted(root):
        commands.append(f"sysctl --quiet --write {RESTRICTION}=0")
    for command in commands:
        say(f"sudo: {command}")
        if problem := failure(["sudo", "-n", "sh", "-c", command], environ):
            remark("warning", "Isolation", f"The level of isolation could not be raised ({command}: {problem}).")


def failure(command: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Why a command did not succeed, in a few words; nothing where it did."""
    try:
        program = shutil.which(command[0], path=environ.get("PATH")) or command[0]
        done = subprocess.run([program, *command[1:]], env=environ, stdout=sys.stderr, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return f"exit code {done.returncode}" if done.returncode else None


def restricted(root: Path) -> bool:
    """Whether AppArmor keeps ordinary users from making namespaces."""
    try:
        return (root / "proc/sys" / RESTRICTION.replace(".", "/")).read_text().strip() == "1"
    except OSError:
        return False


def demand(command: Sequence[str], problem: str) -> None:
    """Run a command that has to succeed.

    Raises:
        UnpreparedError: It did not.
    """
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode:
        raise UnpreparedError(f"{problem}: `{' '.join(command[:5])} ...` ended with exit code {done.returncode}.")


def give_up(why: str, verdict: str) -> None:
    """Say why in the log and the summary, and the verdict as the output of the step."""
    remark("error", "Zelda could not do its work", why)
    for name, text in (
        ("GITHUB_OUTPUT", f"verdict={verdict}\n"),
        ("GITHUB_STEP_SUMMARY", f"### Zelda could not do its work\n\n{why}\n"),
    ):
        if os.environ.get(name):
            with Path(os.environ[name]).open("a", encoding="utf-8") as file:
                file.write(text)


def remark(severity: str, title: str, text: str) -> None:
    """An annotation, in the runner's spelling."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    say(f"::{severity} title={title}::{escaped}")


def say(line: str) -> None:
    """For the log of the step."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
