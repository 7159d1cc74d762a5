"""The README's commands on machines that have nothing: `python3 scripts/machines/fresh_test.py [ARRANGEMENT...]`.

Each machine is a minimal Debian with Python, git and make, and a clean clone of what is committed, in a path with a
space. An arrangement may go on with the machine of the one before. Needs root, debootstrap and nothing else. Exit code
0: all well; 1: a command failed; 77: no machine can be made here, and nothing was shown.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import base_image
import fresh_machine
from fresh_machine import FreshMachine

SKIPPED = 77
REPOSITORY = Path(__file__).resolve().parents[2]
DOWNLOADS, REPORTS = "downloads", "reports"
README = ("make demo", "make test")
# Tests of what this arrangement changes, by tests/arrangements.py.
CHANGED = "make isolation CHANGES='{}'"
CHECKOUT = "/home/dev/my projects/zelda ci"
HOME_OF_TOOLCHAINS = """
apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends nodejs
cd /tmp && apt-get -qq download cargo && dpkg-deb --extract cargo_*.deb cargo && rm cargo_*.deb
cd /root && chmod 700 . && mkdir -p .pyenv/versions/3/bin .pyenv/versions/3/lib .nvm/versions/node/bin .cargo/bin
python=$(basename "$(realpath /usr/bin/python3)")
cp -a /usr/lib/"$python" .pyenv/versions/3/lib/ && cp /usr/bin/"$python" .pyenv/versions/3/bin/
ln -s "$python" .pyenv/versions/3/bin/python3
mv "$(realpath /usr/bin/node)" .nvm/versions/node/bin/node && rm -f /usr/bin/node
mv /tmp/cargo/usr/bin/cargo .cargo/bin/ && rm -r /tmp/cargo
"""
"""Puts Python, Node and cargo where version managers have them for root, whose home is closed to others; the system's
own Python stays further down PATH, as in most containers. Nothing is compiled: cargo is there without its compiler."""


@dataclass(frozen=True)
class Arrangement:
    """A user, a place of the checkout, what is installed, and the commands that are run."""

    user: str
    place: str
    packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = README
    preparation: str = ""
    """What root does before, beside installing packages."""
    path: str = ""
    """Folders of programs before those of the system, separated by colons."""
    after: str = ""
    """The arrangement whose machine and checkout this one takes over, if that was run just before."""


ARRANGEMENTS: Mapping[str, Arrangement] = {
    # As in dev containers: root's toolchains lie in its home, which no other user may enter.
    "root-closed-home": Arrangement(
        "root",
        "/srv/some projects/zelda ci",
        commands=(*README, CHANGED.format("isolation owner root")),
        preparation=HOME_OF_TOOLCHAINS,
        path="/root/.pyenv/versions/3/bin:/root/.nvm/versions/node/bin:/root/.cargo/bin",
    ),
    # The tests of `make test`, whose lint and types are the same for every user.
    "user": Arrangement("dev", CHECKOUT, commands=("make demo", "make unit", CHANGED.format("isolation owner"))),
    # As on GitHub's runners: an ordinary user who may do everything, and no bubblewrap at first.
    "runner": Arrangement(
        "dev",
        CHECKOUT,
        packages=("sudo", "nodejs"),
        commands=("make .venv/dev && .venv/bin/pytest -q tests/scenarios/test_runner_action.py",),
        preparation="echo 'dev ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/dev",
        after="user",
    ),
    "user-bubblewrap": Arrangement(
        "dev",
        CHECKOUT,
        packages=("bubblewrap",),
        commands=(CHANGED.format("isolation"),),
        preparation="rm -f /etc/sudoers.d/dev",
        after="runner",
    ),
    # Nobody else can read the checkout.
    "root-closed": Arrangement("root", "/root/my projects/zelda ci", commands=("make demo", "make isolation")),
}
USUAL = ("root-closed-home", "user", "runner", "user-bubblewrap")


def main() -> int:
    """Run, report."""
    parser = argparse.ArgumentParser(prog="fresh", description="Run the README's commands on fresh machines.")
    parser.add_argument("names", nargs="*", metavar="ARRANGEMENT", help=f"of {', '.join(ARRANGEMENTS)}")
    parser.add_argument(
        "--outcomes", type=Path, help="folder for what ran and what was skipped, as scripts/unrun reads"
    )
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(ARRANGEMENTS):
        parser.error(f"no such arrangement: {', '.join(sorted(unknown))}")
    # As on Ctrl+C: what was mounted, unpacked and started goes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    failed: list[str] = []
    groups: list[list[str]] = []
    for name in asked.names or USUAL:
        if groups and ARRANGEMENTS[name].after == groups[-1][-1]:
            groups[-1].append(name)
        else:
            groups.append([name])
    try:
        for group in groups:
            with machine_for(ARRANGEMENTS[group[0]]) as (machine, reports):
                failed += [name for name in group if not passes(name, machine)]
                if asked.outcomes:
                    shutil.copytree(reports, asked.outcomes, dirs_exist_ok=True)
    except base_image.CannotBuildError as reason:
        print(f"fresh machines skipped: {reason}")
        print("Not shown here: that the README's commands work without bubblewrap, as root and as an ordinary user.")
        return SKIPPED
    print(f"fresh machines: failed: {', '.join(failed)}" if failed else "fresh machines: all well")
    return 1 if failed else 0


@contextmanager
def machine_for(arrangement: Arrangement) -> Iterator[tuple[FreshMachine, Path]]:
    """A new machine with a clone of what is committed, and the folder of what it reports."""
    with tempfile.TemporaryDirectory(prefix="zelda-fresh-") as made:
        reports = Path(made)
        # pip uses only what is its user's own.
        downloads = base_image.cache() / f"pip-{arrangement.user}"
        downloads.mkdir(exist_ok=True)
        with fresh_machine.made({REPORTS: reports, DOWNLOADS: downloads}) as machine:
            machine.clone(REPOSITORY, arrangement.place, arrangement.user)
            machine.run("root", f"chown -R {arrangement.user}: /mnt/{REPORTS} /mnt/{DOWNLOADS}")
            yield machine, reports


def passes(name: str, machine: FreshMachine) -> bool:
    """Whether every command ends with 0; the next is not tried where one fails."""
    arrangement = ARRANGEMENTS[name]
    for package in arrangement.packages:
        machine.install(package)
    if arrangement.preparation:
        machine.run("root", arrangement.preparation)
    variables = {"PIP_CACHE_DIR": f"/mnt/{DOWNLOADS}", "ZELDA_TEST_OUTCOMES": f"/mnt/{REPORTS}/{name}.json"}
    return all(ends_well(name, machine, arrangement, command, variables) for command in arrangement.commands)


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


if __name__ == "__main__":
    sys.exit(main())
