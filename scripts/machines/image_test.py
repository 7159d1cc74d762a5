"""Build the image and use it: `python3 scripts/machines/image_test.py [CHECK...]`.

With Docker where its daemon answers; else, as root, with buildah, on a base made of Debian packages (`--base NAME`
takes another one). Needs nothing but Python. Exit code 0: all well; 1: a check failed; 77: neither engine is here, and
nothing was tested.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from base_image import CannotBuildError
from engines import WORKSPACE, Buildah, BuildError, Docker, Engine, Order

SKIPPED = 77
REPOSITORY = Path(__file__).resolve().parents[2]
DEMO = REPOSITORY / "zelda_ci" / "cli" / "demo_project"
CASSETTES = REPOSITORY / "zelda_ci" / "cli" / "demo_cassettes"
OWNER = 61234 if os.geteuid() == 0 else os.geteuid()
"""Whose the projects are: somebody who is nobody in the image. Only root can choose."""
STRANGER = 1234
LARGEST_RELEASE, LARGEST_OF_ALL_BUT_CLI = 12_000_000, 160_000_000
"""Bytes of the last layer, and of all layers without the CLI, which grows as it likes."""
GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}


@dataclass
class Bench:
    """An engine with the image built, and a folder for projects."""

    engine: Engine
    folder: Path

    def run(self, order: Order, *, expect: int = 0) -> str:
        """Run to the end; standard output and error."""
        command, nothing = self.engine.command(order), subprocess.DEVNULL
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, stdin=nothing)
        said = done.stdout + done.stderr
        assert done.returncode == expect, f"exit code {done.returncode} in place of {expect}:\n{said}"
        return said

    def inside(self, script: str, *, user: str | None = None) -> str:
        """What a shell in the image says to a script."""
        return self.run(Order((), user=user, entrypoint=("/bin/sh", "-ec", script)))

    def project(self, *, owner: int | None = OWNER, replay: bool = False) -> Path:
        """The demo's project as a repository with one commit, of somebody who is nobody in the image."""
        path = Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copytree(DEMO, path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".zelda"))
        if replay:
            shutil.copytree(CASSETTES, path / "cassettes")
        git(path, "init", "--quiet", "--initial-branch=main")
        commit(path)
        if owner is not None:
            give(path, owner)
        return path


def script(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


def git(path: Path, *words: str) -> str:
    """What git says in a project, whatever the user's git is configured to do."""
    who = ["-c", "user.name=Dev", "-c", "user.email=dev@example.com"]
    done = subprocess.run(["git", *who, *words], cwd=path, env=GIT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(path: Path) -> None:
    """Commit everything."""
    git(path, "add", "--all")
    git(path, "commit", "--quiet", "-m", "Change")


def give(path: Path, owner: int) -> None:
    """Make a tree somebody's, as root; otherwise it is one's own already."""
    if os.geteuid() != 0:
        return
    for each in [path, *path.rglob("*")]:
        os.chown(each, owner, owner, follow_symlinks=False)


def strangers(path: Path, owner: int) -> list[str]:
    """What in a tree belongs to anybody else."""
    return [str(each) for each in [path, *path.rglob("*")] if each.lstat().st_uid != owner]


def version(bench: Bench) -> None:
    """The version, and help where nothing is asked."""
    assert bench.run(Order(("--version",))).startswith("zelda ")
    assert "Regression tests" in bench.run(Order(()))


def contents(bench: Bench) -> None:
    """One copy of the CLI, no pip beside it, no caches, git and bwrap there, and the base's Python for the suites."""
    large = bench.inside("find / -xdev -type f -size +100M 2>/dev/null || true").split()
    assert len(large) == 1, large
    assert large[0].endswith("claude_agent_sdk/_bundled/claude"), large
    left = "ls -A /var/lib/apt/lists /var/cache/apt/archives /root/.cache 2>/dev/null || true"
    assert not [line for line in bench.inside(left).splitlines() if line and line[0] != "/"]
    assert bench.inside("ls -d /opt/zelda/lib/python3*/site-packages/pip 2>/dev/null || true") == ""
    assert "safe.directory=*" in bench.inside("git config --system --list; bwrap --version")
    assert "/opt" not in bench.inside("command -v python3 git bwrap tini")
    one = bench.inside("find / -xdev -type f -perm -u+x -name 'python3.[0-9]*' ! -name '*-config' ! -path '*/lib/*'")
    assert len(one.split()) == 1, one
    assert bench.inside('echo "<${PIP_CERT-}${SSL_CERT_FILE-}>"').strip() == "<>"


def size(bench: Bench) -> None:
    """What the image is made of, which does not grow unnoticed."""
    parts = {it.split()[0]: int(it.split()[1]) for it in bench.inside(script("image_parts.sh")).splitlines()}
    layers = bench.engine.sizes()
    table = ", ".join(f"{name} {amount / 1e6:.1f}" for name, amount in parts.items())
    print(f"        MB: {table}; layers {' + '.join(f'{each / 1e6:.1f}' for each in layers)}")
    rest = sum(layers) - parts["cli"]
    advice = (
        "find out what grew, and raise the limit in image_test.py and the table in docs/action.md if it is worth it"
    )
    assert rest <= LARGEST_OF_ALL_BUT_CLI, f"{rest / 1e6:.0f} MB without the CLI: {advice}"
    assert layers[-1] <= LARGEST_RELEASE, f"{layers[-1] / 1e6:.0f} MB in the layer of Zelda itself: {advice}"


def git_alone(bench: Bench) -> None:
    """What sessions do with git works without Perl's own packages, and apt can install what needs them."""
    bench.inside(script("image_git.sh"), user=f"{STRANGER}:{STRANGER}")
    assert "connect to" in bench.inside("git ls-remote https://127.0.0.1:1/x.git 2>&1 || true")
    install = "apt-get update && apt-get install --yes --no-install-recommends perl; prove --version"
    bench.inside(f"apt-get check; {install}; apt-get check; git --version")


def demo_as_nobody(bench: Bench) -> None:
    """The whole pipeline, with the model's words from a file, for a user without a name and a HOME."""
    order = Order(("demo",), user=f"{STRANGER}:{STRANGER}", environment={"HOME": "/nowhere"})
    assert "2 passed" in bench.run(order)


def validate(bench: Bench) -> None:
    """A mounted project of somebody else is read."""
    said = bench.run(Order(("validate",), workspace=bench.project()))
    assert "receipt-tax" in said, said


def no_key(bench: Bench) -> None:
    """Without a key: the clear error, and nothing run."""
    said = bench.run(Order(("run",), workspace=bench.project()), expect=2)
    assert "ANTHROPIC_API_KEY" in said, said
    assert "Traceback" not in said, said


def init(bench: Bench) -> None:
    """What is written into an empty folder of somebody else is theirs."""
    path = Path(tempfile.mkdtemp(dir=bench.folder))
    give(path, OWNER)
    bench.run(Order(("init",), workspace=path))
    assert list(path.glob("zelda/test-*.yaml"))
    assert strangers(path, OWNER) == []


def run_as_its_owner(bench: Bench) -> None:
    """`docker run --user $(id -u):$(id -g)`: a user without a name, in a folder of their own."""
    path = bench.project(replay=True)
    user = f"{path.stat().st_uid}:{path.stat().st_gid}"
    # Without root there is at most Landlock in a container, which somebody has to accept.
    accepted = {"ZELDA_ACCEPT_ISOLATION": "landlock"}
    arguments = ("run", "--replay", "cassettes", "receipt-tax")
    bench.run(Order(arguments, workspace=path, user=user, environment=accepted))
    assert len(list(path.glob(".zelda/runs/*/result.json"))) == 1
    assert strangers(path, OWNER) == []


def action(bench: Bench) -> None:
    """A step of a workflow runs the suites as root, and leaves outputs, summary and results as the owner's."""
    path, runner = bench.project(replay=True), Path(tempfile.mkdtemp(dir=bench.folder))
    # A push to the default branch.
    event = {"before": "0" * 40, "repository": {"id": 77, "default_branch": "main"}}
    (runner / "event.json").write_text(json.dumps(event))
    for name in ("output", "summary"):
        (runner / name).touch()
    give(runner, OWNER)
    step = {f"GITHUB_{name}": value for name, value in RUNNER.items()}
    step |= {"GITHUB_SHA": git(path, "-c", f"safe.directory={path}", "rev-parse", "HEAD"), "HOME": "/github/home"}
    step |= {"INPUT_REPLAY": "cassettes", "INPUT_JUNIT-PATH": "reports/zelda.xml"}
    said = bench.run(Order(("ci",), workspace=path, environment=step, mounts={runner: "/github/runner"}))
    assert "::group::Runs" in said, said
    assert "\npassed\n" in (runner / "output").read_text(), said
    assert "reports/zelda.xml" in (runner / "output").read_text(), said
    assert "2 of 2 suites pass" in (runner / "summary").read_text(), said
    assert (path / ".zelda" / "ci" / "zelda-results.json").is_file()
    assert strangers(path, OWNER) == strangers(runner, OWNER) == []


RUNNER = {
    "ACTIONS": "true",
    "EVENT_NAME": "push",
    "EVENT_PATH": "/github/runner/event.json",
    "OUTPUT": "/github/runner/output",
    "REF": "refs/heads/main",
    "REF_NAME": "main",
    "REPOSITORY": "acme/shop",
    "REPOSITORY_ID": "77",
    "RUN_ID": "5",
    "STEP_SUMMARY": "/github/runner/summary",
    "WORKSPACE": WORKSPACE,
}


def sigterm(bench: Bench) -> None:
    """SIGTERM to the entry point ends a run in order: 130, and what was captured is a result."""
    path = bench.project(owner=None, replay=True)
    suite = path / "zelda" / "test-receipt-tax.yaml"
    suite.write_text(suite.read_text("utf-8") + "\nsetupCommand: sleep 250\n", "utf-8")
    commit(path)
    give(path, OWNER)
    order = Order(("run", "--replay", "cassettes", "receipt-tax"), workspace=path)
    pipe, both, deadline = subprocess.PIPE, subprocess.STDOUT, time.monotonic() + 120
    process = subprocess.Popen(bench.engine.command(order), stdout=pipe, stderr=both, text=True, start_new_session=True)
    try:
        while not any(path.glob(".zelda/runs/*/manifest.json")):
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.05)
        bench.engine.terminate(process)
        said, _ = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 130, f"exit code {process.returncode}:\n{said}"
    (result,) = path.glob(".zelda/runs/*/result.json")
    assert json.loads(result.read_bytes())["status"] == "interrupted"
    assert strangers(path, OWNER) == []


CHECKS: tuple[Callable[[Bench], None], ...] = (version, contents, size, git_alone, demo_as_nobody, validate, no_key)
CHECKS += (init, run_as_its_owner, action, sigterm)


def main() -> int:
    """Build, check, report."""
    parser = argparse.ArgumentParser(prog="image-test", description="Build the image and use it.")
    names = [check.__name__ for check in CHECKS]
    parser.add_argument("checks", nargs="*", metavar="CHECK", choices=[[], *names], help=f"only {', '.join(names)}")
    parser.add_argument("--base", help="base image in place of the one that the Dockerfile names, or of the stand-in")
    asked = parser.parse_args()
    begun = time.monotonic()
    engine: Engine = Docker() if Docker.answers() else Buildah()
    try:
        engine.build(REPOSITORY, asked.base or engine.base())
        layers = " + ".join(f"{size / 1e6:.0f}" for size in engine.sizes())
        print(f"image built: {layers} MB on its base, {time.monotonic() - begun:.0f} s", flush=True)
        failed = check(engine, asked.checks)
    except CannotBuildError as reason:
        print(f"image test skipped: {reason}")
        return SKIPPED
    except BuildError as failure:
        print(failure)
        return 1
    finally:
        engine.close()
    verdict = f"failed: {', '.join(failed)}" if failed else "all well"
    print(f"image test: {verdict}, {time.monotonic() - begun:.0f} s in all")
    return 1 if failed else 0


def check(engine: Engine, names: list[str]) -> list[str]:
    """The names of the checks that failed."""
    failed = []
    with tempfile.TemporaryDirectory(prefix="zelda-image-test-") as folder:
        # Others than root must be able to reach what is mounted from there.
        Path(folder).chmod(0o755)
        for each in CHECKS:
            if names and each.__name__ not in names:
                continue
            begun = time.monotonic()
            try:
                each(Bench(engine, Path(folder)))
            except Exception:  # noqa: BLE001 - whatever it was, the other checks are worth knowing
                failed.append(each.__name__)
                traceback.print_exc()
            mark = "FAIL" if each.__name__ in failed else "PASS"
            print(f"  {mark}  {each.__name__:18} {time.monotonic() - begun:5.1f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
