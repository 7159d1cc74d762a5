"""Run real test runners on small projects and keep what they print: `python scripts/capture-test-output --help`."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import go_and_rust
import javascript_runtimes
import jest_and_vitest
import jvm_and_native
import mocha_and_peers
import monorepos
import python
import scripting
from cases import Case, Runner

CASES: tuple[Case, ...] = (
    *python.CASES,
    *jest_and_vitest.CASES,
    *mocha_and_peers.CASES,
    *javascript_runtimes.CASES,
    *go_and_rust.CASES,
    *jvm_and_native.CASES,
    *scripting.CASES,
    *monorepos.CASES,
)
FIXTURES = Path(__file__).resolve().parents[2] / "tests/data/test_output"
KEEP = ("PATH", "LANG", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="runner, or runner/case; all when none is named")
    parser.add_argument("--tools", type=Path, required=True, help="folder for the runners from npm and PyPI")
    options = parser.parse_args()
    for case in CASES:
        if not options.only or {case.runner.name, f"{case.runner.name}/{case.name}"} & set(options.only):
            capture(case, options.tools.resolve())


def capture(case: Case, tools: Path) -> None:
    """Run one case in a fresh folder and write its fixtures."""
    home = install(case.runner, tools)
    with tempfile.TemporaryDirectory(prefix="capture-") as temporary:
        project = Path(temporary).resolve() / "project"
        project.mkdir()
        for name, content in case.files.items():
            target = project / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
        if (home / "node_modules").is_dir():
            (project / "node_modules").symlink_to(home / "node_modules")
        environment = surroundings(home, Path(temporary)) | dict(case.environment)
        version = shell(case.runner.version, project, environment).stdout.decode().strip().splitlines()[0]
        finished = shell(case.command, project, environment)
        write(case, version, finished, project, home)
    print(f"{case.runner.name}/{case.name}: exit code {finished.returncode}, {len(finished.stdout)} bytes", flush=True)


def install(runner: Runner, tools: Path) -> Path:
    """The runner's folder, with its packages in it. Debian's packages are the caller's business."""
    home = tools / runner.name
    home.mkdir(parents=True, exist_ok=True)
    if runner.npm and not (home / "node_modules").is_dir():
        (home / "package.json").write_text('{"private": true}')
        subprocess.run(["npm", "install", "--silent", *runner.npm], cwd=home, check=True)
    if runner.pip and not (home / "bin").is_dir():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([home / "bin/pip", "install", "--quiet", *runner.pip], check=True)
    return home


def surroundings(home: Path, temporary: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in KEEP}
    path = f"{home}/bin:{home}/node_modules/.bin:{kept['PATH']}"
    cargo = {"CARGO_HOME": str(Path.home() / ".cargo"), "RUSTUP_HOME": str(Path.home() / ".rustup")}
    caches = {"GOCACHE": f"{home}/go-cache", "GOFLAGS": "-mod=mod", "GOPROXY": "off"}
    return cargo | kept | caches | {"PATH": path, "HOME": str(temporary), "CI": "true", "TZ": "UTC"}


def shell(line: str, project: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Both streams in one, as Zelda sees them."""
    return subprocess.run(
        ["bash", "-c", line],
        cwd=project,
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
    )


def write(case: Case, version: str, finished: subprocess.CompletedProcess[bytes], project: Path, home: Path) -> None:
    folder = FIXTURES / case.runner.name
    folder.mkdir(parents=True, exist_ok=True)
    places = (
        (str(project), "/project"),
        (str(home), "/tools"),
        (os.path.relpath(home, project), "/tools"),
        (str(project.parent), "/home"),
        (sys.base_prefix, "/python"),
        (str(Path.home()), "/home"),
    )
    (folder / f"{case.name}.txt").write_bytes(portable(finished.stdout, places))
    kept = folder / f"{case.name}.reports"
    shutil.rmtree(kept, ignore_errors=True)
    for report in found(case, project):
        target = kept / report.relative_to(project)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(portable(report.read_bytes(), places))
    about = {
        "runner": case.runner.name,
        "version": version,
        "source": "run",
        "command": case.command,
        "exitCode": finished.returncode,
        "expect": dict(case.expect),
    }
    (folder / f"{case.name}.json").write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n")


def portable(raw: bytes, places: tuple[tuple[str, str], ...]) -> bytes:
    """Without this machine's paths and name."""
    for here, label in places:
        raw = raw.replace(here.encode(), label.encode())
    host = os.uname().nodename.encode()
    return re.sub(rb'hostname="[^"]*"', b'hostname="host"', raw).replace(host, b"host")


def found(case: Case, project: Path) -> Iterator[Path]:
    for pattern in case.reports:
        yield from (path for path in sorted(project.glob(pattern)) if path.is_file())


if __name__ == "__main__":
    main()
