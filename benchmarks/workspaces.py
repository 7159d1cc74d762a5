"""What a workspace costs beside the bare `git worktree add` that it replaces.

Usage: python -m benchmarks.workspaces [FILES] [PAIRS]

Makes a repository of FILES files (default 1,000), then in turn a worktree straight from it and a workspace of Zelda's:
a private repository that borrows from a copy of the commit, with a worktree, HOME and TMP of its own. Prints medians in
milliseconds and the median of the pairs' ratios; the first workspace of a commit, which makes the copy, stands apart.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import anyio

from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.redact import Redactor
from zelda_ci.workspace.workspaces import Workspaces

SUITE = ResolvedSuite.model_validate({"name": "bench", "file": "zelda/test-bench.yaml", "prompt": "-"})
PER_FOLDER = 100
COMMIT = ["-c", "user.name=Bench", "-c", "user.email=bench@example.com", "commit", "-qm", "Start"]


def main() -> None:
    files, pairs = (int(word) for word in (*sys.argv[1:], "1000", "15")[:2] if word)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        project = Path(folder, "project")
        make_repository(project, files)
        environ = {**os.environ, "ZELDA_WORKSPACES": f"{folder}/workspaces"}
        workspaces = Workspaces(project, Path(".zelda"), environ, Redactor(()))
        anyio.run(compare, workspaces, project, pairs)


def make_repository(project: Path, files: int) -> None:
    for number in range(files):
        file = project / f"d{number // PER_FOLDER}" / f"f{number % PER_FOLDER}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"content of file {number}\n" * 20)
    for arguments in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "b"],
    ):
        subprocess.run(["git", "-C", project, *arguments], check=True)


async def compare(workspaces: Workspaces, project: Path, pairs: int) -> None:
    first = await opened(workspaces, "first")
    measured = [(added(project, n), await opened(workspaces, f"run-{n}")) for n in range(pairs)]
    bare, ours = median(pair[0] for pair in measured), median(pair[1] for pair in measured)
    ratio = median(own / plain for plain, own in measured)
    print(
        f"git worktree add {bare:7.1f} ms    workspace {ours:7.1f} ms    ratio {ratio:.2f}    the first {first:.1f} ms"
    )


def added(project: Path, number: int) -> float:
    place = project.parent / f"bare-{number}"
    begun = perf_counter()
    subprocess.run(["git", "-C", project, "worktree", "add", "-q", "--detach", place], check=True)
    spent = (perf_counter() - begun) * 1000
    subprocess.run(["git", "-C", project, "worktree", "remove", "--force", place], check=True)
    return spent


async def opened(workspaces: Workspaces, name: str) -> float:
    begun = perf_counter()
    async with workspaces.open(name, SUITE):
        return (perf_counter() - begun) * 1000


if __name__ == "__main__":
    main()
