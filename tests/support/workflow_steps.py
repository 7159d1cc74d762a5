"""Runs the shell lines of a workflow as a runner would, with its own words put in; actions are played by the test."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

TOKEN = "ghs_" + "fake" * 9
PROGRAMS = Path(__file__).parent / "release_programs"
Action = Callable[[dict[str, str], Path], None]


@dataclass
class StepFailedError(Exception):
    """A line of the workflow ended with another code than 0."""

    step: str
    said: str

    def __str__(self) -> str:
        return f"{self.step}: {self.said}"


@dataclass
class WorkflowRun:
    """One run of a workflow; jobs are executed when the test says so, as often as it likes."""

    file: Path
    folder: Path
    github: dict[str, str]
    actions: dict[str, Action]
    """Name of an action → what it does with its inputs in a job's workspace."""
    environment: dict[str, str] = field(default_factory=dict)
    """Put over the workflow's own."""
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    """Names of the steps whose lines were run."""

    @property
    def jobs(self) -> dict[str, Any]:
        return dict(yaml.safe_load(self.file.read_text("utf-8"))["jobs"])

    def execute(self, *names: str) -> None:
        """Execute these jobs, or all, in the order of the file, which must be one that `needs` allows."""
        for name, job in self.jobs.items():
            if names and name not in names:
                continue
            needed = job.get("needs", [])
            needed = [needed] if isinstance(needed, str) else needed
            needs = {each: {"outputs": self.outputs[each]} for each in needed}
            self.outputs[name] = {}
            rows = job.get("strategy", {}).get("matrix", {}).get("include", [{}])
            for row in rows:
                self._leg(name, job, {"github": self.github, "needs": needs, "matrix": row})

    def _leg(self, name: str, job: dict[str, Any], context: dict[str, Any]) -> None:
        if not says("${{ " + job.get("if", "'yes'") + " }}", context):
            return
        if "uses" in job:
            self.actions[job["uses"]]({}, self.folder)
            return
        workspace = self.folder / f"{name}-{len(list(self.folder.iterdir()))}"
        workspace.mkdir()
        steps: dict[str, Any] = {}
        workflow = {**yaml.safe_load(self.file.read_text("utf-8")).get("env", {}), **self.environment}
        context = {**context, "steps": steps, "env": workflow}
        variables = {**workflow, **{key: says(value, context) for key, value in job.get("env", {}).items()}}
        for step in job["steps"]:
            if "if" in step and not says("${{ " + step["if"] + " }}", context):
                continue
            written = self._step(step, workspace, variables, context)
            if "id" in step:
                steps[step["id"]] = {"outputs": written}
        said = {key: says(value, context) for key, value in job.get("outputs", {}).items()}
        self.outputs[name] |= {key: value for key, value in said.items() if value}

    def _step(
        self, step: dict[str, Any], workspace: Path, variables: dict[str, str], context: dict[str, Any]
    ) -> dict[str, str]:
        """Run a step; what it wrote to GITHUB_OUTPUT."""
        if "uses" in step:
            inputs = {key: says(str(value), context) for key, value in step.get("with", {}).items()}
            self.actions[step["uses"].partition("@")[0]](inputs, workspace)
            return {}
        output = self.folder / "output.txt"
        output.write_text("")
        own = {key: says(str(value), context) for key, value in step.get("env", {}).items()}
        environment = {**self._runner(workspace, output), **variables, **own}
        self.ran.append(step["name"])
        # What a runner does with a `run` that names no shell.
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=workspace,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            raise StepFailedError(step["name"], done.stdout + done.stderr)
        return dict(line.split("=", 1) for line in output.read_text("utf-8").splitlines())

    def _runner(self, workspace: Path, output: Path) -> dict[str, str]:
        temporary, programs = self.folder / "runner-temp", self.folder / "programs"
        temporary.mkdir(exist_ok=True)
        if not programs.exists():
            copied(PROGRAMS, programs)
            # The version for which the locked packages are installed.
            (programs / "python3").symlink_to(Path(sys.executable).resolve())
        return {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(temporary),
            # What pip looks for is there already, so that it downloads nothing.
            "PYTHONPATH": sysconfig.get_path("purelib"),
            "PIP_NO_INDEX": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "RUNNER_TEMP": str(temporary),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_ACTOR": "maintainer",
            "GITHUB_SHA": self.github["sha"],
            "GITHUB_REF_NAME": self.github["ref_name"],
            "PLAYED": str(self.folder / "played"),
            "PLAYED_TOKEN": TOKEN,
        }

    def calls(self) -> list[list[str]]:
        """What docker and gh were told, in order."""
        file = self.folder / "played" / "calls.jsonl"
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def says(text: str, context: dict[str, Any]) -> str:
    """A text with its expressions evaluated: names, and comparisons of a name with a word."""
    return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: _value(found[1], context), text)


def _value(expression: str, context: dict[str, Any]) -> str:
    left, equals, right = expression.partition(" == ")
    if equals:
        return "true" if _value(left, context) == _value(right, context) else ""
    if quoted := re.fullmatch(r"'([^']*)'", expression):
        return quoted[1]
    value: Any = context
    *path, last = expression.split(".")
    for name in path:
        value = value[name]
    # As on a runner, an output that nobody wrote is empty; everything else must be there.
    return str(value.get(last, "") if path[-1:] == ["outputs"] else value[last])


def copied(source: Path, target: Path) -> None:
    """Copy a folder's files to another."""
    shutil.copytree(source, target, dirs_exist_ok=True)
