"""The README's commands on machines that have nothing: `python3 scripts/machines/fresh_test.py [ARRANGEMENT...]`.

Each machine is a minimal Debian with Python, git and make, and a clean clone of what is committed, in a path with a
space. An arrangement may go on with the machine of the one before. Needs root, debootstrap and nothing else. Exit code
0: all well; 1: a command failed; 77: no machine can be made here, and nothing was shown.
"""

import argparse
import os
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
from base_image import CannotBuildError

SKIPPED = 77
REPOSITORY = Path(__file__).resolve().parents[2]
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
    groups: list[list[str]] = [[""]]
    for name in asked.names or USUAL:
        goes_on = ARRANGEMENTS[name].after == groups[-1][-1] != ""
        groups = [*groups[:-1], [*groups[-1], name]] if goes_on else [*groups, [name]]
    try:
        for group in groups[1:]:
            with machine_for(ARRANGEMENTS[group[0]]) as (machine, reports):
                failed += [name for name in group if not passes(name, machine)]
                if asked.outcomes:
                    shutil.copytree(reports, asked.outcomes, dirs_exist_ok=True)
    except CannotBuildError as reason:
        print(f"fresh machines skipped: {reason}")
        print("Not shown here: that the README's commands work without bubblewrap, as root and as an ordinary user.")
        return SKIPPED
    print(f"fresh machines: failed: {', '.join(failed)}" if failed else "fresh machines: all well")
    return 1 if failed else 0


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
    if os.geteuid() != 0:
        raise CannotBuildError("only root can make a machine: run it as root")
    if missing := base_image.missing(*PROGRAMS):
        raise CannotBuildError(f"there is no {' and no '.join(missing)} here")
    trial = ["unshare", *NAMESPACES, "mount", "-t", "tmpfs", "trial", "/mnt"]
    tried = subprocess.run(trial, check=False, capture_output=True, text=True)
    if tried.returncode:
        raise CannotBuildError(f"nothing can be mounted here: {tried.stderr.strip()}")
    # Not where the machine's own temporary files would count as ours.
    folder = Path(tempfile.mkdtemp(prefix="zelda-fresh-", dir="/var/tmp"))
    folder.chmod(0o755)
    try:
        root = folder / "root"
        root.mkdir(mode=0o755)
        unpack = ["tar", "--extract", "--numeric-owner", "--directory", str(root), "--file"]
        subprocess.run([*unpack, str(base_image.archive(PACKAGES))], check=True)
        for file in map(Path, (*NETWORK, *(os.environ.get(name, "") for name in PASSED_ON))):
            if file.is_file():
                target = root / str(file).lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                shutil.copyfile(file, target)
        for name, place in mounts.items():
            (folder / "root.mounts").mkdir(exist_ok=True)
            (folder / "root.mounts" / name).symlink_to(place)
            (root / "mnt" / name).mkdir()
        machine = FreshMachine(root)
        machine.run("root", f"useradd --create-home --uid {UID} --shell /bin/bash {USER}")
        yield machine
    finally:
        # Whoever was killed there may need a moment to be gone.
        deadline = time.monotonic() + 10
        while folder.exists() and time.monotonic() < deadline:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def machine_for(arrangement: Arrangement) -> Iterator[tuple[FreshMachine, Path]]:
    """A new machine with a clone of what is committed, and the folder of what it reports."""
    with tempfile.TemporaryDirectory(prefix="zelda-fresh-") as folder:
        reports = Path(folder)
        # pip uses only what is its user's own.
        downloads = base_image.cache() / f"pip-{arrangement.user}"
        downloads.mkdir(exist_ok=True)
        with made({REPORTS: reports, DOWNLOADS: downloads}) as machine:
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
    begin = f'cd "{arrangement.place}"' + (f' && PATH="{arrangement.path}:$PATH"' if arrangement.path else "")
    for command in arrangement.commands:
        begun = time.monotonic()
        print(f"fresh {name} | $ {command}", flush=True)
        words = machine.command(arrangement.user, f"{begin} && {command}", variables)
        pipe, both = subprocess.PIPE, subprocess.STDOUT
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=both) as process:
            assert process.stdout
            try:
                for line in process.stdout:
                    print(f"fresh {name} | {line.decode('utf-8', 'replace')}", end="", flush=True)
            except BaseException:
                process.kill()
                raise
        mark = f"FAIL (exit code {process.returncode})" if process.returncode else "PASS"
        print(f"fresh {name} | {mark}: {command}, {time.monotonic() - begun:.0f} s", flush=True)
        if process.returncode:
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
