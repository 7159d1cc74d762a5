"""Many suites in one `zelda run`, each with a session of its own: starting the command costs more than a session."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.command import gone, zelda
from tests.support.projects import Project
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, text, tool_call

HEADING = re.compile(r"^  ([A-Z]+)  (\S+)(?:  |$)", re.MULTILINE)
CODES = {"PASS": 0, "MEASURED": 0, "FAIL": 1}
"""What the command would end with for one suite alone; 2 where it is of no other kind."""


@dataclass(frozen=True)
class Suite:
    """Settings in YAML, and what the session does: a shell script, or replies of its model."""

    settings: str = ""
    session: str | Sequence[Reply] = (text("Done."),)

    @property
    def replies(self) -> Sequence[Reply]:
        if isinstance(self.session, str):
            return [tool_call("Bash", {"command": self.session}), text("Done.")]
        return self.session

    def file(self, name: str) -> str:
        return f"prompt: {prompt(name)}\n{self.settings}\n"


@dataclass(frozen=True)
class Ran:
    """One suite of a batch, as it was stored and as it was told."""

    verdict: str
    page: str
    folder: Path
    requests: Sequence[ApiRequest]
    output: str
    """Of the whole batch."""

    @property
    def code(self) -> int:
        return CODES.get(self.verdict, 2)

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "result.json").read_bytes())
        return found

    @property
    def correctness(self) -> dict[str, Any]:
        found: dict[str, Any] = self.result["evaluations"]["functionalCorrectness"]
        return found

    @property
    def efficiency(self) -> dict[str, Any]:
        found: dict[str, Any] = self.result["evaluations"]["efficiency"]["details"]
        return found

    def log(self, step: str) -> str:
        return (self.folder / f"{step}.log").read_text()


def prompt(name: str) -> str:
    return f"This is the task {name}."


def files(suites: Mapping[str, Suite]) -> dict[str, str | bytes]:
    return {f"zelda/test-{name}.yaml": suite.file(name) for name, suite in suites.items()}


def run_suites(project: Project, suites: Mapping[str, Suite], *arguments: str, **environ: str) -> dict[str, Ran]:
    """What became of each; nothing of the developer's has changed, and nothing of any run is left."""
    before = project.fingerprint()
    left = {name: iter(suite.replies) for name, suite in suites.items()}
    with ScriptedApi(lambda request: next(left[_suite(request, left)])) as api:
        done = zelda(project, "run", "--verbose", "--jobs", "3", *arguments, api=api.url, **environ)
    assert project.fingerprint() == before
    assert gone(project)
    assert not done.stderr, done.stderr
    found = dict(_ran(project, done.stdout, api.requests))
    assert found.keys() == suites.keys(), done.stdout + done.stderr
    assert done.returncode == max(each.code for each in found.values())
    return found


def _suite(request: ApiRequest, names: Mapping[str, Any]) -> str:
    said = json.dumps(request.messages)
    (name,) = [name for name in names if prompt(name) in said]
    return name


def _ran(project: Project, output: str, requests: Sequence[ApiRequest]) -> Iterator[tuple[str, Ran]]:
    headings = list(HEADING.finditer(output))
    ends = [*(heading.start() for heading in headings[1:]), output.find("\n  Summary\n")]
    for heading, end in zip(headings, ends, strict=True):
        verdict, name = heading.groups()
        (folder,) = project.results.glob(f"runs/{name}-*")
        own = [request for request in requests if prompt(name) in json.dumps(request.messages)]
        yield name, Ran(verdict, output[heading.start() : end], folder, own, output)
