"""Run real test runners on small projects and keep what they print: `python scripts/capture-test-output --help`."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parents[1] / "tests/data/test_output"
KEEP = ("PATH", "LANG", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN")

Runner = dict[str, Any]
"""A row of runners.yaml."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="runner, or runner/case; all when none is named")
    parser.add_argument("--tools", type=Path, required=True, help="folder for the runners from npm and PyPI")
    options = parser.parse_args()
    runners: dict[str, Runner] = yaml.safe_load((HERE / "runners.yaml").read_text("utf-8"))
    for name, runner in runners.items():
        for case in runner["cases"]:
            if not options.only or {name, f"{name}/{case}"} & set(options.only):
                capture(name, runner, case, options.tools.resolve())


def capture(name: str, runner: Runner, case: str, tools: Path) -> None:
    """Run one case in a fresh folder and write its fixtures."""
    home, row = install(tools / name, runner), runner["cases"][case]
    about = json.loads((FIXTURES / name / f"{case}.json").read_text("utf-8"))
    with tempfile.TemporaryDirectory(prefix="capture-") as temporary:
        project = Path(temporary).resolve() / "project"
        shutil.copytree(HERE / "projects" / row.get("project", f"{name}/{case}"), project)
        if (home / "node_modules").is_dir():
            (project / "node_modules").symlink_to(home / "node_modules")
        environment = surroundings(home, Path(temporary)) | row.get("environment", {})
        version = shell(runner["version"], project, environment).stdout.decode().strip().splitlines()[0]
        finished = shell(about["command"], project, environment)
        about |= {"version": version, "exitCode": finished.returncode}
        reports = [path for glob in row.get("reports", ()) for path in sorted(project.glob(glob)) if path.is_file()]
        write(FIXTURES / name / f"{case}.json", about, finished.stdout, reports, project, home)
    print(f"{name}/{case}: exit code {finished.returncode}, {len(finished.stdout)} bytes", flush=True)


def install(home: Path, runner: Runner) -> Path:
    """Make the runner's folder, with its packages in it. Debian's packages are the caller's business."""
    home.mkdir(parents=True, exist_ok=True)
    if "npm" in runner and not (home / "node_modules").is_dir():
        (home / "package.json").write_text('{"private": true}')
        subprocess.run(["npm", "install", "--silent", *runner["npm"]], cwd=home, check=True)
    if "pip" in runner and not (home / "bin").is_dir():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([home / "bin/pip", "install", "--quiet", *runner["pip"]], check=True)
    return home


def surroundings(home: Path, temporary: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in KEEP}
    path = f"{home}/bin:{home}/node_modules/.bin:{kept['PATH']}"
    cargo = {"CARGO_HOME": str(Path.home() / ".cargo"), "RUSTUP_HOME": str(Path.home() / ".rustup")}
    caches = {"GOCACHE": f"{home}/go-cache", "GOFLAGS": "-mod=mod", "GOPROXY": "off"}
    return cargo | kept | caches | {"PATH": path, "HOME": str(temporary), "CI": "true", "TZ": "UTC"}


def shell(line: str, project: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Both streams in one, as Zelda sees them."""
    words, null, pipe, both = ["bash", "-c", line], subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
    return subprocess.run(
        words, cwd=project, env=environment, check=False, stdin=null, stdout=pipe, stderr=both, timeout=300
    )


def write(path: Path, about: dict[str, Any], output: bytes, found: list[Path], project: Path, home: Path) -> None:
    places = (
        (str(project), "/project"),
        (str(home), "/tools"),
        (os.path.relpath(home, project), "/tools"),
        (str(project.parent), "/home"),
        (sys.base_prefix, "/python"),
        (str(Path.home()), "/home"),
    )
    path.with_suffix(".txt").write_bytes(portable(output, places))
    kept = path.with_suffix(".reports")
    shutil.rmtree(kept, ignore_errors=True)
    for report in found:
        target = kept / report.relative_to(project)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(portable(report.read_bytes(), places))
    path.write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n")


def portable(raw: bytes, places: tuple[tuple[str, str], ...]) -> bytes:
    """Without this machine's paths and name."""
    for here, label in places:
        raw = raw.replace(here.encode(), label.encode())
    host = os.uname().nodename.encode()
    return re.sub(rb'hostname="[^"]*"', b'hostname="host"', raw).replace(host, b"host")


if __name__ == "__main__":
    main()
