"""What Zelda adds: the whole `zelda run` against the bare Agent SDK on the same scripted session, in turn.

python benchmarks/overhead.py [ROUNDS]
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, text, tool_call

HERE = Path(__file__).parent
ZELDA = Path(sys.executable).parent / "zelda"

TURNS: list[Reply] = [
    tool_call("Bash", {"command": "echo hello > greeting.txt", "description": "Write a greeting"}),
    tool_call(
        "Bash", {"command": "git add -A && git -c user.name=A -c user.email=a@b.c commit -qm Greet && echo done"}
    ),
    text("The greeting is committed."),
]


def script(request: ApiRequest) -> Reply:
    position: int = sum(message["role"] == "assistant" for message in request.messages)
    return TURNS[position]


def quiet(command: list[str], environ: dict[str, str]) -> float:
    """Wall seconds of one process; it must succeed."""
    started = time.perf_counter()
    done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    taken = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"{command[:3]} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return taken


def project_in(folder: Path) -> Path:
    """A small repository with one suite that asks for the scripted session."""
    project = folder / "project"
    (project / "zelda").mkdir(parents=True)
    (project / "README.md").write_text("# Benchmark\n")
    (project / "zelda" / "test-greeting.yaml").write_text("prompt: Add a greeting and commit it.\n")
    git = ["git", "-C", str(project), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "Start"]):
        subprocess.run([*git, *words], check=True)
    return project


def compare(name: str, ours: Callable[[], float], floor: Callable[[], float], rounds: int) -> None:
    ours(), floor()  # warm the caches
    pairs = [(ours(), floor()) for _ in range(rounds)]
    print(f"{name}: {median(a for a, _ in pairs):.3f} s against {median(b for _, b in pairs):.3f} s,", end=" ")
    print(f"ratio {median(a / b for a, b in pairs):.2f} (median of {rounds} pairs)")


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="zelda-bench-") as name, ScriptedApi(script) as api:
        folder = Path(name)
        project = project_in(folder)
        plain = dict(os.environ)
        environ = {
            **plain,
            "ANTHROPIC_API_KEY": "sk-ant-fake-bench",
            "ANTHROPIC_BASE_URL": api.url,
            "ZELDA_WORKSPACES": str(folder / "workspaces"),
            "ZELDA_NO_CHECK": "1",
        }
        numbers = iter(range(10_000))

        def bare() -> float:
            # A working copy and a private folder of its own per session, as Zelda gives it one; not counted.
            private = folder / f"bare-{next(numbers)}"
            subprocess.run(["git", "clone", "-q", str(project), str(private / "copy")], check=True)
            command = [sys.executable, str(HERE / "bare_session.py"), str(private / "copy"), api.url, str(private)]
            return quiet(command, plain)

        compare(
            "zelda run / bare SDK", lambda: quiet([str(ZELDA), "run", "--project", str(project)], environ), bare, rounds
        )
        python = [sys.executable, "-c", "pass"]
        compare(
            "zelda --version / python -c pass",
            lambda: quiet([str(ZELDA), "--version"], plain),
            lambda: quiet(python, plain),
            3 * rounds,
        )
        results = sorted((project / ".zelda" / "runs").glob("*/result.json"))
        print("phases of the last run, seconds:", json.loads(results[-1].read_bytes())["phaseSeconds"])


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 9)
