"""The README's commands on machines that have nothing: `python3 scripts/machines/fresh_test.py [ARRANGEMENT...]`.

Each arrangement is a minimal Debian with Python, git and make, and a clean clone of what is committed, in a path with a
space. Needs root, debootstrap and nothing else. Exit code 0: all well; 1: a command failed; 77: no machine can be made
here, and nothing was shown.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import base_image
import fresh_machine
from fresh_machine import FreshMachine

SKIPPED = 77
REPOSITORY = Path(__file__).resolve().parents[2]
DOWNLOADS, REPORTS = "downloads", "reports"
README = ("make demo", "make test")
# What this arrangement changes, by tests/arrangements.py.
CHANGED = "make isolation"
HOME_OF_TOOLCHAINS = """
apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends nodejs cargo
cd /root && chmod 700 . && mkdir -p .pyenv/versions/3/bin .pyenv/versions/3/lib .nvm/versions/node/bin .cargo/bin
python=$(basename "$(realpath /usr/bin/python3)")
cp -a /usr/lib/"$python" .pyenv/versions/3/lib/ && cp /usr/bin/"$python" .pyenv/versions/3/bin/
ln -s "$python" .pyenv/versions/3/bin/python3
mv "$(realpath /usr/bin/node)" .nvm/versions/node/bin/node && rm -f /usr/bin/node
mv /usr/bin/cargo .cargo/bin/
"""
"""Puts Python, Node and cargo where version managers have them for root, whose home is closed to others; the system's
own Python stays further down PATH, as in most containers."""


@dataclass(frozen=True)
class Arrangement:
    """A user, a place of the checkout, what is installed, and the commands that are run."""

    user: str
    place: str
    packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = (*README, CHANGED)
    preparation: str = ""
    """What root does before, beside installing packages."""
    path: str = ""
    """Folders of programs before those of the system, separated by colons."""


ARRANGEMENTS: Mapping[str, Arrangement] = {
    # As in dev containers: root's toolchains lie in its home, which no other user may enter.
    "root-closed-home": Arrangement(
        "root",
        "/srv/some projects/zelda ci",
        preparation=HOME_OF_TOOLCHAINS,
        path="/root/.pyenv/versions/3/bin:/root/.nvm/versions/node/bin:/root/.cargo/bin",
    ),
    "user": Arrangement("dev", "/home/dev/my projects/zelda ci"),
    "user-bubblewrap": Arrangement(
        "dev", "/home/dev/my projects/zelda ci", packages=("bubblewrap",), commands=("make demo", CHANGED)
    ),
    # As on GitHub's runners: an ordinary user who may do everything, and no bubblewrap at first.
    "runner": Arrangement(
        "dev",
        "/home/dev/work/zelda ci",
        packages=("sudo", "nodejs"),
        commands=("make .venv/dev && .venv/bin/pytest -q tests/scenarios/test_runner_action.py",),
        preparation="echo 'dev ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/dev",
    ),
    "root": Arrangement("root", "/srv/some projects/zelda ci"),
    # Nobody else can read the checkout.
    "root-closed": Arrangement("root", "/root/my projects/zelda ci", commands=("make demo", CHANGED)),
}
USUAL = ("root-closed-home", "user", "user-bubblewrap", "runner")


def main() -> int:
    """Run, report."""
    parser = argparse.ArgumentParser(prog="fresh", description="Run the README's commands on fresh machines.")
    parser.add_argument("names", nargs="*", metavar="ARRANGEMENT", help=f"of {', '.join(ARRANGEMENTS)}")
    parser.add_argument(
        "--outcomes", type=Path, help="folder for what ran and what was skipped, as scripts/unrun reads"
    )
    parser.add_argument("--command", action="append", help="in place of the arrangement's own, in its clone")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(ARRANGEMENTS):
        parser.error(f"no such arrangement: {', '.join(sorted(unknown))}")
    # As on Ctrl+C: what was mounted, unpacked and started goes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    failed = []
    try:
        for name in asked.names or USUAL:
            arrangement = ARRANGEMENTS[name]
            if not passes(name, arrangement, asked.command or arrangement.commands, asked.outcomes):
                failed.append(name)
    except base_image.CannotBuildError as reason:
        print(f"fresh machines skipped: {reason}")
        print("Not shown here: that the README's commands work without bubblewrap, as root and as an ordinary user.")
        return SKIPPED
    print(f"fresh machines: failed: {', '.join(failed)}" if failed else "fresh machines: all well")
    return 1 if failed else 0


def passes(name: str, arrangement: Arrangement, commands: tuple[str, ...], outcomes: Path | None) -> bool:
    """Whether every command ends with 0; the next is not tried where one fails."""
    with tempfile.TemporaryDirectory(prefix="zelda-fresh-") as folder:
        reports, downloads = Path(folder, REPORTS), Path(folder, DOWNLOADS)
        reports.mkdir()
        downloads.mkdir()
        with fresh_machine.made({REPORTS: reports, DOWNLOADS: downloads}) as machine:
            lend(downloads)
            for package in arrangement.packages:
                machine.install(package)
            if arrangement.preparation:
                machine.run("root", arrangement.preparation)
            machine.clone(REPOSITORY, arrangement.place, arrangement.user)
            machine.run("root", f"chown -R {arrangement.user}: /mnt/{REPORTS} /mnt/{DOWNLOADS}")
            variables = {"PIP_CACHE_DIR": f"/mnt/{DOWNLOADS}", "ZELDA_TEST_OUTCOMES": f"/mnt/{REPORTS}/{name}.json"}
            well = all(ends_well(name, machine, arrangement, command, variables) for command in commands)
        give_back(downloads)
        if outcomes and (told := reports / f"{name}.json").is_file():
            outcomes.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(told, outcomes / told.name)
    return well


def ends_well(
    name: str, machine: FreshMachine, arrangement: Arrangement, command: str, variables: Mapping[str, str]
) -> bool:
    """Run one command, and show what it says as it says it."""
    begun = time.monotonic()
    print(f"fresh {name} | $ {command}", flush=True)
    path = f'PATH="{arrangement.path}:$PATH" && ' if arrangement.path else ""
    words = machine.command(arrangement.user, f'cd "{arrangement.place}" && {path}{command}', variables)
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout
        try:
            for line in process.stdout:
                sys.stdout.write(f"fresh {name} | {line.decode('utf-8', 'replace')}")
                sys.stdout.flush()
        except BaseException:
            process.kill()
            raise
    mark = "PASS" if process.returncode == 0 else f"FAIL (exit code {process.returncode})"
    print(f"fresh {name} | {mark}: {command}, {time.monotonic() - begun:.0f} s", flush=True)
    return process.returncode == 0


def lend(downloads: Path) -> None:
    """What pip has downloaded before: a copy, since pip only uses what is its user's own."""
    kept = base_image.cache() / "pip"
    if kept.is_dir():
        shutil.copytree(kept, downloads, dirs_exist_ok=True)


def give_back(downloads: Path) -> None:
    """Keep what pip has downloaded for the next machine."""
    kept = base_image.cache() / "pip"
    draft = kept.with_name(f"pip.{os.getpid()}")
    shutil.copytree(downloads, draft)
    shutil.rmtree(kept, ignore_errors=True)
    draft.rename(kept)


if __name__ == "__main__":
    sys.exit(main())
